"""The command `windrow`: runs a command of `app.py` and says what stopped it.

exit code   0    done; with `check`, the file is sound
            1    it failed while it ran; a pipeline goes on from its checkpoint with the same command
            2    the command, the file or the query cannot be carried out as written
            3    the checkpoint is sound, and its stream waits for something (doctor)
          130    stopped by Ctrl-C, 143 by SIGTERM; a pipeline goes on from its checkpoint with the same command

Errors go to standard error, one line each: `file:line:column: field: what is wrong`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from windrow.errors import WindrowError

FAILED, WRONG = 1, 2


# What has to be installed for a package that not every command needs: a file is checked without Spark.
_CLI = "pip install 'windrow-stream[cli]', or '.[cli]' in a clone"
_PIPELINES = "pip install 'windrow-stream[pipelines]', or '.[pipelines]' in a clone"
_POSTGRES = "pip install 'windrow-stream[postgres]', or '.[postgres]' in a clone"
_LAKEHOUSE = "pip install 'windrow-stream[lakehouse]', or '.[lakehouse]' in a clone"
_PLOT = "pip install 'windrow-stream[plot]', or '.[plot]' in a clone"
_DASHBOARD = "pip install 'windrow-stream[dashboard]', or '.[dashboard]' in a clone"
INSTALL = {
    **dict.fromkeys(("typer", "yaml", "rich"), _CLI),
    **dict.fromkeys(("pyspark", "pandas"), _PIPELINES),
    "psycopg": _POSTGRES,
    **dict.fromkeys(("deltalake", "pyiceberg"), _LAKEHOUSE),
    "matplotlib": _PLOT,
    "bokeh": _DASHBOARD,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        from windrow.cli.app import app

        app(words, prog_name="windrow", obj=tuple(words))
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 0
    except ModuleNotFoundError as missing:
        package = str(missing.name).partition(".")[0]
        if package not in INSTALL:
            raise
        print(f"this needs the package {package!r}: {INSTALL[package]}", file=sys.stderr)
        return WRONG
    except WindrowError as problem:
        print(problem, file=sys.stderr)
        return WRONG
    except OSError as problem:  # a disk that is full, a folder that is not to be written to
        place = "" if problem.filename is None else f"{problem.filename}: "
        print(f"{place}{problem.strerror or problem}", file=sys.stderr)
        return FAILED
    return 0
