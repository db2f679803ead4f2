"""Slices: the reducers that come with a session, as plain functions; logs that grow from one another."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from laws import check_reducer_laws
from session import Reducer, append, keep_last, replace_latest, replace_latest_by, upsert_by
from session.slices import LateLog, Log


@dataclass(frozen=True)
class Row:
    key: str
    value: int


def row_key(row: Row) -> str:
    return row.key


ROWS = st.builds(Row, st.sampled_from("abc"), st.integers(0, 3))
SLICES = st.lists(ROWS, max_size=6).map(tuple)
REDUCERS: dict[str, Reducer] = {
    "append": append,
    "keep_last_1": keep_last(1),
    "keep_last_3": keep_last(3),
    "upsert_by": upsert_by(row_key),
    "replace_latest": replace_latest,
    "replace_latest_by": replace_latest_by(row_key),
}


@pytest.mark.parametrize("name", REDUCERS)
@given(slice_=SLICES, event=ROWS)
def test_every_reducer_keeps_the_laws(name: str, slice_: tuple[Row, ...], event: Row) -> None:
    check_reducer_laws(REDUCERS[name], slice_, event)


@given(slice_=SLICES, event=ROWS, limit=st.integers(1, 8))
def test_keep_last_keeps_the_newest(slice_: tuple[Row, ...], event: Row, limit: int) -> None:
    everything = [*slice_, event]
    assert list(keep_last(limit)(slice_, event)) == everything[max(0, len(everything) - limit) :]


@given(events=st.lists(ROWS))
def test_one_item_for_each_key_in_order_of_first_or_of_last_sight(events: list[Row]) -> None:
    upserted, replaced = tuple[Row, ...](), tuple[Row, ...]()
    first, last = dict[str, Row](), dict[str, Row]()
    for event in events:
        upserted = upsert_by(row_key)(upserted, event)
        replaced = replace_latest_by(row_key)(replaced, event)
        last.pop(event.key, None)
        first[event.key] = last[event.key] = event
    assert (upserted, replaced) == (tuple(first.values()), tuple(last.values()))


@pytest.mark.parametrize("limit", [0, -1, 2.5, "3"])
def test_a_limit_that_is_no_whole_number_of_at_least_one_is_refused(limit: Any) -> None:
    with pytest.raises(ValueError) as caught:
        keep_last(limit)
    assert str(caught.value) == f"limit must be a whole number of at least 1, got {limit!r}"


@pytest.mark.parametrize("first", [Log, lambda: Log(("a", "b")), lambda: LateLog(lambda: ("a", "b"))])
@given(st.lists(st.integers(0, 3), max_size=80), st.none() | st.integers(1, 40))
@example([0] * 80, 2)
@example([0, 1, 1, 0], None)
def test_each_log_has_its_own_entries_whichever_grew_from_it(
    first: Any, pushes: list[int], limit: int | None
) -> None:
    logs = [(first(), first().items)]
    for number, back in enumerate(pushes):
        log, items = logs[max(len(logs) - 1 - back, 0)]
        items = (*items, number) if limit is None else (*items, number)[-limit:]
        logs.append((log.push(number, limit), items))
    for log, items in logs:
        assert (log.latest, log.alike().items, log.items) == (items[-1] if items else None, items, items)
        assert log == log.alike() == items and hash(log) == hash(items)
