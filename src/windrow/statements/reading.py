"""SQL as text to statements: which table, which window, what is grouped, aggregated, filtered and selected.

Parsing is sqlglot's. What Flink writes around a window function, `TABLE(..)`, `TABLE t` and `PARTITION BY`, is blanked out of the text
first, character by character, so that places in messages stay those of the text.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError
from sqlglot.tokenizer_core import Token, TokenType

from windrow import aggregates as known_aggregates
from windrow import windows as known_windows
from windrow.aggregates.base import Aggregate
from windrow.errors import QueryError
from windrow.expressions.building import MARK, Expr, column_name
from windrow.expressions.functions import FUNCTIONS
from windrow.expressions.text import Dialect, read, unreadable, written
from windrow.expressions.tree import Column, Node
from windrow.windows.base import Window
from windrow.wording import choices, did_you_mean

# What stands for the bounds of a window in a statement, and in a result of windrow.
BOUNDS = {"window_start": "start", "window_end": "end"}


@dataclass(frozen=True)
class Statement:
    """One SELECT. `keys` are names and columns of events; `items` the columns that come out, as trees over the query's result."""

    table: str
    time: str
    window: Window
    where: str | None
    keys: tuple[tuple[str, str], ...]
    aggregates: tuple[tuple[str, Aggregate], ...]
    items: tuple[tuple[str, Node], ...]
    having: Node | None
    # Columns of events that are read, and where: for the message that there is no such column.
    read: tuple[tuple[str, str], ...]


def statements(text: str) -> list[Statement]:
    """The statements of a text, in order."""
    if not isinstance(text, str) or not text.strip():
        raise QueryError("SQL is a text such as \"SELECT count(*) FROM TUMBLE(t, ts, INTERVAL '1 minute')\"")
    plain, partitions = _without_table_words(text)
    aggregates: dict[str, Aggregate] = {}
    try:
        parsed = [each for each in sqlglot.parse(plain, read=Dialect) if each is not None]
        if not parsed:
            raise QueryError("there is no statement in the text")
        return [_Reader(text, partitions, aggregates).statement(each) for each in parsed]
    except SqlglotError as problem:
        raise QueryError(
            unreadable(" ".join(text.split())[:80], problem, "SQL that windrow can read")
        ) from None
    except RecursionError:
        raise QueryError(f"the statement {text[:60]!r}... is nested too deeply") from None


def _without_table_words(text: str) -> tuple[str, list[str]]:
    """The text without the words that Flink has around tables, and the columns of PARTITION BY."""
    try:
        tokens = Dialect().tokenize(text)
    except SqlglotError as problem:
        raise QueryError(unreadable(text[:80], problem, "SQL that windrow can read")) from None
    blank: list[Token] = []
    partitions: list[str] = []
    for i, token in enumerate(tokens):
        following = tokens[i + 1] if i + 1 < len(tokens) else None
        if token.token_type == TokenType.TABLE and following is not None:
            blank.append(token)
            if following.token_type == TokenType.L_PAREN:
                blank += [following, _closing(tokens, i + 1)]
        elif token.text.upper() in ("PARTITION BY", "PARTITION"):
            stop = next(
                (j for j in range(i, len(tokens)) if tokens[j].text.upper() in ("DESCRIPTOR", "TIMECOL")),
                None,
            )
            if stop is not None:
                words = tokens[i : stop - 1]
                blank += words
                partitions += [word.text for word in words[1:] if word.text.upper() not in (",", "BY")]
    characters = list(text)
    for token in blank:
        for place in range(token.start, token.end + 1):
            characters[place] = " "
    return "".join(characters), partitions


def _closing(tokens: list[Token], opening: int) -> Token:
    depth = 0
    for token in tokens[opening:]:
        depth += (token.token_type == TokenType.L_PAREN) - (token.token_type == TokenType.R_PAREN)
        if depth == 0:
            return token
    return tokens[-1]


# -- names -----------------------------------------------------------------------------------------


def _call(name: str, **fixed: Any) -> Callable[..., Aggregate]:
    return partial(getattr(known_aggregates, name), **fixed)


AGGREGATES: dict[str, Callable[..., Aggregate]] = {
    **{name: getattr(known_aggregates, name) for name in known_aggregates.__all__ if name.islower()},
    "approx_count_distinct": _call("approx_distinct"),
    "array_agg": _call("collect"),
    "avg": _call("mean"),
    "collect_list": _call("collect"),
    "corr": _call("correlation"),
    "covar_pop": _call("covariance", ddof=0),
    "covar_samp": _call("covariance"),
    "first_value": _call("first"),
    "last_value": _call("last"),
    "listagg": lambda column, separator="", **rest: _call("concat", separator=separator)(column, **rest),
    "max_by": lambda column, by, **rest: _call("argmax", by=by)(column, **rest),
    "min_by": lambda column, by, **rest: _call("argmin", by=by)(column, **rest),
    "percentile": _call("quantile"),
    "regr_slope": _call("slope"),
    "stddev_pop": _call("stddev", ddof=0),
    "stddev_samp": _call("stddev"),
    "string_agg": lambda column, separator="", **rest: _call("concat", separator=separator)(column, **rest),
    "var_pop": _call("variance", ddof=0),
    "var_samp": _call("variance"),
}
del AGGREGATES["aggregate"]


