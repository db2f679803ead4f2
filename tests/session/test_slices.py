"""Logs that grow from one another hold what tuples would."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from session.slices import LateLog, Log


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
