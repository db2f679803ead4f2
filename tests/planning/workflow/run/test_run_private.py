"""Tools with private data: nothing of what they give is in a record, an event, a note, an error or a log."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest
from run_cases import called, capable, flow, heard, plain_tool, plan_notes, states, told

from planning import Plan
from planning.workflow import Capabilities, Workflow, run_workflow
from planning.workflow.run.memory import MemoryItem
from planning.workflow.run.records import StepRecord, WorkflowRun
from session import Session, Snapshot
from session.events import SessionEvent

SECRET = "the card number is 4111"  # noqa: S105 - it is none


def private(function: Callable[..., Any], **options: Any) -> Capabilities:
    tool = plain_tool("vault", function, returns_private_data=True, **options)
    return capable(tool, echo=lambda value: value)


def everything_told(
    workflow: Workflow, capabilities: Capabilities, caplog: pytest.LogCaptureFixture, **options: Any
) -> str:
    """All that records, events, the plan, the errors and the log say of a run, and its warnings."""
    session = Session()
    events: list[SessionEvent] = []
    session.bus.subscribe(SessionEvent, events.append)
    with caplog.at_level(logging.DEBUG):
        result = run_workflow(workflow, capabilities, session=session, **options)
    records = session.select_all(StepRecord)
    logged = [str(vars(record)) for record in caplog.records]
    outputs = [record.output for record in records]
    changed = [event.record.output for event in events if hasattr(event, "record")]
    plan = session.select_latest(Plan)
    runs = session.select_all(WorkflowRun)
    return "\n".join(
        map(repr, [records, outputs, events, changed, plan, result.errors, logged, runs, result])
    )


def test_a_private_output_is_in_nothing_but_the_result() -> None:
    result = run_workflow(flow(called("a", tool="vault", expected_key="card")), private(lambda: SECRET))
    assert dict(result.outputs) == {"a": SECRET}
    (_, done) = result.session.select_all(StepRecord)
    assert (done.output, done.is_withheld) == (None, True)
    assert plan_notes(result.session) == [("done", ("Done",))]
    (item,) = result.session.select_all(MemoryItem)
    assert (item.type, item.key, item.value, item.step_id) == ("step_result", "card", SECRET, "a")
    assert json.loads(json.dumps(result.to_dict()))["outputs"] == {"a": SECRET}


PATH: dict[str, Any] = {"output_path": ("in", "total"), "expected_key": "key"}


@pytest.mark.parametrize(
    ("outcome", "fields"),
    [
        (SECRET, {}),
        ({"success": False, "error": SECRET, "user_message": SECRET}, {}),
        (ValueError(SECRET), {}),
        (ConnectionError(SECRET), {}),
        (SECRET, PATH),
        ({"in": {SECRET: 1}}, PATH),
        ({SECRET: 1}, {}),
    ],
    ids=range(7),
)
def test_private_data_is_in_no_record_event_error_or_log_whatever_the_outcome(
    caplog: pytest.LogCaptureFixture, outcome: Any, fields: dict[str, Any]
) -> None:
    def vault() -> Any:
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    nowhere = called("b", "a", tool="echo", inputs={"value": "${a.output.total}"})
    workflow = flow(called("a", tool="vault", **fields), nowhere)
    assert SECRET not in everything_told(workflow, private(vault), caplog)


def test_a_skipped_private_step_tells_nothing_of_the_stored_value(caplog: pytest.LogCaptureFixture) -> None:
    workflow = flow(called("a", tool="vault", expected_key="card", done_check="'card' in memory"))
    session = Session()
    records = heard(session)
    result = run_workflow(workflow, private(lambda: SECRET), session=session, inputs={"card": SECRET})
    assert (states(result.workflow), dict(result.outputs)) == ({"a": "completed, skipped"}, {"a": SECRET})
    assert [(each.output, each.is_withheld) for each in records] == [(None, True)]


UNKEPT = "has no value: the output of step a is not known; store it under an expected_key"


@pytest.mark.parametrize(
    ("key", "path", "output", "error"),
    [
        ("card", "", {"pin": 1}, None),
        (None, "", None, told(f"'${{a.output}}' {UNKEPT}")),
    ],
)
def test_a_private_step_is_not_repeated_and_only_its_stored_value_goes_on(
    key: str | None, path: str, output: Any, error: Any
) -> None:
    calls: list[str] = []
    broken = [True]

    def vault() -> dict[str, int]:
        calls.append("vault")
        return {"pin": 1}

    def echo(value: Any) -> Any:
        if broken:
            raise ValueError(broken.pop())
        return value

    steps = [
        called("a", tool="vault", expected_key=key),
        called("b", "a", tool="echo", inputs={"value": f"${{a.output{path}}}"}),
    ]
    capabilities = capable(plain_tool("vault", vault, returns_private_data=True), echo=echo)
    text = run_workflow(flow(*steps), capabilities).session.snapshot().to_json()
    session = Session()
    session.rollback(Snapshot.from_json(text))
    again = run_workflow(flow(*steps), capabilities, session=session)
    assert (again.outputs.get("b"), again.errors.get("b"), calls) == (output, error, ["vault"])
