"""Graphs of steps: their order, the first cycle, what is ready, and what waits for what."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning.graph import Graph, written

Needs = dict[int, list[int]]


@st.composite
def graphs(draw: st.DrawFn, *, acyclic: bool = False) -> Needs:
    size = draw(st.integers(0, 9))
    names = draw(st.permutations(range(size)))
    return {
        names[at]: draw(st.lists(st.sampled_from(names[:at] if acyclic else names))) if at else []
        for at in range(size)
    }


def reachable(needs: Needs) -> dict[int, set[int]]:
    """What each step waits for, by going on until nothing is new."""
    reached = {step: set(others) for step, others in needs.items()}
    for _ in needs:
        reached = {step: each.union(*(reached[other] for other in each)) for step, each in reached.items()}
    return reached


@given(graphs())
def test_a_cycle_is_reported_exactly_where_there_is_one_from_its_earliest_step(needs: Needs) -> None:
    cycle, places = Graph(needs).cycle, list(needs)
    assert bool(cycle) is any(step in reached for step, reached in reachable(needs).items())
    assert all(other in needs[step] for step, other in pairwise(cycle))
    assert cycle[:1] == cycle[-1:]
    assert len(set(cycle)) == max(len(cycle) - 1, 0)
    assert cycle[:1] == sorted(cycle, key=places.index)[:1]


@pytest.mark.parametrize(
    ("needs", "cycle"),
    [
        ({"a": ["b"], "b": ["a"], "c": ["d", "a"], "d": ["c"]}, "a -> b -> a"),
        ({"z": [], "a": ["b"], "b": ["a"], "c": ["d", "z"], "d": ["c"]}, "a -> b -> a"),
        ({"y": ["c"], "a": ["b"], "b": ["a"], "c": ["c"]}, "a -> b -> a"),
        ({"b": ["c"], "a": ["b"], "c": ["a"]}, "b -> c -> a -> b"),
        ({"v": ["w"], "p": ["q"], "q": ["p", "v"], "w": ["v"]}, "p -> q -> p"),
        ({str(at): [str((at + 1) % 8)] for at in range(8)}, "0 -> 1 -> 2 -> 3 -> 4 -> 5 -> 6 -> 7 -> 0"),
        ({str(at): [str((at + 1) % 9)] for at in range(9)}, "0 -> 1 -> 2 -> ... 4 more ... -> 7 -> 8 -> 0"),
        ({"a": ["x"], "b": ["a", "a"]}, ""),
    ],
)
def test_of_several_cycles_the_first_is_written(needs: dict[str, list[str]], cycle: str) -> None:
    assert written(Graph(needs).cycle) == cycle


@given(graphs())
def test_each_step_is_one_level_behind_the_last_that_it_waits_for_and_cycles_come_last(needs: Needs) -> None:
    levels, reached = Graph(needs).levels, reachable(needs)
    cyclic = {step for step in needs if step in reached[step]}
    ordered = [step for step in needs if cyclic.isdisjoint({step, *reached[step]})]
    for step in ordered:
        assert levels[step] == max((levels[other] + 1 for other in needs[step]), default=0)
    rest = [step for step in needs if step not in ordered]
    first = max((levels[step] + 1 for step in ordered), default=0)
    assert [levels[step] for step in rest] == list(range(first, first + len(rest)))
    assert sorted(levels) == sorted(needs)
    assert list(levels.values()) == sorted(levels.values())


@given(graphs(acyclic=True), st.data())
def test_a_step_is_ready_once_when_all_that_it_waits_for_is_done(needs: Needs, data: st.DataObject) -> None:
    graph, done = Graph(needs), set[int]()
    ready = list(graph.ready())
    assert ready == [step for step in needs if not needs[step]]
    while ready:
        step = ready.pop(data.draw(st.integers(0, len(ready) - 1)))
        graph.done(step)
        done.add(step)
        new = graph.ready()
        assert set(new) == {
            other for other in needs if step in needs[other] and done.issuperset(needs[other])
        }
        ready += new
    assert done == set(needs)
    with pytest.raises(ValueError, match="not added"):
        graph.done(10)


@given(graphs())
def test_what_is_behind_a_step_is_all_that_waits_for_it_also_through_others(needs: Needs) -> None:
    graph, reached = Graph(needs), reachable(needs)
    for step in needs:
        behind = graph.behind(step)
        assert sorted(behind) == sorted(other for other in needs if step in reached[other])


@given(graphs(acyclic=True))
def test_which_step_waits_for_which_is_what_going_on_until_nothing_is_new_finds(needs: Needs) -> None:
    reached = reachable(needs)
    pairs = [(step, other) for step in needs for other in needs if step != other]
    assert Graph(needs).waits(pairs) == {(step, other): other in reached[step] for step, other in pairs}


def test_what_waits_for_a_step_in_a_cycle_waits_for_all_of_the_cycle() -> None:
    graph = Graph({"x": ["c"], "c": ["s"], "y": ["s", "x"], "s": ["c"], "z": []})
    pairs = [("y", "c"), ("x", "s"), ("y", "x"), ("c", "x"), ("z", "s")]
    assert [*graph.waits(pairs).values()] == [True, True, True, False, False]


def test_the_end_of_a_long_chain_waits_for_all_and_of_a_cycle_of_all_two_are_named() -> None:
    size = 20_000
    graph = Graph({step: [step - 1] if step else [] for step in range(size)})
    assert graph.cycle == []
    pairs = [(size - 1, step) for step in range(0, size - 1, 9)]
    pairs += [(step, size - 1) for step in range(0, size - 1, 9)]
    assert graph.waits(pairs) == {(step, other): step == size - 1 for step, other in pairs}
    ring = Graph({step: [other for other in range(300) if other != step] for step in range(300)})
    assert ring.cycle == [0, 1, 0]
