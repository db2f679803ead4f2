"""Function calls of other databases, written for SQLite or DuckDB."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import attrs

from planning.agent.sql.dates import formatted, part_of, shifted, truncated, unit_named
from planning.agent.sql.structure import COMPARING, Item, is_word, split

__all__ = ["Call", "call_written", "interval", "now_written"]

_WRITTEN: Final = {  # by the dialect, the function and the number of its arguments
    "sqlite": {
        ("ARRAY_AGG", 1): "json_group_array({0})",
        ("CHARACTER_LENGTH", 1): "length({0})",
        ("CHARINDEX", 2): "instr({1}, {0})",
        ("CHAR_LENGTH", 1): "length({0})",
        ("CURDATE", 0): "date('now')",
        ("CURRENT_DATE", 0): "CURRENT_DATE",
        ("CURRENT_TIMESTAMP", 0): "CURRENT_TIMESTAMP",
        ("EOMONTH", 1): "date({0}, 'start of month', '+1 month', '-1 day')",
        ("FROM_UNIXTIME", 1): "datetime({0}, 'unixepoch')",
        ("GETDATE", 0): "datetime('now')",
        ("GREATEST", 2): "max({0}, {1})",
        ("IF", 3): "iif({0}, {1}, {2})",
        ("ISNULL", 1): "({0} IS NULL)",
        ("ISNULL", 2): "ifnull({0}, {1})",
        ("LAST_DAY", 1): "date({0}, 'start of month', '+1 month', '-1 day')",
        ("LCASE", 1): "lower({0})",
        ("LEAST", 2): "min({0}, {1})",
        ("LEFT", 2): "substr({0}, 1, {1})",
        ("LEN", 1): "length({0})",
        ("LOCATE", 2): "instr({1}, {0})",
        ("NOW", 0): "datetime('now')",
        ("NVL", 2): "ifnull({0}, {1})",
        ("NVL2", 3): "CASE WHEN {0} IS NOT NULL THEN {1} ELSE {2} END",
        ("RIGHT", 2): "substr({0}, -({1}))",
        ("STRING_AGG", 2): "group_concat({0}, {1})",
        ("STRPOS", 2): "instr({0}, {1})",
        ("SYSDATE", 0): "datetime('now')",
        ("TODAY", 0): "date('now')",
        ("UCASE", 1): "upper({0})",
        ("UNIX_TIMESTAMP", 1): "CAST(strftime('%s', {0}) AS INTEGER)",
    },
    "duckdb": {
        ("CHARINDEX", 2): "strpos({1}, {0})",
        ("CURDATE", 0): "CURRENT_DATE",
        ("DATETIME", 1): "CAST({0} AS TIMESTAMP)",
        ("GETDATE", 0): "current_localtimestamp()",
        ("IIF", 3): "CASE WHEN {0} THEN {1} ELSE {2} END",
        ("ISNULL", 1): "({0} IS NULL)",
        ("ISNULL", 2): "coalesce({0}, {1})",
        ("JULIANDAY", 1): "julian(CAST({0} AS TIMESTAMP))",
        ("LOCATE", 2): "strpos({1}, {0})",
        ("NVL", 2): "coalesce({0}, {1})",
        ("NVL2", 3): "CASE WHEN {0} IS NOT NULL THEN {1} ELSE {2} END",
        ("SYSDATE", 0): "current_localtimestamp()",
        ("TOTAL", 1): "coalesce(sum({0}), 0)",
        ("UNIX_TIMESTAMP", 1): "CAST(epoch(CAST({0} AS TIMESTAMP)) AS BIGINT)",
    },
}
_PARTS_TEXT: Final = """
    YEAR MONTH DAY HOUR MINUTE SECOND QUARTER DAYOFMONTH DAYOFYEAR
