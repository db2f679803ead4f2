"""Rows as a table, and values as JSON."""

from __future__ import annotations

import csv
import datetime
import decimal
import io
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from syrupy.assertion import SnapshotAssertion

from planning.cli.ask import csv_lines, laid_out
from planning.cli.terminal import as_json

COLUMNS = ["id", "name", "name", "price", "raw\x1b[2J", "note"]
ROWS: list[list[Any]] = [
    [1, "Ada", None, 2.5, b"\x00\xff", "one\ntwo\tthree"],
    [20_000, "NULL", "'NULL'", 1e300, b"", "漢字かな交じり文の長い長い長い長い説明文"],
    [-3, "", "NULLs", None, b"x" * 80, "e\u0301\U0001f600 \x9b31m[red]"],
    [None, "a" * 3_000, "true", float("inf"), None, datetime.date(2026, 1, 2)],
]


def shown(width: int | None, columns: list[str], rows: list[list[Any]]) -> str:
    return "".join(f"{line}\n" for line in laid_out(columns, rows, width)[0])


@pytest.mark.parametrize("width", [40, 120, None])
def test_a_table_fits_its_width(width: int | None, snapshot: SnapshotAssertion) -> None:
    assert shown(width, COLUMNS, ROWS) == snapshot


def test_values_in_values_are_json_and_null_differs_from_every_text() -> None:
    rows: list[list[Any]] = [[["\u00e9", None], {"k": datetime.date(2026, 1, 2)}]]
    assert shown(80, ["list", "struct"], rows).splitlines()[-1] == '["\u00e9", null]   {"k": "2026-01-02"}'
    texts: list[list[Any]] = [[None], ["NULL"], ["'NULL'"], ["null"], [""]]
    assert shown(80, ["value"], texts).splitlines()[2:] == ["NULL", "'NULL'", "'''NULL'''", "null", ""]


def test_columns_that_have_no_room_are_omitted() -> None:
    names = [f"column_{number}" for number in range(30)]
    assert laid_out(names, [["x" * 20 for _ in range(30)]], 40)[1] == 4


values = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=40), st.binary(max_size=9)
)


@given(
    st.lists(st.tuples(st.text(max_size=20), values, values), min_size=1, max_size=12),
    st.integers(min_value=1, max_value=150),
)
def test_whatever_the_rows_are_no_line_is_wider_than_the_terminal(
    columns: list[tuple[str, Any, Any]], width: int
) -> None:
    names, *rows = (list(each) for each in zip(*columns, strict=True))
    lines = laid_out(names, rows, width)[0]
    assert [line for line in lines if cell_len(line) > width or not line.isprintable()] == []
    assert len(lines) >= len(rows)


def test_csv_has_no_formulas() -> None:
    formulas = [
        "=1+1",
        "+cmd|' /C calc'!A0",
        "-2+3",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "\uff1d1",
        "-1 day",
        "+49 30",
    ]
    data: list[Any] = [
        "a=1",
        "",
        "'x",
        -5,
        -2.5,
        -math.inf,
        decimal.Decimal("-1.10"),
        "-5",
        "+1.5e3",
        None,
        " =1",
    ]
    written = "".join(csv_lines(["=name", "-5"], [formulas, data]))
    names, first, second = csv.reader(io.StringIO(written, newline=""))
    assert names == ["'=name", "-5"]
    assert first == [f"'{each}" for each in formulas]
    assert second == ["" if each is None else str(each) for each in data]


def test_json_is_strict() -> None:
    value = {
        "floats": [1.5, math.nan, math.inf, -math.inf],
        "bytes": [b"\x00\xff", bytearray(b"a"), memoryview(b"")],
        "rest": ({1: None}, True, 2**70, "\udc80\x1b", datetime.date(2026, 1, 2), decimal.Decimal("1.10")),
        "sets": {"one"},
    }
    text = as_json(value)
    assert text.isascii()
    assert json.loads(text, parse_constant=pytest.fail) == {
        "floats": [1.5, "NaN", "Infinity", "-Infinity"],
        "bytes": ["x'00ff'", "x'61'", "x''"],
        "rest": [{"1": None}, True, 2**70, "\udc80\x1b", "2026-01-02", "1.10"],
        "sets": ["one"],
    }
