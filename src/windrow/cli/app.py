"""What can be typed: each command, its arguments and its options. What a command does is in the module of its name.

That module is imported when the command runs, so that `windrow --help` and completion answer at once.
"""

from __future__ import annotations

from typing import Annotated, NoReturn

import typer

import windrow

app = typer.Typer(
    name="windrow",
    help="Window aggregates over event streams: many windows, many aggregates, one pass.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

QueryArgument = Annotated[
    str,
    typer.Argument(metavar="QUERY", help="A YAML file of a query, or of a pipeline whose query is meant."),
]
Events = Annotated[
    list[str],
    typer.Argument(
        metavar="EVENTS...", help="Files of events: Parquet, CSV, JSON lines or Arrow; folders and globs."
    ),
]
Key = Annotated[
    list[str] | None,
    typer.Option(
        "--key", metavar="COLUMN", help="A key column instead of those of the file; may be repeated."
    ),
]

Checkpoint = Annotated[str, typer.Argument(metavar="CHECKPOINT", help="The folder of the checkpoint.")]


def _version(wanted: bool) -> None:
    if wanted:
        print(f"windrow {windrow.__version__}")
        raise typer.Exit


@app.callback()
def windrow_(
    version: Annotated[
        bool, typer.Option("--version", help="Show the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    pass


@app.command()
def run(
    query: Annotated[
        str,
        typer.Argument(
            metavar="QUERY",
            help="A YAML file of a query or a pipeline, a file of SQL, or a SELECT in quotes.",
        ),
    ],
    events: Events,
    output: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="A .parquet, .csv, .arrow or .jsonl file; - is CSV on standard output.",
        ),
    ] = None,
    key: Key = None,
    rows: Annotated[int, typer.Option(min=0, help="How many rows to show.")] = 20,
    divert: Annotated[
        bool, typer.Option("--divert", help="Leave bad rows out instead of refusing the file.")
    ] = False,
) -> None:
    """Run a query or SQL over files, and show or save its windows. SQL calls a file by its own name, by NAME=FILE, or `events`."""
    from windrow.cli.run import run_command

    _end(run_command(query, events, output=output, key=key, rows=rows, divert=divert))


@app.command()
def explain(
    query: QueryArgument,
    events: Annotated[
        list[str] | None, typer.Argument(metavar="[EVENTS...]", help="Files whose columns make sizes exact.")
    ] = None,
    picture: Annotated[
        str | None, typer.Option(metavar="FILE.svg", help="Also draw windows, slices and what is shared.")
    ] = None,
    key: Key = None,
) -> None:
    """Say which windows share which slices, what is kept, and why."""
    from windrow.cli.explain import explain_command

    _end(explain_command(query, events or [], picture=picture, key=key))


@app.command()
def check(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The YAML file of a query or a pipeline.")],
    events: Annotated[
        list[str] | None,
        typer.Argument(metavar="[EVENTS...]", help="Files whose columns the query must fit."),
    ] = None,
) -> None:
    """Say whether a YAML file is sound, and whether it fits the columns of a file."""
    from windrow.cli.check import check_command

    _end(check_command(file, events or []))


@app.command()
def plot(
    what: Annotated[
        str,
        typer.Argument(
            metavar="QUERY|WINDOWS", help="A YAML file of a query, or a file of windows that `run` wrote."
        ),
    ],
    events: Annotated[
        list[str] | None, typer.Argument(metavar="[EVENTS...]", help="Files of events for the query.")
    ] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", metavar="FILE", help="A .png, .svg, .pdf or .html file.")
    ] = "windows.png",
    kind: Annotated[str, typer.Option(help="lines, heatmap, bars, or auto.")] = "auto",
    window: Annotated[list[str] | None, typer.Option(help="Which windows; may be repeated.")] = None,
    aggregate: Annotated[list[str] | None, typer.Option(help="Which aggregates; may be repeated.")] = None,
    key: Key = None,
    theme: Annotated[str, typer.Option(help="light, dark, or auto: without a background.")] = "auto",
    title: Annotated[str | None, typer.Option(help="Above the picture.")] = None,
) -> None:
    """Draw windows: lines over time, a heat map of keys by time, sessions as bars."""
    from windrow.cli.plot import plot_command

    _end(
        plot_command(
            what,
            events or [],
            output=output,
            kind=kind,
            window=window,
            aggregate=aggregate,
            key=key,
            theme=theme,
            title=title,
        )
    )


@app.command()
def dashboard(
    query: QueryArgument,
    events: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[EVENTS...]", help="Files of events; by default those that a pipeline replays."
        ),
    ] = None,
    key: Key = None,
    seconds: Annotated[float, typer.Option(min=0.05, help="How long the replay takes.")] = 60.0,
    resolution: Annotated[
        str | None,
        typer.Option(metavar="DURATION", help="How far one can zoom in: slices are at most that long."),
    ] = None,
    history: Annotated[
        str | None,
        typer.Option(
            metavar="DURATION",
            help="How far back one can zoom, and how late events may be; by default 1000 days, or all that there is where time is a number.",
        ),
    ] = None,
    address: Annotated[
        str, typer.Option(help="Where to listen; beyond this machine readers need the token.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 takes one that is free.")] = 5006,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="WINDROW_TOKEN", help="What readers must know; made if it is needed and not given."
        ),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="End with the replay.")] = False,
) -> None:
    """Show the windows of a query in a browser while files are replayed as a stream."""
    from windrow.cli.dashboard import dashboard_command

    _end(
        dashboard_command(
            query,
            events or [],
            key=key,
            seconds=seconds,
            resolution=resolution,
            history=history,
            address=address,
            port=port,
            token=token,
            once=once,
        )
    )


