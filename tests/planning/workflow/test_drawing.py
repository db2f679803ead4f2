"""Workflows as flowcharts: everything is drawn once, and no text of a workflow acts."""

from __future__ import annotations

import re
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion
from workflow_strategies import workflows

from planning.workflow import Workflow, WorkflowStep
from planning.workflow.drawing import called, mermaid, state_of

SHAPES = {"tool": "[", "handler": "[[", "agent": "{{", "thinking": "(["}
HOSTILE = (
    '"];\n  click n0 "javascript:alert(1)"',
    '%%{init: {"theme": "dark"}}%%',
    "direction LR",
    "#quot; &lt; <script>alert(1)</script>",
    "`**bold** _text_` a_b-c.json",
    "1. list",
    "www.example.com, me@example.com, https://example.com",
    "style x:#34; :::failed @{ shape: rect }",
    "\ufb02\u00b0\u00b060\u00b6\u00df fa:fa-bomb $$x$$",
    "\x1b[31mred\x07\u202e \u200b\x00",
    "日本語 cafe\u0301 \U0001f468\u200d\U0001f469\u200d\U0001f467 Straße",
    " \t\n ",
)


def step(step_id: str, *depends_on: str, **fields: Any) -> WorkflowStep:
    return WorkflowStep(
        **{"step_id": step_id, "description": f"Do {step_id}", **fields}, depends_on=depends_on
    )


WORKFLOWS = {
    "kinds": Workflow(
        steps=(
            step("a", description="Look it up", type="tool", name="search"),
            step("b", "a", description="Make it short", type="handler", name="summarise"),
            step("c", "b", description="Judge it", agent="critic"),
            step("d", "a", "c", description="What does that mean?"),
            step("e", description=""),
        )
    ),
    "states": Workflow(
        steps=(
            step("open", status="completed"),
            step("rates", "open", status="completed", skipped=True),
            step("bank", "open", status="failed"),
            step("cash", "open", status="in_progress"),
            step("close", "rates", "bank", "cash"),
        ),
    ),
    "hostile": Workflow(steps=tuple(step(text, description=text, agent=text) for text in HOSTILE)),
    "empty": Workflow(goal="Nothing to do"),
}


@attrs.frozen
class Node:
    """A node of a flowchart: its shape, the lines of its label, and its class."""

    shape: str
    label: list[str]
    state: str | None


_NODE = re.compile(r'    n([0-9]+)(\[|\[\[|\{\{|\(\[)"([^"]+)"(\]|\]\]|\}\}|\]\))(?::::([a-z_]+))?')
_EDGE = re.compile(r"    n([0-9]+) --> n([0-9]+)")
_CLASS = re.compile(r"    classDef ([a-z_]+) [a-z0-9:#, -]+")
_ENTITY = re.compile(r"#([0-9]+);")


def read_chart(text: str) -> tuple[list[Node], list[tuple[int, int]], list[str]]:
    """The nodes, edges and classes of a flowchart of the only form there may be; anything else fails."""
    first, *lines = text.removesuffix("\n").split("\n")
    assert first == "flowchart TD"
    nodes, edges, classes = list[Node](), list[tuple[int, int]](), list[str]()
    for line in lines:
        if node := _NODE.fullmatch(line):
            assert int(node[1]) == len(nodes)
            assert {"[": "]", "[[": "]]", "{{": "}}", "([": "])"}[node[2]] == node[4]
            nodes.append(Node(node[2], [plain(each) for each in node[3].split("<br/>")], node[5]))
        elif edge := _EDGE.fullmatch(line):
            edges.append((int(edge[1]), int(edge[2])))
        else:
            named = _CLASS.fullmatch(line)
            assert named, line
            classes.append(named[1])
    return nodes, edges, classes


def plain(label: str) -> str:
    """A label as Mermaid shows it: outside of entities there is no sign of ASCII."""
    between = _ENTITY.sub("x", label)
    assert re.fullmatch(r"[0-9A-Za-z \x80-\U0010ffff]*", between), label
    assert between.isprintable()
    assert not re.search(r"direction\s", between, re.IGNORECASE)
    return _ENTITY.sub(lambda entity: chr(int(entity[1])), label)


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_as_a_flowchart(name: str, snapshot: SnapshotAssertion) -> None:
    text = mermaid(WORKFLOWS[name])
    read_chart(text)
    assert text == snapshot


@given(workflows())
def test_a_flowchart_has_each_step_and_each_dependency_once(workflow: Workflow) -> None:
    nodes, edges, classes = read_chart(mermaid(workflow))
    ids = [each.step_id for each in workflow.steps]
    assert len(nodes) == len(ids)
    assert edges == [
        (ids.index(other), at) for at, each in enumerate(workflow.steps) for other in each.depends_on
    ]
    assert [node.shape for node in nodes] == [SHAPES[called(each).split()[0]] for each in workflow.steps]
    states = [state_of(each) for each in workflow.steps]
    is_begun = set(states) != {"pending"}
    assert [node.state for node in nodes] == (states if is_begun else [None] * len(nodes))
    assert sorted(classes) == (sorted(set(states)) if is_begun else [])


@given(st.text(st.characters(exclude_categories=["Cs"])) | st.lists(st.sampled_from(HOSTILE)).map(" ".join))
def test_the_label_of_a_node_is_the_text_and_nothing_else(text: str) -> None:
    nodes, _, _ = read_chart(mermaid(Workflow(steps=(step("id", description=text),))))
    short = " ".join(text.split())
    short = short if len(short) <= 80 else short[:79].rstrip() + "…"
    shown = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in short)
    assert nodes[0].label == (["id", shown, "thinking"] if shown else ["id", "thinking"])
