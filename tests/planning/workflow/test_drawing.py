"""Workflows as flowcharts: everything is drawn once, and no text of a workflow acts."""

from __future__ import annotations

import json
import re

from hypothesis import given
from hypothesis import strategies as st
from plan_findings import stored
from run_cases import thought
from syrupy.assertion import SnapshotAssertion

from planning.workflow import Workflow, validate_workflow
from planning.workflow.drawing import mermaid

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
    "n" * 60,
    "n" * 61,
)


_NODE = re.compile(r'    n([0-9]+)(\[|\[\[|\{\{|\(\[)"([^"]+)"(\]|\]\]|\}\}|\]\))(?::::[a-z_]+)?')
_OTHER = re.compile(r"    n[0-9]+ --> n[0-9]+|    classDef [a-z_]+ [a-z0-9:#, -]+|flowchart TD")
_ENTITY = re.compile(r"#([0-9]+);")


def labels(text: str) -> list[list[str]]:
    """The lines of each node's label, in a flowchart of the only form there may be; anything else fails."""
    found = list[list[str]]()
    for line in text.removesuffix("\n").split("\n"):
        if node := _NODE.fullmatch(line):
            assert int(node[1]) == len(found)
            found.append([plain(each) for each in node[3].split("<br/>")])
        else:
            assert _OTHER.fullmatch(line), line
    return found


def plain(label: str) -> str:
    """A label as Mermaid shows it: outside of entities there is no sign of ASCII."""
    between = _ENTITY.sub("x", label)
    assert re.fullmatch(r"[0-9A-Za-z \x80-\U0010ffff]*", between), label
    assert between.isprintable()
    assert not re.search(r"direction\s", between, re.IGNORECASE)
    return _ENTITY.sub(lambda entity: chr(int(entity[1])), label)


def test_a_workflow_as_a_flowchart(snapshot: SnapshotAssertion) -> None:
    told = ""
    for name, source in stored(snapshot).items():
        workflow = validate_workflow(source).workflow
        assert len(labels(mermaid(workflow))) == len(workflow.steps)
        told += f"# {name}\n{json.dumps(source)}\n{mermaid(workflow)}\n"
    assert told.removesuffix("\n") == snapshot
    hostile = mermaid(Workflow(steps=tuple(thought(text, description=text, agent=text) for text in HOSTILE)))
    assert len(labels(hostile)) == len(HOSTILE)
    assert hostile == snapshot(name="hostile")


@given(st.text(st.characters(exclude_categories=["Cs"])) | st.lists(st.sampled_from(HOSTILE)).map(" ".join))
def test_the_label_of_a_node_is_the_text_and_nothing_else(text: str) -> None:
    (label,) = labels(mermaid(Workflow(steps=(thought("id", description=text),))))
    short = " ".join(text.split())
    short = short if len(short) <= 80 else short[:79].rstrip() + "…"
    shown = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in short)
    assert label == (["id", shown, "thinking"] if shown else ["id", "thinking"])
