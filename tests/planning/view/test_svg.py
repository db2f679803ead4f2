"""Where the steps of a workflow are drawn; and a plan and a workflow as SVG."""

from __future__ import annotations

from itertools import combinations, pairwise
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from page_data import STEPS, a_workflow
from syrupy.assertion import SnapshotAssertion

from planning import Plan, PlanStep
from planning.observe.text import fitted
from planning.view.graph import HEIGHT, MOST_EDGES, WIDTH, graph_of
from planning.view.states import RunStates
from planning.view.svg import graph_svg, plan_svg
from planning.workflow.model import Workflow, WorkflowStep
from strategies import plans


def _steps(rows: list[set[int]]) -> dict[str, list[str]]:
    """By step, which of those before it it depends on."""
    return {f"s{at}": [f"s{other}" for other in sorted(row) if other < at] for at, row in enumerate(rows)}


graphs = st.lists(st.sets(st.integers(0, 30), max_size=4), max_size=30).map(_steps)


def boxes(graph: Any) -> dict[str, tuple[int, int, int, int]]:
    return {node["id"]: (node["x"], node["y"], node["w"], node["h"]) for node in graph["nodes"]}


@given(steps=graphs)
def test_each_step_follows_all_that_it_depends_on_with_a_line_from_each(steps: dict[str, list[str]]) -> None:
    graph = graph_of(a_workflow(steps))
    assert graph_of(a_workflow(steps)) == graph
    placed = boxes(graph)
    for (x, y, w, h), (u, v, _, _) in combinations(placed.values(), 2):
        assert abs(x - u) >= w or abs(y - v) >= h
    for x, y, w, h in placed.values():
        assert 0 <= x <= graph["width"] - w
        assert 0 <= y <= graph["height"] - h
    edges = {(edge["from"], edge["to"]): edge["points"] for edge in graph["edges"]}
    assert edges.keys() == {(other, name) for name, others in steps.items() for other in others}
    along = 0 if graph.get("across") else 1
    end = (0, HEIGHT // 2) if along == 0 else (WIDTH // 2, 0)
    for (source, to), points in edges.items():
        (x, y), (u, v) = placed[source][:2], placed[to][:2]
        far = (WIDTH, HEIGHT // 2) if along == 0 else (WIDTH // 2, HEIGHT)
        assert points[0] == [x + far[0], y + far[1]]
        assert points[-1] == [u + end[0], v + end[1]]
        assert all(one[along] < other[along] for one, other in pairwise(points))


CHAIN = {f"s{at:02}": [f"s{at - 1:02}"] if at else [] for at in range(12)}
FAN = {"first": [], **{f"s{at}": ["first"] for at in range(10)}, "last": [f"s{at}" for at in range(10)]}


@pytest.mark.parametrize(("steps", "is_across"), [(CHAIN, False), (FAN, True)], ids=["a chain", "a fan"])
def test_twelve_steps_are_drawn_so_that_they_can_be_read_on_a_page(
    steps: dict[str, list[str]], *, is_across: bool
) -> None:
    graph = graph_of(a_workflow(steps))
    assert graph.get("across", False) is is_across
    assert min(700 / graph["width"], 640 / graph["height"]) > 0.72


def test_more_lines_than_can_be_read_are_omitted_the_longest_first() -> None:
    graph = graph_of(a_workflow({f"s{at}": [f"s{other}" for other in range(at)] for at in range(200)}))
    assert len(graph["edges"]) == MOST_EDGES
    assert graph["omitted"] == 200 * 199 // 2 - MOST_EDGES
    drawn = {(edge["from"], edge["to"]) for edge in graph["edges"]}
    assert {(f"s{at}", f"s{at + 1}") for at in range(199)} <= drawn


@pytest.mark.parametrize(
    "steps",
    [{"a": ["b"], "b": ["a"], "c": ["b"], "d": []}, {"a": ["a"]}, {"a": ["gone"]}, {}],
    ids=["a cycle", "itself", "an unknown step", "no step"],
)
def test_an_invalid_workflow_is_drawn_as_far_as_it_goes(steps: dict[str, list[str]]) -> None:
    graph = graph_of(a_workflow(steps))
    assert [node["id"] for node in graph["nodes"]] == list(steps)
    assert len(set(boxes(graph).values())) == len(steps)


HOSTILE = "</text><script>alert(1)</script>\x00\x1b[31m\ud800\u2028" + "日本" * 3_000


@given(plan=plans())
def test_a_picture_of_any_plan_is_well_formed_and_has_a_row_for_each_step(plan: Plan) -> None:
    root = ET.fromstring(plan_svg(plan))  # noqa: S314 - what was just written
    assert len(root.findall("{http://www.w3.org/2000/svg}g")) == len(plan.steps)


def test_hostile_text_stays_text_in_a_picture() -> None:
    step = PlanStep("S001", HOSTILE, HOSTILE, "done", (HOSTILE,))
    flow = Workflow(goal=HOSTILE, steps=(WorkflowStep(step_id=HOSTILE, description=HOSTILE, agent=HOSTILE),))
    for svg in (plan_svg(Plan(HOSTILE, "active", (step,))), graph_svg(RunStates("r", flow))):
        root = ET.fromstring(svg)  # noqa: S314 - what was just written
        assert {each.tag.rpartition("}")[2] for each in root.iter()} <= {
            "svg", "style", "defs", "marker", "path", "rect", "g", "title", "text",
        }  # fmt: skip
        assert svg.encode().isascii() is False
        assert len(svg) < 20_000


def test_the_pictures_are_drawn_like_this(snapshot: SnapshotAssertion) -> None:
    steps = (
        PlanStep("S001", "Reproduce it", "On 3.12", "done", ("It was the cookie",)),
        PlanStep("S002", "Mend it", None, "in_progress", ()),
        PlanStep("S003", "Tell the team", None, "blocked", ()),
        PlanStep("S004", "Release", None, "pending", ()),
    )
    assert plan_svg(Plan("Fix the login", "active", steps)) == snapshot(name="plan")
    states: Any = dict(zip(STEPS, ("completed", "in_progress", "failed", "skipped", "pending"), strict=True))
    assert graph_svg(
        RunStates("run", a_workflow(), {name: [{"state": state}] for name, state in states.items()})
    ) == snapshot(name="graph")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("short", "short"),
        ("exactly ten", "exactly t…"),
        ("ten of ten", "ten of ten"),
        ("日本語の題名", "日本語の…"),
        ("a\nb\tc", "a b c"),
        ("\x00", "\\x00"),
        ("x" * 10_000, "xxxxxxxxx…"),
        ("a" + " " * 100 + "b", "a…"),
        ("", ""),
    ],
)
def test_text_is_cut_where_it_is_wider_than_its_place(text: str, shown: str) -> None:
    assert fitted(text, 10) == shown
