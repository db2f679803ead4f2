"""Logs: immutable sequences that share a buffer without ever showing it."""

from __future__ import annotations

import weakref

from hypothesis import given
from hypothesis import strategies as st

from session.slices import Log, items_of, latest_of


def test_a_log_grows_and_its_ancestors_stay() -> None:
    empty = Log()
    one = empty.push("a")
    two = one.push("b")
    assert (empty.items, one.items, two.items) == ((), ("a",), ("a", "b"))
    assert (empty.latest, one.latest, two.latest) == (None, "a", "b")


def test_two_logs_that_grow_from_one_do_not_see_each_other() -> None:
    root = Log(("a",)).push("b")
    left, right = root.push("left"), root.push("right")
    assert left.items == ("a", "b", "left")
    assert right.items == ("a", "b", "right")
    assert (left.push("x").items, right.push("y").items) == (
        ("a", "b", "left", "x"),
        ("a", "b", "right", "y"),
    )


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


def test_a_bounded_log_lets_go_of_what_it_dropped() -> None:
    class Thing: ...

    log = Log()
    alive = 0

    def gone(_ref: object) -> None:
        nonlocal alive
        alive -= 1

    refs = []
    for _ in range(500):
        things = [Thing()]
        refs.append(weakref.ref(things[0], gone))
        alive += 1
        log = log.push(things.pop(), 3)
    assert len(log.items) == 3
    assert alive <= 2 * 3 + 34


def test_a_log_equals_a_log_and_a_tuple_with_the_same_entries() -> None:
    log = Log().push(1).push(2)
    assert log == Log((1, 2))
    assert log == (1, 2)
    assert log != (1,)
    assert log != [1, 2]
    assert hash(log) == hash(Log((1, 2))) == hash((1, 2))


def test_tuples_and_logs_are_read_alike() -> None:
    for slice_ in ((1, 2), Log((1, 2)), Log((1,)).push(2)):
        assert items_of(slice_) == (1, 2)
        assert latest_of(slice_) == 2
    for empty in ((), Log()):
        assert items_of(empty) == ()
        assert latest_of(empty) is None


def test_the_items_of_a_log_are_built_once() -> None:
    log = Log().push(1)
    assert log.items is log.items
