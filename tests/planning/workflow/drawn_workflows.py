"""Workflows to draw, a strict reader of the flowcharts they become, and a reader of their trees."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import attrs
from hypothesis import strategies as st

from planning.workflow import Workflow, WorkflowStep
from planning.workflow.drawing import TreeLine

__all__ = ["HOSTILE", "WORKFLOWS", "Chart", "Node", "comb", "graphs", "read_chart", "read_tree", "step"]

HOSTILE = (
    '"];\n  click n0 "javascript:alert(1)"',
    '%%{init: {"theme": "dark"}}%%',
    "end",
    "direction LR",
    "#quot; &lt; <script>alert(1)</script>",
    "`**bold** _text_` a_b-c.json",
    "1. list",
    "- list",
    "www.example.com, me@example.com, https://example.com",
    "style x:#34; :::failed @{ shape: rect }",
    "\ufb02\u00b0\u00b060\u00b6\u00df fa:fa-bomb $$x$$",
    "\x1b[31mred\x07\u202e \u200b\x00",
    "[red]markup[/red] [/]",
    "日本語 cafe\u0301 \U0001f468\u200d\U0001f469\u200d\U0001f467 Straße",
    " \t\n ",
    "\\n \\",
)


def step(step_id: str, *depends_on: str, description: str | None = None, **fields: Any) -> WorkflowStep:
    said = f"Do {step_id}" if description is None else description
    return WorkflowStep(step_id=step_id, description=said, depends_on=depends_on, **fields)


def comb(teeth: int) -> Workflow:
    """A chain in which one more step hangs on each: as deep as a tree can get."""
    steps = [step("0")]
    for number in range(1, teeth + 1):
        steps += [step(str(number), str(number - 1)), step(f"tooth {number}", str(number - 1))]
    return Workflow(steps=tuple(steps))


def _tool(name: str) -> dict[str, Any]:
    return {"type": "tool", "name": name}


WORKFLOWS = {
    "diamond": Workflow(
        goal="Compare two sources",
        steps=(
            step("find", description="Find both", **_tool("search")),
            step("left", "find", description="Read the first", **_tool("fetch")),
            step("right", "find", description="Read the second", **_tool("fetch")),
            step("compare", "left", "right", description="Say in what they differ", agent="analyst"),
        ),
    ),
    "chain": Workflow(steps=tuple(step(str(n), *([str(n - 1)] if n else [])) for n in range(6))),
    "fan": Workflow(
        goal="Ask everybody",
        steps=(
            step("join", *(f"ask {n}" for n in range(7)), description="Count the answers"),
            step("start"),
            *(step(f"ask {n}", "start", **_tool("ask")) for n in range(7)),
        ),
    ),
    "kinds": Workflow(
        steps=(
            step("a", description="Look it up", **_tool("search")),
            step("b", "a", description="Make it short", type="handler", name="summarise"),
            step("c", "b", description="Judge it", agent="critic"),
            step("d", "c", description="What does that mean?"),
            step("e", description=""),
        )
    ),
    "states": Workflow(
        goal="Keep the books",
        steps=(
            step("open", status="completed"),
            step("rates", "open", status="completed", skipped=True),
            step("bank", "open", status="failed"),
            step("cash", "open", status="in_progress"),
            step("close", "rates", "bank", "cash"),
        ),
        status="in_progress",
    ),
    "comb": comb(14),
    "hostile": Workflow(
        goal=HOSTILE[11],
        steps=tuple(
            step(text, *HOSTILE[:n][-2:], description=text, **(_tool(text) if n % 2 else {"agent": text}))
            for n, text in enumerate(HOSTILE)
        ),
    ),
    "long": Workflow(
        goal="All of it " * 40,
        steps=(
            step("step " * 40, description="word " * 60, **_tool("tool" * 40)),
            step("日本語" * 40, "step " * 40, description="日本語" * 40, agent="日本語" * 40),
        ),
    ),
    "empty": Workflow(goal="Nothing to do"),
}


@st.composite
def graphs(draw: st.DrawFn) -> Workflow:
    """Up to fourteen steps that depend on each other in any way, in any order."""
    ids = [f"s{number}" for number in range(draw(st.integers(1, 14)))]
    steps = [
        step(each, *draw(st.lists(st.sampled_from(ids[:at]), unique=True, max_size=4) if at else st.just([])))
        for at, each in enumerate(ids)
    ]
    return Workflow(steps=tuple(draw(st.permutations(steps))))


@attrs.frozen
class Node:
    """A node of a flowchart: its shape, the lines of its label, and its class."""

    shape: str
    label: list[str]
    state: str | None


@attrs.frozen
class Chart:
    """A flowchart."""

    nodes: list[Node]
    edges: list[tuple[int, int]]
    classes: list[str]


_NODE = re.compile(r'    n([0-9]+)(\[|\[\[|\{\{|\(\[)"([^"]+)"(\]|\]\]|\}\}|\]\))(?::::([a-z_]+))?')
_EDGE = re.compile(r"    n([0-9]+) --> n([0-9]+)")
_CLASS = re.compile(r"    classDef ([a-z_]+) [a-z0-9:#, -]+")
_ENTITY = re.compile(r"#([0-9]+);")
# What may stand in a label outside an entity: words, with few signs, and none that could begin anything.
_HARMLESS = re.compile(r"(?:[^\x00-\x2f\x3a-\x40\x5b-\x5e\x60\x7b-\x7f]|[ ,'()?!._-])*")
_HARMFUL = re.compile(
    r"direction\s+(?:LR|TD)|www\.|\b[0-9]+[.)](?:\s|$)|(?:^|\s)[-_]|[-_](?:\s|$)", re.IGNORECASE
)


def read_chart(text: str) -> Chart:
    """Read a flowchart of the only form there may be; anything else fails."""
    first, *lines = text.removesuffix("\n").split("\n")
    assert first == "flowchart TD"
    chart = Chart([], [], [])
    for line in lines:
        if node := _NODE.fullmatch(line):
            assert int(node[1]) == len(chart.nodes)
            assert {"[": "]", "[[": "]]", "{{": "}}", "([": "])"}[node[2]] == node[4]
            chart.nodes.append(Node(node[2], [_plain(each) for each in node[3].split("<br/>")], node[5]))
        elif edge := _EDGE.fullmatch(line):
            chart.edges.append((int(edge[1]), int(edge[2])))
        else:
            named = _CLASS.fullmatch(line)
            assert named, line
            chart.classes.append(named[1])
    return chart


def _plain(label: str) -> str:
    between = _ENTITY.sub("", label)
    assert _HARMLESS.fullmatch(between), label
    assert between.isprintable()
    assert not _HARMFUL.search(_ENTITY.sub("x", label)), label
    return _ENTITY.sub(lambda entity: chr(int(entity[1])), label)


def read_tree(lines: Iterable[TreeLine]) -> dict[str, set[str]]:
    """What each step depends on, read from the tree: from where it stands, and from its "after"."""
    found: dict[str, set[str]] = {}
    above, at_column = "", dict[int, str]()
    for line in lines:
        under = set[str]()
        if line.lead.endswith("↓ "):
            under = {above}
        elif line.lead.endswith("─ "):
            under = {at_column[len(line.lead) - 3]}
        assert line.step.step_id not in found
        assert not under & set(line.after)
        assert under | set(line.after) <= set(found), "it stands above what it depends on"
        found[line.step.step_id] = under | set(line.after)
        above = at_column[len(line.lead)] = line.step.step_id
    return found
