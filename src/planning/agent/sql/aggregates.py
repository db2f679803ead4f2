"""Which column of a statement SQLite reads from any row: one that is neither grouped by nor aggregated.

SQLite gives such a column the value of an arbitrary row, where other databases raise an error. It is defined
where a group has one value of it, because what the groups are made by determines it (by a key of its table,
or an equality of a join), and beside a single min() or max(): it is taken from the row that was found
(https://www.sqlite.org/lang_select.html#bareagg).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from planning.agent.sql.joins import Column, Determined, Joins
from planning.agent.sql.structure import Group, Item, Word, behind_name, groups, is_word, name_of, split

__all__ = ["arbitrary_column"]

Clauses = Mapping[str, Sequence[Item]]
Tables = Mapping[str, Mapping[str, Any]]

_AGGREGATES_TEXT: Final = """
    AVG COUNT GROUP_CONCAT JSON_GROUP_ARRAY JSON_GROUP_OBJECT JSONB_GROUP_ARRAY JSONB_GROUP_OBJECT
    MEDIAN PERCENTILE PERCENTILE_CONT PERCENTILE_DISC STRING_AGG SUM TOTAL
"""
_AGGREGATES: Final = frozenset(_AGGREGATES_TEXT.split())
_OF_ONE_ROW: Final = frozenset({"MIN", "MAX"})
_OPERATORS_TEXT: Final = """
    ALL AND AS BETWEEN CASE CAST COLLATE CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP DISTINCT ELSE
    END ESCAPE EXISTS FALSE FILTER FROM GLOB IN IS ISNULL LIKE MATCH NOT NOTNULL NULL OR OVER REGEXP
    THEN TRUE WHEN
"""
_OPERATORS: Final = frozenset(_OPERATORS_TEXT.split())
_ENDING_TEXT: Final = """
    CURRENT_DATE CURRENT_TIME CURRENT_TIMESTAMP END FALSE ISNULL NOTNULL NULL TRUE
"""
_ENDING: Final = frozenset(_ENDING_TEXT.split())
_ORDERING_TEXT: Final = """
    ASC BY CURRENT DESC EXCLUDE FIRST FOLLOWING GROUPS LAST NO NULLS ORDER OTHERS PARTITION
    PRECEDING RANGE ROW ROWS TIES UNBOUNDED
