"""Workflows as flowcharts and as trees: everything is drawn once, and no text of a workflow acts."""

from __future__ import annotations

import pytest
from drawn_workflows import HOSTILE, WORKFLOWS, comb, graphs, read_chart, read_tree, step
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion
from workflow_strategies import workflows

from planning.workflow import Workflow
from planning.workflow.drawing import called, mermaid, state_of, tree_lines

SHAPES = {"tool": "[", "handler": "[[", "agent": "{{", "thinking": "(["}
CHECK = "call validate_workflow first: it says where"


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_as_a_flowchart(name: str, snapshot: SnapshotAssertion) -> None:
    text = mermaid(WORKFLOWS[name])
    read_chart(text)
    assert text == snapshot


@given(workflows() | graphs())
def test_a_flowchart_has_each_step_and_each_dependency_once(workflow: Workflow) -> None:
    chart = read_chart(mermaid(workflow))
    ids = [each.step_id for each in workflow.steps]
    assert len(chart.nodes) == len(ids)
    assert chart.edges == [
        (ids.index(other), at) for at, each in enumerate(workflow.steps) for other in each.depends_on
    ]
    kinds = [called(each).split()[0] for each in workflow.steps]
    assert [node.shape for node in chart.nodes] == [SHAPES[kind] for kind in kinds]
    states = [state_of(each) for each in workflow.steps]
    if set(states) == {"pending"}:
        assert ({node.state for node in chart.nodes}, chart.classes) == ({None}, [])
    else:
        assert [node.state for node in chart.nodes] == states
        assert set(chart.classes) == set(states)
        assert len(chart.classes) == len(set(states))


@given(st.text(st.characters(exclude_categories=["Cs"])) | st.lists(st.sampled_from(HOSTILE)).map(" ".join))
def test_the_label_of_a_node_is_the_text_and_nothing_else(text: str) -> None:
    (node,) = read_chart(mermaid(Workflow(steps=(step("id", description=text),)))).nodes
    plain = " ".join(text.split())
    plain = plain if len(plain) <= 80 else plain[:79].rstrip() + "…"
    shown = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in plain)
    assert node.label == (["id", shown, "thinking"] if shown else ["id", "thinking"])


def test_a_long_text_is_cut_in_a_label() -> None:
    long = step("i" * 61, description=" " * 10_000 + "word", type="tool", name="n" * 60)
    (node,) = read_chart(mermaid(Workflow(steps=(long,)))).nodes
    assert node.label == ["i" * 59 + "…", "…", "tool " + "n" * 60]


def test_a_dependency_that_is_named_twice_is_one_edge() -> None:
    workflow = Workflow(steps=(step("a"), step("b", "a", "a")))
    assert read_chart(mermaid(workflow)).edges == [(0, 1)]
    assert read_tree(tree_lines(workflow, levels=3)) == {"a": set(), "b": {"a"}}


@given(workflows() | graphs(), st.integers(0, 3))
def test_every_dependency_can_be_read_from_the_tree(workflow: Workflow, levels: int) -> None:
    lines = list(tree_lines(workflow, levels=levels))
    assert read_tree(lines) == {each.step_id: set(each.depends_on) for each in workflow.steps}
    assert max(len(line.lead) for line in lines) <= 2 + 3 * levels


@given(graphs(), st.integers(0, 3))
def test_every_rail_of_a_tree_leads_to_a_step(workflow: Workflow, levels: int) -> None:
    leads = [line.lead for line in tree_lines(workflow, levels=levels)]
    for lead, following in zip(leads, [*leads[1:], ""], strict=True):
        for column, drawn in enumerate(lead):
            goes_on = following[column : column + 1] in {"│", "├", "└"}
            assert goes_on == (drawn in {"│", "├"})


@pytest.mark.parametrize("levels", [0, 12])
def test_ten_thousand_steps_are_drawn_without_recursion_and_stay_on_the_page(levels: int) -> None:
    chain = Workflow(steps=tuple(step(str(n), *([str(n - 1)] if n else [])) for n in range(10_000)))
    hubs = tuple(f"hub {n}" for n in range(10_000))
    fan = Workflow(steps=(step("root"), *(step(each, "root") for each in hubs), step("join", *hubs)))
    for workflow, deepest in ((chain, 2), (fan, min(5, 2 + 3 * levels)), (comb(5_000), 2 + 3 * levels)):
        lines = list(tree_lines(workflow, levels=levels))
        assert len(lines) == len(workflow.steps)
        assert max(len(line.lead) for line in lines) == deepest
        assert len(read_chart(mermaid(workflow)).nodes) == len(workflow.steps)


def test_a_chart_of_ten_thousand_steps_takes_less_than_twelve_megabytes() -> None:
    signs = "#" * 99
    worst = tuple(step(f"{n}{signs}", description=signs, agent=signs) for n in range(10_000))
    assert len(mermaid(Workflow(steps=worst))) < 12_000_000


@pytest.mark.parametrize(
    ("steps", "told"),
    [
        ((step("a", "b"),), "no step has the id 'b'"),
        ((step("a"), step("a")), "two steps have the same id"),
        ((step("a", "c"), step("b", "a"), step("c", "b")), "steps depend on each other in a circle"),
    ],
    ids=["unknown", "twice", "circle"],
)
def test_what_is_no_valid_workflow_is_refused(steps: tuple[object, ...], told: str) -> None:
    with pytest.raises(ValueError, match=f"^{told}; {CHECK}$"):
        list(tree_lines(Workflow(steps=steps), levels=3))  # type: ignore[arg-type] # they are steps
