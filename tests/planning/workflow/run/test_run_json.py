"""What crosses the border of a step is JSON: the same live, after a resume, and on executors."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from pathlib import PurePosixPath
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from json_runs import STEPS, Colour, Page, Part, Row, giving, kept, values
from run_cases import called, capable, flow, plain_tool

from planning.tools import ToolResult
from planning.workflow import WorkflowError, run_workflow
from planning.workflow.run.memory import MemoryItem
from planning.workflow.run.records import WorkflowRun
from session import Session, Snapshot
from session.stores import MemoryStore


def resumed(value: Any, store: MemoryStore | None) -> str:
    """What a run keeps that stopped at its gate, and was resumed from a store or from a snapshot's JSON."""
    breaks = [1, 0]

    def gate() -> None:
        1 // breaks.pop()

    session = Session(session_id="run", store=store)
    first = run_workflow(STEPS, giving(value, gate), session=session)
    assert list(first.errors) == ["gate"]
    again = Session(session_id="run", store=store)
    if store is None:
        again.rollback(Snapshot.from_json(session.snapshot().to_json()))
    breaks[:] = [1]
    return kept(run_workflow(STEPS, giving(value, gate), session=again))


@given(values)
def test_each_step_gets_and_keeps_the_same_live_and_after_a_resume(value: Any) -> None:
    live = kept(run_workflow(STEPS, giving(value)))
    assert resumed(value, None) == live
    assert resumed(value, MemoryStore()) == live


def later(day: date) -> date:
    return day + timedelta(days=1)


TYPED: list[Any] = [
    date(2024, 1, 2), timedelta(days=-1, hours=3), timedelta(days=2, microseconds=1), UUID(int=5),
    Decimal("1.50"), PurePosixPath("/a"), Colour.RED, Row("a", [1]), Part("a", [1]),
    Page(title="a", lines=[1]), {1, 2}, (1, 2), b"raw",
]  # fmt: skip


@pytest.mark.parametrize("value", TYPED, ids=lambda each: type(each).__name__)
def test_a_parameter_with_a_type_is_made_of_the_json_of_an_output(value: Any) -> None:
    seen: list[Any] = []

    def take(value: Any) -> None:
        seen.append(value)

    take.__annotations__["value"] = type(value)
    steps = [called("a", tool="give"), called("b", "a", tool="take", inputs={"value": "${a.output}"})]
    give = plain_tool("give", lambda: ToolResult(True, "Done.", value))
    result = run_workflow(flow(*steps), capable(give, take=take))
    assert (dict(result.errors), seen, type(seen[0])) == ({}, [value], type(value))


def nested(levels: int) -> Any:
    """A list in a list, and so on."""
    return [nested(levels - 1)] if levels > 1 else ["here"]


def test_what_may_be_kept_is_whole_in_a_snapshot_and_in_a_result_as_json() -> None:
    deepest = nested(100)
    workflow = flow(called("a", tool="produce", expected_key="key"))
    produce = plain_tool("produce", lambda: ToolResult(True, "Done.", deepest))
    result = run_workflow(workflow, capable(produce), inputs={"given": nested(99)})
    assert dict(result.errors) == {}
    snapshot = Snapshot.from_json(result.session.snapshot().to_json())
    assert [item.value for item in snapshot.select_all(MemoryItem)] == [nested(99), deepest]
    assert [run.inputs for run in snapshot.select_all(WorkflowRun)] == [{"given": nested(99)}]
    told = result.to_dict()
    assert (told["outputs"], told["memory"]) == ({"a": deepest}, {"given": nested(99), "key": deepest})
    with pytest.raises(WorkflowError):
        run_workflow(workflow, capable(produce), inputs={"given": deepest})