def _hop(slide: Any, size: Any, offset: Any = None) -> Window:
    return known_windows.sliding(size, every=slide, **({} if offset is None else {"offset": offset}))


def _cumulate(step: Any, size: Any, offset: Any = None) -> Window:
    return known_windows.cumulate(size, step=step, **({} if offset is None else {"offset": offset}))


def _tumble(size: Any, offset: Any = None) -> Window:
    return known_windows.tumbling(size, **({} if offset is None else {"offset": offset}))


WINDOWS: dict[str, Callable[..., Window]] = {
    **{name: getattr(known_windows, name) for name in known_windows.__all__ if name.islower()},
    "tumble": _tumble,
    "hop": _hop,
    "cumulate": _cumulate,
}
# What statements call the clauses that sqlglot calls otherwise.
_CLAUSES = {
    "all": "GROUP BY ALL",
    "cluster": "CLUSTER BY",
    "columns": "AS with names of columns",
    "distribute": "DISTRIBUTE BY",
    "joins": "JOIN",
    "kind": "SELECT AS",
    "laterals": "LATERAL VIEW",
    "match": "MATCH_RECOGNIZE",
    "order": "ORDER BY",
    "pivots": "PIVOT",
    "sample": "TABLESAMPLE",
    "sort": "SORT BY",
    "totals": "WITH TOTALS",
    "version": "AS OF",
    "windows": "WINDOW",
}


