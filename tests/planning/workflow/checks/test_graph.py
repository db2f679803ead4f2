"""Graphs of steps: cycles, and what depends on what."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from planning.workflow.checks.overview import Graph

Edges = list[list[int]]


@st.composite
def graphs(draw: st.DrawFn) -> Edges:
    size = draw(st.integers(0, 9))
    nodes = range(size)
    return [
        draw(st.lists(st.sampled_from([n for n in nodes if n != node]))) if size > 1 else [] for node in nodes
    ]


def reachable(edges: Edges) -> list[set[int]]:
    """What each node depends on, by going on until nothing is new."""
    reached = [set(each) for each in edges]
    for _ in edges:
        reached = [each.union(*(reached[other] for other in each)) for each in reached]
    return reached


@given(graphs())
def test_every_group_of_nodes_that_depend_on_each_other_has_one_cycle_along_the_edges(edges: Edges) -> None:
    cycles, reached = Graph(edges).cycles, reachable(edges)
    for cycle in cycles:
        assert len(cycle) > 1
        assert all(after in edges[node] for node, after in zip(cycle, [*cycle[1:], cycle[0]], strict=True))
    listed = [node for cycle in cycles for node in cycle]
    assert len(listed) == len(set(listed))
    for node, below in enumerate(reached):
        together = {other for other in below if node in reached[other]}
        assert not together or together & set(listed)


@given(graphs())
def test_who_depends_on_whom_is_what_going_on_until_nothing_is_new_finds(edges: Edges) -> None:
    edges = [[other for other in each if other < node] for node, each in enumerate(edges)]
    reached = reachable(edges)
    pairs = [(node, other) for node in range(len(edges)) for other in range(len(edges)) if node != other]
    assert Graph(edges).reaches(pairs) == {(node, other): other in reached[node] for node, other in pairs}


def test_where_all_depend_on_all_each_is_told_once() -> None:
    cycles = Graph([[other for other in range(300) if other != node] for node in range(300)]).cycles
    assert sorted(node for cycle in cycles for node in cycle) == list(range(300))


def test_a_long_chain_has_no_cycle_and_each_depends_on_all_before_it() -> None:
    size = 100_000
    graph = Graph([[node - 1] if node else [] for node in range(size)])
    assert graph.cycles == []
    pairs = [(size - 1, node) for node in range(0, size - 1, 9)] + [
        (node, size - 1) for node in range(0, size - 1, 9)
    ]
    assert graph.reaches(pairs) == {(node, other): node == size - 1 for node, other in pairs}