"""
_ORDERING: Final = frozenset(_ORDERING_TEXT.split())
_MARK: Final = re.compile("\x01([0-9]+|-)\x01")
_BETWEEN: Final = "\x02"
_COVERED: Final = "\x01-\x01"
_ALONE: Final = re.compile(" \x01[0-9]+\x01 (?:(?:'(?:ASC|DESC|NULLS|FIRST|LAST)'|COLLATE) )*")
_WHOLE: Final = (
    "{name} has many values beside {beside}, and SQLite would use any of them; add GROUP BY {name}, or "
    "aggregate it, as in max({name})"
)
_GROUPED: Final = (
    "{name} has many values in a group, and SQLite would use any of them; add it to GROUP BY, or aggregate "
    "it, as in max({name})"
)
_STAR: Final = (
    "* has columns with many values in a group, and SQLite would use any of them; write the columns of GROUP "
    "BY, and aggregates of others, instead of *"
)
_ALIAS: Final = "{name} means the column here, and not the alias; write {written}"


def arbitrary_column(
    top: Group, sql: str, tables: Callable[[], Sequence[Mapping[str, Any]] | None]
) -> str | None:
    """Say which column has no value of its own, and what to write; None where there is none.

    Args:
        top: The statement, which SQLite has run.
        sql: Its text.
        tables: Gives the tables that there are, as ``worker`` finds them, or None, and then nothing is said.
    """
    hidden = set(_common_names(top))

    def visible() -> Tables | None:
        found = tables()
        if found is None:
            return None
        named = {table["name"].lower(): table for table in found}
        return {name: table for name, table in named.items() if name not in hidden}

    is_inner: dict[int, bool] = {}
    for group, outer, before in groups(top):
        is_inner[id(group)] = outer is not None and (is_inner[id(outer)] or not _begins_table(before))
        if outer is None or group.is_query:
            for clauses in _selects(group.items):
                told = _Select(clauses, sql, visible, is_inner=is_inner[id(group)]).problem()
                if told is not None:
                    return told
    return None


def _common_names(top: Group) -> Iterator[str]:
    """The names that WITH gives: they hide tables of the same name."""
    for group, _, _ in groups(top):
        for place, item in enumerate(group.items):
            if place and is_word(item, "AS"):
                named = group.items[place - 2 if isinstance(group.items[place - 1], Group) else place - 1]
                yield named.text.lower()


def _begins_table(item: Item | None) -> bool:
    """Whether a table of FROM or WITH follows: such a query sees no columns of the query around it."""
    return item is not None and is_word(item, "FROM", "JOIN", "AS", "MATERIALIZED")


def _selects(items: Sequence[Item]) -> Iterator[Clauses]:
    """The clauses of each SELECT of a query: there are several where UNION is between them."""
    selects = split(items, "UNION", "INTERSECT", "EXCEPT")
    for select in selects:
        begin = next((place for place, item in enumerate(select) if is_word(item, "SELECT")), None)
        if begin is not None:
            clauses = _clauses(select[begin + 1 :])
            if len(selects) > 1:
                clauses.pop("ORDER", None)  # it is that of all of them, and sees only what they give
            yield clauses


def _clauses(items: Sequence[Item]) -> dict[str, list[Item]]:
    found: dict[str, list[Item]] = defaultdict(list)
    clause, cases = "SELECT", 0
    for place, item in enumerate(items):
        cases = max(0, cases + is_word(item, "CASE") - is_word(item, "END"))
        if not cases and _begins(items, place):
            clause = item.text
        elif found[clause] or not is_word(item, "BY", "DISTINCT", "ALL"):
            found[clause].append(item)
    return found


def _begins(items: Sequence[Item], place: int) -> bool:
    """Whether a clause begins there."""
    item, after = items[place], items[place + 1 : place + 3]
    if is_word(item, "FROM"):
        return not (
            place > 1 and is_word(items[place - 1], "DISTINCT") and is_word(items[place - 2], "IS", "NOT")
        )
    if is_word(item, "GROUP", "ORDER"):
        return bool(after) and is_word(after[0], "BY")
    if is_word(item, "WINDOW"):
        return len(after) > 1 and is_word(after[1], "AS")
    return is_word(item, "WHERE", "HAVING", "LIMIT")


def _output(items: Sequence[Item]) -> tuple[Sequence[Item], str]:
    """What is selected, and its alias, with AS or without it."""
    if len(items) > 2 and is_word(items[-2], "AS"):
        return items[:-2], items[-1].text.strip("'")
    if len(items) > 1 and items[-1].kind in {"word", "name", "text"} and not is_word(items[-1], *_ENDING):
        before = items[-2]
        if before.kind != "sign" and not is_word(before, *_OPERATORS - _ENDING):
            return items[:-1], items[-1].text.strip("'")
    return items, ""


class _Select:
    """One SELECT: what it groups by, and the columns that it reads of a group."""

    def __init__(
        self, clauses: Clauses, sql: str, tables: Callable[[], Tables | None], *, is_inner: bool
    ) -> None:
        self._clauses = clauses
        self._sql = sql
        self._tables = tables
        self._is_inner = is_inner
        self._aggregates: list[tuple[Word, Group]] = []  # name and arguments of each call
        self._names: list[list[Word]] = []
        self._first: dict[Column | None, int] = {}  # the number of the first name that means a column
        self._expressions = set[str]()  # that groups are made by, and that are no columns
        self._joins = Joins({}, {}, is_inner=is_inner)
        self._outputs = [_output(each) for each in split(clauses.get("SELECT", ()), ",")]
        self._aliases = {alias.lower(): items for items, alias in self._outputs if alias}

    def problem(self) -> str | None:
        """The first column that has no value of its own, in words."""
        is_grouped = bool(self._clauses.get("GROUP"))
        selected = [self._marked(items) for items, _ in self._outputs]
        having = self._marked(self._clauses.get("HAVING", ()))
        ordered = [self._marked(each, _ORDERING) for each in split(self._clauses.get("ORDER", ()), ",")]
        if not (self._aggregates or is_grouped) or self._is_of_one_row():
            return None
        later = [having, *(ordered if is_grouped else ())]  # one row needs no order
        stars = [items for items, _ in self._outputs if items and items[-1].text == "*"]
        if not stars and not any(map(_MARK.search, [*selected, *later])):
            return None
        tables = self._tables()
        if tables is None:
            return None
        self._expressions = set[str]()  # that groups are made by, and that are no columns
        self._joins = Joins(self._clauses, tables, is_inner=self._is_inner)
        determined = self._determined()
        if any(not self._has_all(items, determined) for items in stars):
            return _STAR
        for place, name in self._uncovered([*selected, *later]):
            column = self._joins.column(name)
            if column is None or determined.holds(column):
                continue
            told = self._told(name)
            if place >= len(selected):
                told = self._told_later(name, later[place - len(selected)], is_order=place > len(selected))
            if told:
                return told
        return None

    def _is_of_one_row(self) -> bool:
        """Whether there is a single min() or max()."""
        calls = [each for each in self._aggregates if each[0].text.upper() in _OF_ONE_ROW]
        written = {self._written(call).lower() for call in calls}
        return len(written) == 1 and not is_word(calls[0][1].items[0], "DISTINCT")

    # Expressions as text: aggregates are left out, and a name is a mark with its number in ``_names``

    def _marked(self, items: Sequence[Item], skipped: frozenset[str] = frozenset()) -> str:
        out: list[str] = []
        place = 0
        while place < len(items):
            item, after = items[place], items[place + 1] if place + 1 < len(items) else None
            if isinstance(item, Group):
                out.append(self._marked_group(item, items[place - 1] if place else None, skipped))
            elif item.is_name and isinstance(after, Group) and not is_word(item, *_OPERATORS):
                place = self._read_call(items, place, out)
            elif is_word(item, "COLLATE", "OVER", "IN") and after is not None and after.is_name:
                out.append(item.text)  # and the name of a collation, a window or a table
                place = behind_name(items, place + 1) - 1
            elif item.is_name and not is_word(item, *_OPERATORS, *skipped):
                end = behind_name(items, place)
                out.append(self._mark(items[place:end]))
                place = end - 1
            else:
                out.append(ascii(item.text))  # without what marks are made of
            place += 1
        return f" {' '.join(out)} "

    def _mark(self, items: Sequence[Item]) -> str:
        self._names.append([item for item in items if isinstance(item, Word) and item.text != "."])
        return f"\x01{len(self._names) - 1}\x01"

    def _marked_group(self, group: Group, before: Item | None, skipped: frozenset[str]) -> str:
        if group.is_query:
            return " ".join(map(self._mark, _names_of_outside(group)))
        items: Sequence[Item] = group.items
        if before is not None and is_word(before, "CAST"):
            items = split(items, "AS")[0]
        elif before is not None and is_word(before, "OVER"):
            skipped = _ORDERING
        return f"({self._marked(items, skipped)})"

    def _read_call(self, items: Sequence[Item], place: int, out: list[str]) -> int:
        """Read the name of a function, and all of the call of an aggregate; say what was read last."""
        name, call = items[place], items[place + 1]
        if not isinstance(name, Word) or not isinstance(call, Group):
            return place
        end = place + 2
        end += 2 * (end < len(items) and is_word(items[end], "FILTER"))
        word = name.text.upper()
        is_aggregate = word in _AGGREGATES or (
            word in _OF_ONE_ROW and call.items and len(split(call.items, ",")) == 1
        )
        if not is_aggregate or (end < len(items) and is_word(items[end], "OVER")):
            out.append(ascii(word))
            return place
        self._aggregates.append((name, call))
        out.append("aggregate")
        return end - 1

    # What has one value in a group

    def _determined(self) -> Determined:
        """The columns that have one value in each group."""
        columns: list[Column] = []
        grouped = self._clauses.get("GROUP", ())
        for items in split(grouped, ",") if grouped else ():
            for each in self._meant(items):
                name = name_of(each)
                column = self._joins.column(name) if name else None
                if column is not None:
                    columns.append(column)
                elif not name:
                    self._expressions.add(self._resolved(self._marked(each)))
        return self._joins.determined(columns)

    def _meant(self, items: Sequence[Item]) -> Iterator[Sequence[Item]]:
        """What an item of GROUP BY may mean: a number or an alias is something that is selected."""
        while len(items) == 1 and isinstance(items[0], Group) and not items[0].is_query:
            items = items[0].items
        name = name_of(items)
        alias = name[0].text.lower() if len(name) == 1 else ""
        if len(items) == 1 and items[0].kind == "number" and items[0].text.isdigit():
            yield from (output for output, _ in self._outputs[int(items[0].text) - 1 :][:1])
        elif alias in self._aliases and not self._joins.has_column(alias):
            yield self._aliases[alias]
        else:
            yield items

    def _resolved(self, text: str) -> str:
        """An expression in which a column is the same mark however it was written."""

        def same(mark: re.Match[str]) -> str:
            number = int(mark[1])
            return f"\x01{self._first.setdefault(self._joins.column(self._names[number]), number)}\x01"

        return _MARK.sub(same, text)

    def _uncovered(self, texts: Sequence[str]) -> Iterator[tuple[int, list[Word]]]:
        """The names in texts, outside of what groups are made by, with the number of the text."""
        left = _BETWEEN.join(map(self._resolved, texts))
        for expression in sorted(self._expressions, key=len, reverse=True):
            left = left.replace(expression, _MARK.sub(_COVERED, expression))
        for place, (text, rest) in enumerate(zip(texts, left.split(_BETWEEN), strict=True)):
            for mark, now in zip(_MARK.finditer(text), _MARK.finditer(rest), strict=True):
                if now[0] != _COVERED:
                    yield place, self._names[int(mark[1])]

    def _has_all(self, star: Sequence[Item], determined: Determined) -> bool:
        """Whether all columns of a ``*`` have one value."""
        alias = star[0].text.lower() if len(star) > 1 else None
        sources = [each for each in self._joins.sources if alias is None or each.alias == alias]
        return all(
            each.alias in determined.tables
            or (
                each.columns is not None
                and all(determined.holds((each.alias, name)) for name in each.columns)
            )
            for each in sources
        )

    # Words

    def _written(self, items: Sequence[Item]) -> str:
        return self._sql[items[0].start : items[-1].end] if items else ""

    def _told_later(self, name: Sequence[Word], text: str, *, is_order: bool) -> str:
        """What to say of a name in HAVING or ORDER BY, which may be an alias: then nothing."""
        output = self._aliases.get(name[0].text.lower()) if len(name) == 1 else None
        if output is None:
            return self._told(name)
        if (is_order and _ALONE.fullmatch(text)) or not self._joins.has_column(name[0].text.lower()):
            return ""
        return _ALIAS.format(name=self._written(name), written=self._written(output))

    def _told(self, name: Sequence[Word]) -> str:
        shown = self._written(name)
        if self._clauses.get("GROUP"):
            return _GROUPED.format(name=shown)
        return _WHOLE.format(name=shown, beside=self._written(self._aggregates[0]))


def _names_of_outside(query: Group) -> Iterator[Sequence[Item]]:
    """The names in a subquery, with a table before them, that are not of its own tables."""
    inside = [group for group, _, _ in groups(query)]
    own = {
        source.alias
        for group in inside
        for clauses in (_selects(group.items) if group.is_query else ())
        for source in Joins(clauses, {}, is_inner=True).sources
    }
    for group in inside:
        for place, item in enumerate(group.items):
            if item.is_name and (not place or group.items[place - 1].text != "."):
                end = behind_name(group.items, place)
                if end > place + 1 and item.text.lower() not in own:
                    yield group.items[place:end]
