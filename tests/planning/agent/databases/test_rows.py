"""Rows as they are fetched: how many, and how large."""

from __future__ import annotations

import pytest

from planning.agent.databases import rows
from planning.agent.databases.rows import fetched

SMALL = [(number, "x") for number in range(40)]
LARGE = ("x" * 1_000_000,)


@pytest.mark.parametrize("most", [1, 15, 16, 17, 39, 40, 41])
def test_as_many_rows_are_kept_as_are_wanted(most: int) -> None:
    assert fetched(iter(SMALL), most) == ([list(row) for row in SMALL[:most]], most < 40)


def test_rows_that_are_too_large_together_are_cut_and_said_to_be() -> None:
    kept, is_more = fetched([LARGE] * 40, 100)
    assert (len(kept), is_more) == (rows.MOST_BYTES // 1_000_005, True)
    assert fetched([LARGE] * 15, 100) == ([list(LARGE)] * 15, False)
