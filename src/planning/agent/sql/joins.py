"""What a SELECT reads from, and which of its columns determine which others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import attrs

from planning.agent.sql.structure import Group, Item, Word, behind_name, is_word, name_of, split

__all__ = ["Column", "Determined", "Joins"]

Column = tuple[str, str]
"""The table, by what the SELECT calls it, and the column; in small letters."""

_JOINING: Final = frozenset(["NATURAL", "LEFT", "RIGHT", "FULL", "INNER", "CROSS", "OUTER", "JOIN"])
_NO_ALIAS: Final = _JOINING | {"ON", "USING", "INDEXED", "NOT"}
_ROWID: Final = frozenset({"rowid", "oid", "_rowid_"})


@attrs.frozen
class Source:
    """A table that a SELECT reads.

    Attributes:
        alias: What it calls it.
        columns: Its columns; None where they are not known.
        keys: Each set of columns of which no two rows have the same values.
    """

    alias: str
    columns: frozenset[str] | None = None
    keys: tuple[frozenset[str], ...] = ()


@attrs.frozen
class Determined:
    """The columns of which each group has one value.

    Attributes:
        columns: Those, by the table.
        tables: The tables of which all columns are determined.
    """

    columns: Mapping[str, set[str]]
    tables: set[str]

    def holds(self, column: Column) -> bool:
        """Whether a column is one of them. A table that is not known may be any."""
        alias, name = column
        if alias:
            return alias in self.tables or name in self.columns[alias] or name in self.columns[""]
        return any(name in columns for columns in self.columns.values())


class Joins:
    """The tables of one SELECT, and what it says of their columns."""

    def __init__(
        self,
        clauses: Mapping[str, Sequence[Item]],
        tables: Mapping[str, Mapping[str, Any]],
        *,
        is_inner: bool,
    ) -> None:
        """Read what a SELECT reads from.

        Args:
            clauses: Its clauses.
            tables: The tables that there are, by their names in small letters.
            is_inner: Whether it may read columns of a query around it.
        """
        self.sources: list[Source] = []
        self._tables = tables
        self._is_inner = is_inner
        self._implied: dict[Column, list[Column]] = defaultdict(list)
        self._constant: list[Column] = []
        self._conditions: list[tuple[Sequence[Item], str]] = []
        read = clauses.get("FROM", ())
        self._read_from(read)
        if any(is_word(item, "RIGHT", "FULL") for item in read):  # rows may be without either table
            self._conditions.clear()
            self._implied.clear()
        self._conditions.append((clauses.get("WHERE", ()), ""))
        for items, added in self._conditions:
            self._read_condition(items, added)

    def has_alias(self, alias: str) -> bool:
        """Whether a table is called so."""
        return any(source.alias == alias for source in self.sources)

    def has_column(self, name: str) -> bool:
        """Whether a table is known to have a column."""
        return any(name in source.columns for source in self.sources if source.columns is not None)

    def column(self, chain: Sequence[Word]) -> Column | None:
        """What a name means; None where it is of a query around this one, and so has one value."""
        name = chain[-1].text.lower()
        if len(chain) > 1:
            alias = chain[-2].text.lower()
            return (alias, name) if self.has_alias(alias) else None
        for source in self.sources:
            if source.columns is not None and name in source.columns:
                return source.alias, name
        unknown = [source.alias for source in self.sources if source.columns is None]
        if name in _ROWID and len(self.sources) == 1:
            return self.sources[0].alias, name
        if self._is_inner:
            return None  # it may well be of the query around it
        return unknown[0] if len(unknown) == 1 else "", name

    def determined(self, columns: Iterable[Column]) -> Determined:
        """The columns that have one value where these have one."""
        found = Determined(defaultdict(set), set())
        waiting = [*columns, *self._constant]
        by_alias = {source.alias: source for source in self.sources}
        while waiting:
            alias, name = waiting.pop()
            mine = found.columns[alias]
            if name in mine:
                continue
            mine.add(name)
            waiting += self._implied.get((alias, name), ())
            source = by_alias.get(alias)
            if source is None or alias in found.tables:
                continue
            is_rowid = name in _ROWID and source.columns is not None and name not in source.columns
            if is_rowid or any(key <= mine for key in source.keys):
                found.tables.add(alias)
                waiting += [each for each in self._implied if each[0] == alias]
        return found

    # Reading FROM

    def _read_from(self, items: Sequence[Item]) -> None:
        place, joining = 0, set[str]()
        while place < len(items):
            item = items[place]
            if _joins(item):
                joining = (joining if place and _joins(items[place - 1]) else set()) | {item.text}
                place += 1
            elif is_word(item, "ON"):
                end = place + 1
                while end < len(items) and not _joins(items[end]):
                    end += 1
                self._conditions.append((items[place + 1 : end], self._added(joining)))
                place = end
            elif is_word(item, "USING"):
                names = items[place + 1]
                if isinstance(names, Group):
                    self._same(
                        (word.text.lower() for word in names.items if word.is_name), self._added(joining)
                    )
                place += 2
            elif isinstance(item, Group) and not item.is_query:
                self._read_from(item.items)
                place += 1
            else:
                place = self._read_source(items, place)
                if "NATURAL" in joining:
                    self._same(self.sources[-1].columns or (), self._added(joining))

    def _read_source(self, items: Sequence[Item], place: int) -> int:
        """Add a table, and say where it ends."""
        alias, table = "", None
        if not isinstance(items[place], Group):
            place = behind_name(items, place) - 1
            alias = items[place].text.lower()
            table = self._tables.get(alias)
        place += 1
        if alias and place < len(items) and items[place].kind == "group":
            place, table = place + 1, None  # a function that gives a table
        place += place < len(items) and is_word(items[place], "AS")
        if place < len(items) and items[place].is_name and not is_word(items[place], *_NO_ALIAS):
            alias = items[place].text.lower()
            place += 1
        if place < len(items) and is_word(items[place], "INDEXED", "NOT"):  # INDEXED BY x, NOT INDEXED
            place += 3 if is_word(items[place], "INDEXED") else 2
        self.sources.append(Source(alias) if table is None else _source(alias, table))
        return place

    def _added(self, joining: set[str]) -> str:
        """The table that a LEFT JOIN adds: the others do not follow from its columns."""
        return self.sources[-1].alias if "LEFT" in joining and self.sources else ""

    def _same(self, names: Iterable[str], added: str) -> None:
        """Take columns of one name for the same, as USING does."""
        for name in names:
            for source in self.sources[:-1]:
                if source.columns is None or name in source.columns:
                    self._imply((source.alias, name), (self.sources[-1].alias, name), added)

    def _imply(self, one: Column, other: Column, added: str) -> None:
        """Note that two columns are the same."""
        for given, found in ((one, other), (other, one)):
            if not added or given[0] != added:
                self._implied[given].append(found)

    def _read_condition(self, items: Sequence[Item], added: str) -> None:
        """Note what a condition says to be equal."""
        if any(is_word(item, "OR", "BETWEEN") for item in items):
            return
        for each in split(items, "AND"):
            if len(each) == 1 and isinstance(each[0], Group):
                self._read_condition(each[0].items, added)
                continue
            sides = split(each, "=", "==")
            if len(sides) != 2:
                continue
            one, other = map(self._side, sides)
            if one and other:
                self._imply(one, other, added)
            elif (one or other) and None not in {one, other} and not added:
                self._constant += [column for column in (one, other) if column]

    def _side(self, items: Sequence[Item]) -> Column | tuple[()] | None:
        """A side of an equality: a column, nothing for a constant, None for anything else."""
        chain = name_of(items)
        if chain:
            return self.column(chain) or ()
        return () if len(items) == 1 and items[0].kind in {"text", "number"} else None


def _joins(item: Item) -> bool:
    return item.text == "," or is_word(item, *_JOINING)


def _source(alias: str, table: Mapping[str, Any]) -> Source:
    columns = table["columns"]
    not_null = {each["name"] for each in columns if each["not_null"]}
    primary = {each["name"] for each in columns if each["primary"]}
    keys = [primary, *(names for names in table["unique"] if not_null.issuperset(names))]
    return Source(
        alias,
        frozenset(each["name"].lower() for each in columns) if columns else None,
        tuple(frozenset(name.lower() for name in key) for key in keys if key),
    )