class _Reader:
    """Reads one statement; `text` is for places, and `named` has the aggregates of all statements, which may share a query, by their names."""

    def __init__(self, text: str, partitions: list[str], named: dict[str, Aggregate]) -> None:
        self._text = text
        self._partitions = partitions
        self._named = named
        self._aggregates: dict[str, Aggregate] = {}
        self._read: dict[str, str] = {}

    def _wrong(self, node: exp.Expr, sentence: str) -> QueryError:
        place = self._place(node)
        return QueryError(f"{place}: {sentence}" if place else sentence)

    def _place(self, node: exp.Expr) -> str:
        starts = [each.meta["start"] for each in node.walk() if "start" in each.meta]
        if not starts:
            return ""
        before = self._text[: min(starts)]
        return f"line {before.count(chr(10)) + 1}, column {len(before) - before.rfind(chr(10))}"

    def statement(self, select: exp.Expr) -> Statement:
        """The statement that was parsed."""
        if not isinstance(select, exp.Select):
            raise self._wrong(select, "windrow answers SELECT .. FROM a window of a table, and nothing else")
        self._require_parts(select, {"expressions", "from_", "where", "group", "having", "hint"})
        table, time, window = self._source(select)
        condition = select.args.get("where")
        where = None if condition is None else self._column(condition.this)
        keys = self._keys(select)
        items: dict[str, Node] = {}
        for item in select.expressions:
            name, tree = self._item(item, dict(keys))
            if name in items:
                raise self._wrong(item, f"two columns are called {name!r}: give one another name by AS")
            items[name] = tree
        having = select.args.get("having")
        kept = None if having is None else self._over_result(having.this, dict(keys), items)
        found = self._aggregates or {"count()": known_aggregates.count()}
        return Statement(
            table,
            time,
            window,
            where,
            keys,
            tuple(found.items()),
            tuple(items.items()),
            kept,
            tuple(self._read.items()),
        )

    def _require_parts(self, node: exp.Expr, known: set[str]) -> None:
        """A QueryError for the first part of a clause that windrow does not answer: nothing is left out in silence."""
        for part, value in node.args.items():
            if part in known or not value:
                continue
            first = value[0] if isinstance(value, list) else value
            place = first if isinstance(first, exp.Expr) and self._place(first) else node
            name = _CLAUSES.get(part, part.strip("_").replace("_", " ").upper())
            raise self._wrong(place, f"{name} is not possible: sort, join and cut what comes back")

    # -- the table and its window

    def _source(self, select: exp.Select) -> tuple[str, str, Window]:
        origin = select.args.get("from_") or select.args.get("from")
        call = None if origin is None else origin.this
        while isinstance(call, (exp.Table, exp.Paren, exp.Subquery)) and not isinstance(
            call.this, exp.Identifier
        ):
            self._require_parts(call, {"this", "alias"})
            if call.args.get("alias"):
                self._require_parts(call.args["alias"], {"this"})
            call = call.this
        shape = "FROM TUMBLE(t, ts, INTERVAL '1 minute')"
        if not isinstance(call, exp.Anonymous):
            raise self._wrong(origin or select, f"a window of a table is needed, such as {shape}")
        name = str(call.this).lower()
        if name not in WINDOWS:
            raise self._wrong(call, f"there is no window {name!r}{choices(name, WINDOWS)}")
        plain = [each for each in call.expressions if not isinstance(each, exp.Kwarg)]
        named = {
            each.this.name.lower(): each.expression
            for each in call.expressions
            if isinstance(each, exp.Kwarg)
        }
        data = named.pop("data", None) or (plain.pop(0) if plain else None)
        clock = named.pop("timecol", None) or (plain.pop(0) if plain else None)
        if data is None or clock is None:
            raise self._wrong(call, f"{name} takes a table and its time column first: {shape}")
        if isinstance(clock, exp.Anonymous) and str(clock.this).lower() == "descriptor":
            (clock,) = clock.expressions
        arguments = [self._argument(each) for each in plain]
        options = {key: self._argument(each) for key, each in named.items()}
        try:
            window = WINDOWS[name](*arguments, **options)
        except QueryError as problem:
            raise self._wrong(call, str(problem)) from None
        except TypeError:
            takes = ", ".join(inspect.signature(WINDOWS[name]).parameters)
            raise self._wrong(call, f"{name} takes a table, its time, and then {takes}") from None
        return self._name(data), self._column(clock), window

    def _name(self, node: exp.Expr) -> str:
        if not isinstance(node, (exp.Column, exp.Identifier, exp.Table)):
            raise self._wrong(node, "a table is called by its name")
        return node.name

    def _argument(self, node: exp.Expr) -> Any:
        """An argument of a window or an aggregate: a constant, a length of time, or else a column or an expression."""
        match node:
            case exp.Interval():
                unit = str(node.args["unit"]).lower()
                return f"{node.this.name} {unit}"
            case exp.Literal():
                return node.this if node.is_string else _number(node.this)
            case exp.Neg(this=exp.Literal() as number) if not number.is_string:
                return -_number(number.this)
            case exp.Boolean():
                return bool(node.this)
            case exp.Null():
                return None
        found = self._expression(node)
        plain = isinstance(found.node, Column) and not found.node.path
        return column_name(found) if plain else found

    # -- columns of events

    def _expression(self, node: exp.Expr) -> Expr:
        for each in node.find_all(exp.Column):
            self._read.setdefault(each.parts[0].name, self._place(each))
        for call in node.find_all(exp.Anonymous):
            name = str(call.this).lower()
            if name not in FUNCTIONS:
                if name in AGGREGATES:
                    raise self._wrong(call, f"the aggregate {name!r} cannot stand here")
                known = did_you_mean(name, [*FUNCTIONS, *AGGREGATES])
                raise self._wrong(call, f"there is no function {name!r}{known}")
        try:
            return Expr(read(node, node.sql(Dialect)))
        except QueryError as problem:
            raise self._wrong(node, str(problem)) from None

    def _column(self, node: exp.Expr) -> str:
        return column_name(self._expression(node))

    # -- groups, aggregates, items

    def _keys(self, select: exp.Select) -> tuple[tuple[str, str], ...]:
        group = select.args.get("group")
        if group is not None:
            self._require_parts(group, {"expressions"})
        chosen = {item.alias: item.this for item in select.expressions if isinstance(item, exp.Alias)}
        wanted: list[exp.Expr] = []
        for each in group.expressions if group is not None else select.expressions:
            if group is not None and isinstance(each, exp.Literal) and not each.is_string:
                place = int(each.this) - 1
                if not 0 <= place < len(select.expressions):
                    raise self._wrong(each, f"there is no column number {each.this} in SELECT")
                each = select.expressions[place]
            each = each.this if isinstance(each, exp.Alias) else each
            each = chosen.get(each.name, each) if isinstance(each, exp.Column) and group is not None else each
            if self._is_bound(each) or (group is None and self._has_aggregate(each)):
                continue
            if self._has_aggregate(each):
                raise self._wrong(
                    each, "GROUP BY takes columns and expressions of events, and this is an aggregate"
                )
            if isinstance(each, exp.Star):
                raise self._wrong(select, "name the columns: * is possible in count(*) only")
            wanted.append(each)
        keys = {}
        for each in wanted:
            column = self._column(each)
            keys[column.removeprefix(MARK)] = column
        for name in self._partitions:
            if name not in keys:
                raise self._wrong(select, f"PARTITION BY {name} needs {name} in GROUP BY, too")
        return tuple(keys.items())

    def _is_bound(self, node: exp.Expr) -> bool:
        return isinstance(node, exp.Column) and node.name.lower() in BOUNDS

    def _has_aggregate(self, node: exp.Expr) -> bool:
        return any(str(call.this).lower() in AGGREGATES for call in node.find_all(exp.Anonymous))

    def _item(self, item: exp.Expr, keys: dict[str, str]) -> tuple[str, Node]:
        within = item.this if isinstance(item, exp.Alias) else item
        if isinstance(within, exp.Star):
            raise self._wrong(item, "name the columns: * is possible in count(*) only")
        tree = self._over_result(within, keys, {})
        if isinstance(item, exp.Alias):
            return item.alias, tree
        if isinstance(within, exp.Column):
            return within.name, tree
        return tree.name if isinstance(tree, Column) else written(tree), tree

    def _over_result(self, node: exp.Expr, keys: dict[str, str], items: dict[str, Node]) -> Node:
        """An expression over the result of the query: aggregates and keys are columns of it."""
        if isinstance(node, exp.Column) and node.name in items and node.name not in keys:
            return items[node.name]
        made = {column: name for name, column in keys.items()}

        def replaced(each: exp.Expr) -> exp.Expr:
            if self._is_bound(each):
                return exp.column(BOUNDS[each.name.lower()])
            is_call = isinstance(each, (exp.Filter, exp.Anonymous))
            if is_call and self._has_aggregate(each) and self._names_aggregate(each):
                return exp.column(exp.to_identifier(self._aggregate(each), quoted=True))
            if isinstance(each, exp.Column) and each.name in items and each.name not in keys:
                item = items[each.name]
                if isinstance(item, Column):
                    return exp.column(exp.to_identifier(item.name, quoted=True))
            if isinstance(each, exp.Column) and each.name not in keys:
                raise self._wrong(
                    each,
                    f"{each.name!r} is no aggregate: put it into GROUP BY, or into one such as max({each.name})",
                )
            return each

        if not self._has_aggregate(node) and not self._is_bound(node):
            try:
                name = made.get(column_name(Expr(read(node, node.sql(Dialect)))))
            except QueryError:
                name = None
            if name is not None:
                return Column(name)
        changed = _top_down(node.copy(), replaced)
        try:
            return read(changed, changed.sql(Dialect))
        except QueryError as problem:
            raise self._wrong(node, str(problem)) from None

    def _names_aggregate(self, node: exp.Expr) -> bool:
        call = node.this if isinstance(node, exp.Filter) else node
        return isinstance(call, exp.Anonymous) and str(call.this).lower() in AGGREGATES

    def _aggregate(self, node: exp.Expr) -> str:
        """The name of an aggregate of the query: its text, and a mark behind it where another one has that text."""
        call = node.this if isinstance(node, exp.Filter) else node
        name = str(call.this).lower()
        plain = [each for each in call.expressions if not isinstance(each, exp.Kwarg)]
        options = {
            each.this.name.lower(): self._argument(each.expression)
            for each in call.expressions
            if isinstance(each, exp.Kwarg)
        }
        function = AGGREGATES[name]
        if plain and isinstance(plain[0], exp.Distinct):
            if name != "count":
                raise self._wrong(node, f"DISTINCT is possible in count only, not in {name}")
            function, plain = AGGREGATES["distinct"], plain[0].expressions
        if name == "count" and plain and isinstance(plain[0], (exp.Star, exp.Literal)):
            plain = []
        arguments = [self._argument(each) for each in plain]
        if plain and isinstance(plain[0], exp.Literal):
            raise self._wrong(node, f"{name} takes a column or an expression first")
        if isinstance(node, exp.Filter):
            options["where"] = self._expression(node.expression.this)
        try:
            spec = function(*arguments, **options)
        except QueryError as problem:
            raise self._wrong(node, str(problem)) from None
        except TypeError:
            takes = ", ".join(n for n in inspect.signature(function).parameters if n != "where")
            raise self._wrong(node, f"{name} takes {takes}") from None
        text = str(spec)
        while self._named.setdefault(text, spec) != spec:
            text += "'"
        self._aggregates[text] = spec
        return text


def _top_down(node: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """A tree with what `change` makes of its nodes; what has changed is not looked into."""
    made = change(node)
    if made is not node:
        return made
    for key, value in list(node.args.items()):
        if isinstance(value, exp.Expr):
            node.set(key, _top_down(value, change))
        elif isinstance(value, list):
            node.set(key, [_top_down(v, change) if isinstance(v, exp.Expr) else v for v in value])
    return node


def _number(text: str) -> int | float:
    return float(text) if any(sign in text.lower() for sign in ".e") else int(text)
