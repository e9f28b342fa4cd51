"""What the command `windrow` understands.

exit code   0    the pipeline has come to the end of its source, or its file is sound (--check)
            1    it failed while it ran; the same command goes on from its checkpoint
            2    the command, the file or the query cannot be carried out as written
          130    stopped by Ctrl-C, 143 by SIGTERM; the same command goes on from its checkpoint
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Sequence

from windrow.errors import WindrowError

WRONG = 2
INTERRUPTED = 128 + signal.SIGINT
# What has to be installed for a package that not every command needs: a file is checked without Spark.
_CLI = "pip install 'windrow-stream[cli]', or '.[cli]' in a clone"
_PIPELINES = "pip install 'windrow-stream[pipelines]', or '.[pipelines]' in a clone"
_POSTGRES = "pip install 'windrow-stream[postgres]', or '.[postgres]' in a clone"
_LAKEHOUSE = "pip install 'windrow-stream[lakehouse]', or '.[lakehouse]' in a clone"
INSTALL = {
    "yaml": _CLI,
    "rich": _CLI,
    "pyspark": _PIPELINES,
    "pandas": _PIPELINES,
    "psycopg": _POSTGRES,
    "deltalake": _LAKEHOUSE,
    "pyiceberg": _LAKEHOUSE,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    parser = argparse.ArgumentParser(prog="windrow", description="Window aggregates over event streams.")
    commands = parser.add_subparsers(required=True, dest="command", metavar="COMMAND")
    pipeline = commands.add_parser(
        "pipeline",
        help="run a pipeline that a YAML file describes, on Spark",
        description="Run a pipeline that a YAML file describes, on Spark. Ctrl-C stops it after the running "
        "micro-batch; the same command goes on from there.",
    )
    pipeline.add_argument("file", metavar="FILE", help="the YAML file")
    pipeline.add_argument(
        "--master", metavar="M", help="where to run: spark://host:port, local[4] (default: local[*])"
    )
    pipeline.add_argument(
        "--conf",
        dest="settings",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        type=_setting,
        help="a setting of Spark; may be given more than once, and goes before those of the file",
    )
    shown = pipeline.add_mutually_exclusive_group()
    shown.add_argument("--check", action="store_true", help="only say whether the file is sound")
    shown.add_argument("--explain", action="store_true", help="only say how the query would be computed")
    warm = commands.add_parser(
        "warm",
        help="compile ahead what a query needs",
        description="Compile ahead what the query of a pipeline needs, or all that is built in, into the folder that "
        "WINDROW_CACHE_DIR names (default: ~/.cache/windrow).",
    )
    warm.add_argument("file", metavar="FILE", nargs="?", help="the YAML file of a pipeline")
    warm.add_argument("--all", dest="everything", action="store_true", help="all windows and aggregates")
    warm.add_argument(
        "--portable",
        metavar="DIR",
        help="into this folder, for any processor of this kind; it can be carried along",
    )
    given = list(sys.argv[1:] if arguments is None else arguments)
    asked = vars(parser.parse_args(given))
    try:
        if asked.pop("command") == "warm":
            from windrow.cli.warm import warm_command

            return warm_command(**asked)
        from windrow.cli.pipeline import Command, pipeline_command

        return pipeline_command(Command(**asked, given=tuple(given)))
    except ModuleNotFoundError as missing:
        package = str(missing.name).partition(".")[0]
        if package not in INSTALL:
            raise
        print(f"this needs the package {package!r}: {INSTALL[package]}", file=sys.stderr)
        return WRONG
    except WindrowError as problem:
        print(problem, file=sys.stderr)
        return WRONG
    except KeyboardInterrupt:
        print("stopped before the pipeline had begun", file=sys.stderr)
        return INTERRUPTED


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise argparse.ArgumentTypeError(f"a setting is NAME=VALUE, not {text!r}")
    return name, value
