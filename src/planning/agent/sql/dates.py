"""Date functions of other databases, written for SQLite, where a date is a string."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["formatted", "part_of", "shifted", "truncated", "unit_named"]

_UNITS: Final = {
    "d": "day", "dd": "day", "dayofmonth": "day", "dayofyear": "doy", "dy": "doy", "h": "hour",
    "hh": "hour", "m": "month", "mi": "minute", "mm": "month", "q": "quarter", "qq": "quarter",
    "s": "second", "ss": "second", "y": "year", "yy": "year", "yyyy": "year",
}  # fmt: skip
_CODES: Final = {
    "year": "%Y", "month": "%m", "day": "%d", "hour": "%H", "minute": "%M", "second": "%S",
    "doy": "%j", "dow": "%w", "epoch": "%s",
}  # fmt: skip
_MONTHS: Final = {"month": 1, "quarter": 3, "year": 12}
_NOTATIONS: Final = {
    "oracle": {
        "YYYY": "%Y", "MM": "%m", "DDD": "%j", "DD": "%d", "HH24": "%H", "MI": "%M", "SS": "%S",
    },
    "dotnet": {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"},
    "mysql": {
        "%Y": "%Y", "%m": "%m", "%d": "%d", "%H": "%H", "%i": "%M", "%s": "%S", "%S": "%S", "%j": "%j",
        "%T": "%H:%M:%S", "%%": "%%",
    },
}  # fmt: skip
_TIME: Final = re.compile(r"datetime\(|CURRENT_TIMESTAMP\Z|'[^']*:[^']*'\Z", re.IGNORECASE)
_DATE: Final = re.compile(r"date\(|CURRENT_DATE\Z|'[^':]*'\Z", re.IGNORECASE)


def unit_named(word: str) -> str:
    """The full name of a unit of time."""
    unit = word.strip("'\"").lower()
    unit = unit[:-1] if unit.endswith("s") and len(unit) > 2 else unit
    return _UNITS.get(unit, unit)


def part_of(unit: str, value: str) -> str | None:
    """A part of a date as a number; None for a unit that SQLite lacks."""
    if unit == "quarter":
        return f"((CAST(strftime('%m', {value}) AS INTEGER) + 2) / 3)"
    return f"CAST(strftime('{_CODES[unit]}', {value}) AS INTEGER)" if unit in _CODES else None


def truncated(unit: str, value: str, *, has_time: bool) -> str | None:
    """The beginning of the period of a date, with midnight as its time if ``has_time``."""
    date = "datetime" if has_time else "date"
    if unit in {"year", "month", "day"}:
        return f"{date}({value}, 'start of {unit}')" if unit != "day" or has_time else f"date({value})"
    if unit == "quarter":
        months = f"((CAST(strftime('%m', {value}) AS INTEGER) + 2) % 3)"
        return f"{date}({value}, 'start of month', '-' || {months} || ' months')"
    if unit == "week":
        return f"{date}({value}, 'start of day', '-6 days', 'weekday 1')"
    if unit in {"hour", "minute"}:
        return f"strftime('%Y-%m-%d %H:{'%M' if unit == 'minute' else '00'}:00', {value})"
    return None


def shifted(value: str, count: int, unit: str) -> str | None:
    """A date some time later or earlier, with a time if it has one.

    If a month is too short for the day, the result is its last day.
    """
    if not count or unit not in {"day", "week", "hour", "minute", "second", *_MONTHS}:
        return None
    is_date = bool(_DATE.match(value))
    is_time = bool(_TIME.match(value)) or unit in {"hour", "minute", "second"}
    function = "date" if is_date and not is_time else "datetime"
    if unit in _MONTHS:
        months = count * _MONTHS[unit]
        last = f"date({value}, 'start of month', '{months + 1:+d} months', '-1 day')"
        last += "" if function == "date" else f" || ' ' || time({value})"
        moved = f"min({function}({value}, '{months:+d} months'), {last})"
    else:
        amount, unit = (count * 7, "day") if unit == "week" else (count, unit)
        moved = f"{function}({value}, '{amount:+d} {unit}{'s' * (abs(amount) != 1)}')"
    return moved if is_date or is_time else f"substr({moved}, 1, length({value}))"


def formatted(dialect: str, notation: str, value: str, template: str) -> str | None:
    """A date as a string; None for a template that strftime cannot write, as with names of months."""
    if notation == "to_date":
        return f"date({value})" if template == "'YYYY-MM-DD'" else None
    codes = _NOTATIONS[notation]
    pattern = "|".join(map(re.escape, sorted(codes, key=len, reverse=True)))
    template = template.upper() if notation == "oracle" else template
    if re.search("[A-Za-z%]", re.sub(pattern, "", template)):
        return None
    code = re.sub(pattern, lambda found: codes[found[0]], template)
    return (
        f"strftime(CAST({value} AS TIMESTAMP), {code})"
        if dialect == "duckdb"
        else f"strftime({code}, {value})"
    )
