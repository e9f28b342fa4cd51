"""Section 6.2 of the paper on the windowing library: operators over a library of windows, beside coupled
ones.
"""
