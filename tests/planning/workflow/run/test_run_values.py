"""What a run keeps and hands on: copies, which nothing that a tool does later changes."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import pytest
from json_runs import Page, Pair, Part, Row
from run_cases import called, capable, flow, heard, plain_tool, thought

from planning.tools import ToolContext, ToolResult
from planning.workflow import Capabilities, run_workflow
from planning.workflow.run.memory import MemoryItem
from planning.workflow.run.records import StepRecord
from session import Session, Snapshot

HOLDERS: list[tuple[Any, Callable[[Any], Any], Any]] = [
    ([1], lambda value: value, [1]),
    ({"deep": [{"rows": ([1],)}]}, lambda value: value["deep"][0]["rows"][0], {"deep": [{"rows": [[1]]}]}),
    (Pair([1], 2), lambda value: value.first, [[1], 2]),
    (Row("a", [1]), lambda value: value.tags, {"name": "a", "tags": [1]}),
    (Part("a", [1]), lambda value: value.parts, {"name": "a", "parts": [1]}),
    (Page(title="a", lines=[1]), lambda value: value.lines, {"title": "a", "lines": [1]}),
    (UserDict(rows=[1]), lambda value: value["rows"], {"rows": [1]}),
    (MappingProxyType({"rows": [1]}), lambda value: value["rows"], {"rows": [1]}),
]
"""Values, what finds the list inside that a tool changes later, and their JSON form."""


@pytest.mark.parametrize(("value", "inside", "form"), HOLDERS, ids=range(len(HOLDERS)))
def test_nothing_that_a_tool_does_later_to_its_result_changes_what_was_kept(
    value: Any, inside: Callable[[Any], list[int]], form: Any
) -> None:
    session = Session()
    records, snapshots = heard(session), list[Snapshot]()

    def change() -> None:
        snapshots.append(session.snapshot())
        inside(value).append(2)

    workflow = flow(
        called("a", tool="produce", expected_key="key"),
        called("b", "a", tool="change"),
        called("c", "b", tool="echo", inputs={"value": "${a.output}"}),
    )
    produce = plain_tool("produce", lambda: ToolResult(True, "Done.", value))
    echo = plain_tool("echo", lambda value: ToolResult(True, "Done.", value))
    result = run_workflow(workflow, capable(produce, echo, change=change), session=session)
    assert dict(result.errors) == {}
    kept = [
        result.outputs["a"],
        result.outputs["c"],
        result.memory["key"],
        session.select_all(MemoryItem)[0].value,
        *(record.output for record in records if (record.step_id, record.status) == ("a", "completed")),
        snapshots[0].select_all(MemoryItem)[0].value,
    ]
    assert (inside(value), kept) == ([1, 2], [form] * 6)


def test_whoever_changes_what_the_context_shows_changes_nobodys_memory() -> None:
    seen: list[Any] = []

    def greedy(context: ToolContext) -> str:
        memory = context.values["memory"]
        assert [each for each in ("__setitem__", "pop", "update", "clear") if hasattr(memory, each)] == []
        memory["rows"].append(3)
        memory["given"]["deep"].append("changed")
        seen.append((memory["rows"], memory["given"]))
        return "tried"

    session, given = Session(), {"deep": ["kept"]}
    workflow = flow(
        called("a", tool="produce", expected_key="rows"),
        called("b", "a", tool="greedy"),
        called("c", "b", tool="greedy"),
    )
    result = run_workflow(
        workflow,
        capable(produce=lambda: [1, 2], greedy=greedy),
        session=session,
        inputs={"given": given},
    )
    assert seen == [([1, 2, 3], {"deep": ["kept", "changed"]})] * 2
    assert (given, result.outputs["a"]) == ({"deep": ["kept"]}, [1, 2])
    assert result.memory == {"given": {"deep": ["kept"]}, "rows": [1, 2]}
    assert [item.value for item in session.select_all(MemoryItem)] == [{"deep": ["kept"]}, [1, 2]]


def test_whoever_changes_a_result_does_not_change_the_session() -> None:
    result = run_workflow(flow(called("a", expected_key="key")), capable(work=lambda: {"rows": [1]}))
    result.outputs["a"]["rows"].append(2)
    result.memory["key"]["rows"].append(3)
    assert (result.outputs, result.memory) == ({"a": {"rows": [1, 2]}}, {"key": {"rows": [1, 3]}})
    assert [record.output for record in result.session.select_all(StepRecord)][-1] == {"rows": [1]}
    assert result.session.select_all(MemoryItem)[0].value == {"rows": [1]}


def test_an_attempt_that_changes_its_inputs_changes_neither_the_next_attempt_nor_the_workflow() -> None:
    import stamina

    seen: list[Any] = []

    def take_apart(inputs: dict[str, Any]) -> int:
        seen.append((list(inputs["rows"]), inputs.pop("options")))
        inputs["rows"].clear()
        if len(seen) < 3:
            raise ConnectionError
        return len(seen)

    inputs = {"rows": [1, 2], "options": {"deep": ["${a.output}"]}}
    step = thought("b", "a", type="handler", name="take_apart", inputs=inputs, retries=2)
    with stamina.set_testing(True, attempts=10, cap=True):
        result = run_workflow(flow(thought("a"), step), Capabilities(handlers={"take_apart": take_apart}))
    assert seen == [([1, 2], {"deep": ["Do a"]})] * 3
    assert (dict(result.errors), result.outputs["b"]) == ({}, 3)
    assert inputs == {"rows": [1, 2], "options": {"deep": ["${a.output}"]}}
    assert result.workflow.steps[1].inputs == inputs
