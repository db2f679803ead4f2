"""Logs: immutable sequences that share a buffer without ever showing it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from session.slices import Log


@given(
    choices=st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from([None, 1, 2, 5])), max_size=80),
    start=st.lists(st.integers(), max_size=5).map(tuple),
)
def test_any_tree_of_logs_holds_what_plain_tuples_would(
    choices: list[tuple[int, int | None]], start: tuple[int, ...]
) -> None:
    logs, models = [Log(start)], [start]
    for number, (pick, limit) in enumerate(choices):
        parent = pick % len(logs)
        grown = (*models[parent], number)
        logs.append(logs[parent].push(number, limit))
        models.append(grown if limit is None else grown[-limit:])
    assert [log.latest for log in logs] == [model[-1] if model else None for model in models]
    assert [log.items for log in logs] == models