@app.command()
def demo(
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Also draw a chart: .png, .svg or .pdf."),
    ] = None,
) -> None:
    """Run a query over a year of made-up flights: nothing has to be at hand for it."""
    from windrow.cli.demo import demo_command

    _end(demo_command(output=output))


@app.command()
def bench(
    query: Annotated[
        str | None,
        typer.Argument(
            metavar="[QUERY]", help="A YAML file of a query; one of minutes and sessions by default."
        ),
    ] = None,
    events: Annotated[
        list[str] | None, typer.Argument(metavar="[EVENTS...]", help="Files of events.")
    ] = None,
    rows: Annotated[
        int, typer.Option(min=1, help="How many events are made up where no file is named.")
    ] = 2_000_000,
    key: Key = None,
) -> None:
    """Measure a query on this machine, beside polars and duckdb where these are installed and can say the same."""
    if query is not None and not events:
        raise typer.BadParameter("a query is measured over files: name them, too")
    from windrow.cli.bench import bench_command

    _end(bench_command(query, events or [], rows=rows, key=key))


@app.command()
def schema(
    what: Annotated[str, typer.Argument(metavar="[query|pipeline]", help="Of which kind of file.")] = "query",
) -> None:
    """Print the JSON schema with which editors complete and check YAML files."""
    from windrow.cli.schema import schema_command

    _end(schema_command(what))


@app.command()
def pipeline(
    context: typer.Context,
    file: Annotated[str, typer.Argument(metavar="FILE", help="The YAML file.")],
    master: Annotated[
        str | None,
        typer.Option(metavar="M", help="Where to run: spark://host:port, local[4] (default: local[*])."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--conf",
            metavar="NAME=VALUE",
            help="A setting of Spark; may be repeated, and goes before those of the file.",
        ),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Only say whether the file is sound.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Only say how the query would be computed.")
    ] = False,
) -> None:
    """Run a pipeline that a YAML file describes, on Spark. Ctrl-C stops it after the running micro-batch; the same command goes on from there."""
    if check and explain:
        raise typer.BadParameter("--check and --explain exclude each other")
    from windrow.cli.pipeline import Command, pipeline_command

    _end(
        pipeline_command(
            Command(
                file=file,
                master=master,
                settings=[_setting(text) for text in settings or []],
                check=check,
                explain=explain,
                given=context.obj,
            )
        )
    )


@app.command()
def doctor(checkpoint: Checkpoint) -> None:
    """Read the checkpoint of a stream, and say how far it is, what it waits for, and what is damaged."""
    from windrow.cli.doctor import doctor_command

    _end(doctor_command(checkpoint=checkpoint))


@app.command()
def warm(
    file: Annotated[str | None, typer.Argument(metavar="[FILE]", help="The YAML file of a pipeline.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="All windows and aggregates.")] = False,
    portable: Annotated[
        str | None,
        typer.Option(
            metavar="DIR", help="Into this folder, for any processor of this kind; it can be carried along."
        ),
    ] = None,
) -> None:
    """Compile ahead what a pipeline's query needs, or all that is built in, into the folder that WINDROW_CACHE_DIR names (default: ~/.cache/windrow)."""
    from windrow.cli.warm import warm_command

    _end(warm_command(file=file, everything=everything, portable=portable))


def _end(code: int) -> NoReturn:
    raise typer.Exit(code)


def _setting(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not name or not equals:
        raise typer.BadParameter(f"a setting is NAME=VALUE, not {text!r}", param_hint="--conf")
    return name, value
