"""What a query is run over besides tables: files, datasets, lazy frames, rows of Python, and several of these at once."""
