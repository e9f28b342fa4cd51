"""A flow: operators and the streams between them, checked before anything runs.

    flow = Flow()
    sensors, queries = flow.source("Sensors"), flow.source("Queries")
    results = flow.add("Results", Join(...), sensors, queries)
    nearest = flow.add("Nearest", Aggregate("tumbling, punct()", ...), results)

A stream is *punctuated* if its output port generates punctuations, or preserves those of an input port that
is fed by a single punctuated stream; merged streams are not, because the boundaries of one would fall among
the rows of the other (Gedik 2013, section 3.4). `check` refuses, and names the edge:

- a port that expects punctuations and is not fed by exactly one punctuated stream;
- a window that the operator does not take on that port, or one that is missing;
- a partitioned window without `partition_by`, and the other way round.

Streams are added after what feeds them, so a flow has no circles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from windrow.errors import QueryError
from windrow.policies.operators.base import Operator
from windrow.policies.ports import GENERATING, PRESERVING, Punctuated, joined
from windrow.wording import near


@dataclass(frozen=True)
class Stream:
    """An output of an operator of a flow, or a source: what others are fed with."""

    node: str
    port: int = 0
    name: str = ""

    def __str__(self) -> str:
        return f"{self.node}.{self.name}" if self.name else self.node


@dataclass
class _Node:
    operator: Operator | None
    feeds: tuple[tuple[Stream, ...], ...]
    punctuated: bool = False


class Flow:
    """Operators and the streams between them, checked before the first row.

    Examples
    --------
    >>> import pyarrow as pa, windrow as wr
    >>> from windrow import policies as wp
    >>> flow = wp.Flow()
    >>> readings = flow.source("readings")
    >>> means = flow.add("means", wp.Aggregate("tumbling, count(2)", {"mean": wr.mean("x")}), readings)
    >>> largest = flow.add("largest", wp.Aggregate("tumbling, punct()", {"m": wr.max("mean")}), means)
    >>> flow.process("readings", pa.table({"x": [1, 3, 5, 7]}))["largest"].table.to_pylist()
    [{'m': 2.0}, {'m': 6.0}]
    """

    def __init__(self) -> None:
        self._nodes: dict[str, _Node] = {}
        self._checked = False

    # -- building --------------------------------------------------------------------------------

    def source(self, name: str, *, punctuated: bool = False) -> Stream:
        """A stream from outside.

        Parameters
        ----------
        name
            A name that no other part of the flow has.
        punctuated
            Whether punctuations come with it; False by default.

        Returns
        -------
        Stream
            What operators are fed with.

        Raises
        ------
        QueryError
            If the name is taken.
        """
        self._place(name, _Node(None, (), punctuated))
        return Stream(name)

    def add(self, name: str, operator: Operator, *feeds: Stream | Sequence[Stream]) -> Stream:
        """Add an operator.

        Parameters
        ----------
        name
            A name that no other part of the flow has.
        operator
            The operator, which belongs to this flow alone.
        feeds
            For each of its input ports a stream, or several that are merged.

        Returns
        -------
        Stream
            Its first output; `output` gives the others.

        Raises
        ------
        QueryError
            If the name is taken, or a port is not fed by streams of this flow.
        """
        if not isinstance(operator, Operator):
            raise QueryError(f"{name!r} needs an operator, not {operator!r}")
        inputs = operator.model.inputs
        if len(feeds) != len(inputs):
            ports = ", ".join(port.name for port in inputs)
            count = f"{len(inputs)} input{'s' * (len(inputs) > 1)}"
            raise QueryError(f"{name!r} has {count} ({ports}), and {len(feeds)} came to feed it")
        for feed in feeds:
            merged = (feed,) if isinstance(feed, Stream) else feed
            if not isinstance(merged, (list, tuple)) or not all(isinstance(s, Stream) for s in merged):
                raise QueryError(f"{name!r} is fed by streams of the flow, and not by {feed!r}")
        streams = tuple((feed,) if isinstance(feed, Stream) else tuple(feed) for feed in feeds)
        for port, merged in zip(inputs, streams, strict=True):
            for stream in merged:
                if stream.node not in self._nodes:
                    edge = f"edge {stream} -> {name}.{port.name}"
                    raise QueryError(f"{edge}: the flow has no {stream.node!r}; it has {self._names()}")
        self._place(name, _Node(operator, streams))
        return Stream(name)

    def output(self, name: str, port: int | str) -> Stream:
        """An output port of an operator, for those that have several.

        Parameters
        ----------
        name
            The operator's name.
        port
            The port's place, from 0, or its name.

        Returns
        -------
        Stream
            What operators are fed with.

        Raises
        ------
        QueryError
            If there is no such operator or port.
        """
        node = self._nodes.get(name)
        if node is None or node.operator is None:
            raise QueryError(
                f"the flow has no operator {name!r}{near(name, self._nodes)}; it has {self._names()}"
            )
        outputs = node.operator.model.outputs
        for place, output in enumerate(outputs):
            if port in (place, output.name):
                return Stream(name, place, output.name if place else "")
        raise QueryError(f"{name!r} has no output {port!r}; it has {', '.join(o.name for o in outputs)}")

    def _place(self, name: str, node: _Node) -> None:
        if name in self._nodes:
            raise QueryError(f"the flow already has a {name!r}; names must differ")
        self._nodes[name] = node
        self._checked = False

    def _names(self) -> str:
        return ", ".join(self._nodes) or "nothing yet"

    # -- checking --------------------------------------------------------------------------------

    def is_punctuated(self, stream: Stream) -> bool:
        """Whether a stream carries the punctuations of one operator: the recursive definition of section
        3.4.
        """
        node = self._nodes[stream.node]
        if node.operator is None:
            return node.punctuated
        port = node.operator.model.outputs[stream.port]
        if port.mode is PRESERVING:
            feeds = node.feeds[port.of]
            return len(feeds) == 1 and self.is_punctuated(feeds[0])
        return port.mode is GENERATING

    def check(self) -> None:
        """An error that names the edge, if an operator would be fed with what it cannot work on."""
        for name, node in self._nodes.items():
            if node.operator is None:
                continue
            for place, (port, feeds) in enumerate(zip(node.operator.model.inputs, node.feeds, strict=True)):
                edge = f"edge {' + '.join(map(str, feeds)) or 'nothing'} -> {name}.{port.name}"
                if not feeds:
                    raise QueryError(f"{edge}: the input is not fed by any stream")
                problem = node.operator.refusal(place)
                if problem is not None:
                    raise QueryError(f"{edge}: {problem}")
                if port.expects(node.operator.windows[place]):
                    self._require_punctuated(edge, feeds)
        self._checked = True

    def _require_punctuated(self, edge: str, feeds: tuple[Stream, ...]) -> None:
        if len(feeds) > 1:
            raise QueryError(
                f"{edge}: the input expects punctuations, and {len(feeds)} streams are merged into it: the "
                "boundaries of one would fall among the rows of the others. Feed it with one stream"
            )
        if not self.is_punctuated(feeds[0]):
            raise QueryError(
                f"{edge}: the input expects punctuations, and {self._why_not(feeds[0])}. Feed it from an operator "
                "that generates punctuations, or preserves those of one that does"
            )

    def _why_not(self, stream: Stream) -> str:
        node = self._nodes[stream.node]
        if node.operator is None:
            return f"the source {stream} has none (punctuated=True says that it has)"
        port = node.operator.model.outputs[stream.port]
        if port.mode is not PRESERVING:
            return f"the output {stream} is free of them"
        feeds = node.feeds[port.of]
        if len(feeds) > 1:
            merged = " + ".join(map(str, feeds))
            return f"the output {stream} preserves those of merged streams ({merged}), which are garbled"
        return f"the output {stream} preserves those of {feeds[0]}; " + self._why_not(feeds[0])

    # -- running ---------------------------------------------------------------------------------

    def process(self, source: str, rows: Any) -> dict[str, Punctuated]:
        """Push rows into a source, and through all operators that it feeds.

        Parameters
        ----------
        source
            The name of the source.
        rows
            Anything that makes a table; with punctuations if it is `Punctuated`.

        Returns
        -------
        dict of str to Punctuated
            What came out of each stream that feeds no operator, by its name.

        Raises
        ------
        QueryError
            If `check` finds an edge that cannot be, or there is no such source.
        """
        if not self._checked:
            self.check()
        node = self._nodes.get(source)
        if node is None or node.operator is not None:
            sources = [name for name, other in self._nodes.items() if other.operator is None]
            raise QueryError(
                f"{source!r} is no source of the flow{near(source, sources)}; its sources are {', '.join(sources)}"
            )
        return self._push({Stream(source): Punctuated.of(rows)})

    def poll(self) -> dict[str, Punctuated]:
        """What timers have emitted since, as `process` returns it."""
        return self._push({})

    def finish(self) -> dict[str, Punctuated]:
        """The sources have ended: every operator emits what it still holds, upstream first."""
        return self._push({}, finishing=True)

    def _push(self, moving: dict[Stream, Punctuated], *, finishing: bool = False) -> dict[str, Punctuated]:
        """Send stretches along the edges. Nodes stand behind what feeds them, so one pass is enough."""
        for name, node in self._nodes.items():
            if node.operator is None:
                continue
            made: list[list[Punctuated]] = [[] for _ in node.operator.model.outputs]
            for place, feeds in enumerate(node.feeds):
                for stream in feeds:
                    if stream in moving:
                        _collect(made, node.operator.process(moving[stream], port=place))
            _collect(made, node.operator.finish() if finishing else node.operator.poll())
            outputs = node.operator.model.outputs
            for place, stretches in enumerate(made):
                if stretches:
                    moving[Stream(name, place, outputs[place].name if place else "")] = joined(stretches)
        read = {stream for node in self._nodes.values() for feeds in node.feeds for stream in feeds}
        made_here = (s for s in moving if s not in read and self._nodes[s.node].operator is not None)
        return {str(stream): moving[stream] for stream in made_here}

    def close(self) -> None:
        """Take every operator off its clock: nothing happens by itself any more."""
        for node in self._nodes.values():
            if node.operator is not None:
                node.operator.close()

    # -- state -----------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, bytes]:
        """The state of each operator by its name, with rows that timers have emitted and that were not fetched."""
        return {
            name: node.operator.snapshot() for name, node in self._nodes.items() if node.operator is not None
        }

    def restore(self, states: Mapping[str, bytes]) -> None:
        """Go on from a snapshot of an equal flow; nothing has been processed yet."""
        expected = [name for name, node in self._nodes.items() if node.operator is not None]
        if sorted(states) != sorted(expected):
            raise QueryError(
                f"the snapshot is of the operators {', '.join(states)}; the flow has {', '.join(expected)}"
            )
        for name, state in states.items():
            operator = self._nodes[name].operator
            assert operator is not None
            operator.restore(state)


def _collect(made: list[list[Punctuated]], outputs: Sequence[Punctuated]) -> None:
    for stretches, output in zip(made, outputs, strict=True):
        if len(output) or len(output.marks):
            stretches.append(output)