"""
_PARTS: Final = frozenset(_PARTS_TEXT.split())


def interval(items: Sequence[Item], place: int) -> tuple[int, str, int]:
    """The count and the unit of an interval, and its end; a count of 0 if it has another form."""
    if place >= len(items):
        return 0, "", place
    words = items[place].text.strip("'").split()
    place += 1
    if len(words) == 1 and place < len(items):
        words.append(items[place].text)
        place += 1
    is_plain = len(words) == 2 and words[0].lstrip("-").isdigit()
    return (int(words[0]), unit_named(words[1]), place) if is_plain else (0, "", place)


Items = Sequence[Item]


@attrs.frozen
class Call:
    """A call of a function.

    Attributes:
        dialect: ``sqlite`` or ``duckdb``: the target.
        name: The function, in capitals.
        given: Its arguments.
        after: The items that follow it.
        text: Writes items in the dialect.
    """

    dialect: str
    name: str
    given: Sequence[Items]
    after: Items
    text: Callable[[Items], str]


Special = Callable[[Call], str | None]


def call_written(call: Call) -> str | None:
    """What to write for a call; None if it is fine, or nothing means the same."""
    if not all(call.given):
        return None
    special = _SPECIAL.get(call.dialect, {}).get(call.name)
    if special is not None:
        return special(call)
    template = _WRITTEN.get(call.dialect, {}).get((call.name, len(call.given)))
    return None if template is None else template.format(*map(call.text, call.given))


def now_written(dialect: str) -> str:
    """The current time."""
    return _WRITTEN[dialect]["GETDATE", 0]


def _extract(call: Call) -> str | None:
    sides = split(call.given[0], "FROM") if call.given else []
    if len(sides) != 2 or len(sides[0]) != 1 or not sides[1]:
        return None
    return part_of(unit_named(sides[0][0].text), call.text(sides[1]))


def _part(call: Call) -> str | None:
    if len(call.given) != 2 or len(call.given[0]) != 1:
        return None
    return part_of(unit_named(call.given[0][0].text), call.text(call.given[1]))


def _truncated(call: Call) -> str | None:
    if len(call.given) != 2 or len(call.given[0]) != 1:
        return None
    compared = call.after[1] if len(call.after) > 1 and call.after[0].text in COMPARING else None
    has_time = compared is not None and compared.kind == "text" and ":" in compared.text
    return truncated(unit_named(call.given[0][0].text), call.text(call.given[1]), has_time=has_time)


def _formatted(notation: str) -> Special:
    def write(call: Call) -> str | None:
        if len(call.given) != 2 or len(call.given[1]) != 1 or call.given[1][0].kind != "text":
            return None
        return formatted(call.dialect, notation, call.text(call.given[0]), call.given[1][0].text)

    return write


def _named_part(call: Call) -> str | None:
    return part_of(unit_named(call.name), call.text(call.given[0])) if len(call.given) == 1 else None


def _position(call: Call) -> str | None:
    sides = split(call.given[0], "IN") if len(call.given) == 1 else []
    return f"instr({call.text(sides[1])}, {call.text(sides[0])})" if len(sides) == 2 and all(sides) else None


def _substring(call: Call) -> str | None:
    sides = split(call.given[0], "FROM", "FOR") if len(call.given) == 1 else []
    return f"substr({', '.join(map(call.text, sides))})" if len(sides) > 1 and all(sides) else None


def _concat(call: Call) -> str | None:
    values = [
        call.text(each)
        if len(each) == 1 and each[0].kind in {"text", "number"}
        else f"ifnull({call.text(each)}, '')"
        for each in call.given
    ]
    return f"({' || '.join(values)})" if len(values) > 1 else None


def _joined(function: str) -> Special:
    """GROUP_CONCAT(x SEPARATOR ', ')."""

    def write(call: Call) -> str | None:
        sides = split(call.given[-1], "SEPARATOR") if call.given else []
        if (
            len(call.given) > 1
            or len(sides) != 2
            or any(is_word(each, "DISTINCT", "ORDER") for each in sides[0])
        ):
            return None
        return f"{function}({call.text(sides[0])}, {call.text(sides[1])})"

    return write


def _string_agg(call: Call) -> str | None:
    is_plain = len(call.given) == 2 and not is_word(call.given[0][0], "DISTINCT") and len(call.given[1]) == 1
    return f"group_concat({call.text(call.given[0])}, {call.text(call.given[1])})" if is_plain else None


def _difference(call: Call) -> str | None:
    if len(call.given) == 2:
        unit, later, earlier = "day", *map(call.text, call.given)
    elif len(call.given) == 3 and len(call.given[0]) == 1:
        unit, earlier, later = unit_named(call.given[0][0].text), *map(call.text, call.given[1:])
    else:
        return None
    day = "CAST(julianday(date({})) - julianday(date({})) AS INTEGER)"
    month = "({} - {}) * 12 + {} - {}"
    if unit == "day":
        return day.format(later, earlier)
    years = [part_of("year", value) for value in (later, earlier)]
    if unit == "month":
        return f"({month.format(*years, *(part_of('month', value) for value in (later, earlier)))})"
    return f"({years[0]} - {years[1]})" if unit == "year" else None


def _added(sign: int) -> Special:
    """DATE_ADD(x, INTERVAL 1 DAY), and DATE_SUB."""

    def write(call: Call) -> str | None:
        if len(call.given) != 2 or not call.given[1] or not is_word(call.given[1][0], "INTERVAL"):
            return None
        count, unit, _ = interval(call.given[1], 1)
        return shifted(call.text(call.given[0]), sign * count, unit)

    return write


def _dateadd(call: Call) -> str | None:
    if len(call.given) != 3 or len(call.given[0]) != 1:
        return None
    count = call.text(call.given[1]).replace(" ", "")
    if not count.lstrip("-").isdigit():
        return None
    return shifted(call.text(call.given[2]), int(count), unit_named(call.given[0][0].text))


def _duckdb_difference(call: Call) -> str | None:
    if len(call.given) == 2:
        later, earlier = map(call.text, call.given)
        return f"date_diff('day', CAST({earlier} AS DATE), CAST({later} AS DATE))"
    if len(call.given) != 3 or len(call.given[0]) != 1:
        return None
    unit, (earlier, later) = unit_named(call.given[0][0].text), map(call.text, call.given[1:])
    return f"date_diff('{unit}', CAST({earlier} AS TIMESTAMP), CAST({later} AS TIMESTAMP))"


def _duckdb_added(sign: str) -> Special:
    """DATEADD(day, 1, x), DATE_ADD(x, INTERVAL 1 DAY) and DATE_SUB."""

    def write(call: Call) -> str | None:
        if len(call.given) == 3 and len(call.given[0]) == 1:
            count, value = map(call.text, call.given[1:])
            return (
                f"(CAST({value} AS TIMESTAMP) {sign} INTERVAL ({count}) {unit_named(call.given[0][0].text)})"
            )
        if len(call.given) == 2 and call.given[1] and is_word(call.given[1][0], "INTERVAL"):
            return f"(CAST({call.text(call.given[0])} AS TIMESTAMP) {sign} {call.text(call.given[1])})"
        return None

    return write


_SPECIAL: Final[dict[str, dict[str, Special]]] = {
    "sqlite": {
        **dict.fromkeys(_PARTS, _named_part),
        "CONCAT": _concat,
        "DATEADD": _dateadd,
        "DATEDIFF": _difference,
        "DATEPART": _part,
        "DATE_ADD": _added(1),
        "DATE_DIFF": _difference,
        "DATE_FORMAT": _formatted("mysql"),
        "DATE_PART": _part,
        "DATE_SUB": _added(-1),
        "DATE_TRUNC": _truncated,
        "EXTRACT": _extract,
        "GROUP_CONCAT": _joined("group_concat"),
        "POSITION": _position,
        "STRING_AGG": _string_agg,
        "SUBSTRING": _substring,
        "TO_CHAR": _formatted("oracle"),
        "TO_DATE": _formatted("to_date"),
    },
    "duckdb": {
        "DATEADD": _duckdb_added("+"),
        "DATEDIFF": _duckdb_difference,
        "DATE_ADD": _duckdb_added("+"),
        "DATE_DIFF": _duckdb_difference,
        "DATE_SUB": _duckdb_added("-"),
        "DATE_FORMAT": _formatted("mysql"),
        "GROUP_CONCAT": _joined("string_agg"),
        "TO_CHAR": _formatted("oracle"),
    },
}
