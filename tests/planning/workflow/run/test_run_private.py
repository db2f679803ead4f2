"""Tools with private data: nothing of what they give is in a record, an event, a note, an error or a log."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import Any

import pytest
from run_cases import called, capable, flow, heard, plain_tool, states, told

from planning import Plan
from planning.workflow import Capabilities, MemoryItem, StepRecord, Workflow, WorkflowRun, run_workflow
from session import Session
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


@pytest.mark.parametrize("is_async", [False, True])
def test_a_private_output_is_in_nothing_but_the_result(
    caplog: pytest.LogCaptureFixture, is_async: bool
) -> None:
    async def later() -> str:
        return SECRET

    workflow = flow(called("a", tool="vault"))
    capabilities = private(later if is_async else lambda: SECRET)
    assert SECRET not in everything_told(workflow, capabilities, caplog)
    result = run_workflow(workflow, capabilities)
    assert dict(result.outputs) == {"a": SECRET}
    (_, done) = result.session.select_all(StepRecord)
    assert (done.output, done.is_withheld) == (None, True)
    plan = result.session.select_latest(Plan)
    assert plan is not None
    assert plan.steps[0].notes == ("Done",)


def test_what_a_private_tool_stores_under_a_key_is_in_the_memory_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    workflow = flow(called("a", tool="vault", expected_key="card"))
    assert SECRET not in everything_told(workflow, private(lambda: SECRET), caplog)
    result = run_workflow(workflow, private(lambda: SECRET))
    (item,) = result.session.select_all(MemoryItem)
    assert (item.type, item.key, item.value, item.step_id) == ("step_result", "card", SECRET, "a")


@pytest.mark.parametrize(
    "fail",
    [
        pytest.param({"success": False, "error": SECRET, "user_message": SECRET}, id="reported"),
        pytest.param(ValueError(SECRET), id="raised"),
        pytest.param(ConnectionError(SECRET), id="raised and may pass"),
    ],
)
def test_nothing_of_why_a_private_tool_failed_is_told(caplog: pytest.LogCaptureFixture, fail: Any) -> None:
    def failing() -> Any:
        if isinstance(fail, Exception):
            raise fail
        return fail

    assert SECRET not in everything_told(flow(called("a", tool="vault")), private(failing), caplog)


@pytest.mark.parametrize("output", [SECRET, {SECRET: 1}, {"in": {SECRET: 1}}])
def test_a_missing_path_in_a_private_output_tells_nothing_of_it(
    caplog: pytest.LogCaptureFixture, output: Any
) -> None:
    workflow = flow(called("a", tool="vault", output_path=("in", "total"), expected_key="key"))
    assert SECRET not in everything_told(workflow, private(lambda: output), caplog)


@pytest.mark.parametrize("output", [SECRET, {SECRET: 1}])
def test_a_reference_that_leads_nowhere_in_a_private_output_tells_nothing_of_it(
    caplog: pytest.LogCaptureFixture, output: Any
) -> None:
    inputs = {"value": "${a.output.total}"}
    workflow = flow(called("a", tool="vault"), called("b", "a", tool="echo", inputs=inputs))
    assert SECRET not in everything_told(workflow, private(lambda: output), caplog)


def test_a_skipped_private_step_tells_nothing_of_the_stored_value(caplog: pytest.LogCaptureFixture) -> None:
    workflow = flow(called("a", tool="vault", expected_key="card", done_check="'card' in memory"))
    session = Session()
    records = heard(session)
    result = run_workflow(workflow, private(lambda: SECRET), session=session, inputs={"card": SECRET})
    assert (states(result.workflow), dict(result.outputs)) == ({"a": "completed, skipped"}, {"a": SECRET})
    assert [(each.output, each.is_withheld) for each in records] == [(None, True)]


def test_a_private_tool_is_tried_again_like_any_other(caplog: pytest.LogCaptureFixture) -> None:
    import stamina

    failures = [ConnectionError(SECRET), ConnectionError(SECRET)]

    def flaky() -> str:
        if failures:
            raise failures.pop()
        return "back again"

    with stamina.set_testing(True, attempts=10, cap=True):
        result = run_workflow(flow(called("a", tool="vault", retries=2)), private(flaky))
    assert (dict(result.outputs), dict(result.errors)) == ({"a": "back again"}, {})


def test_a_private_step_is_not_repeated_and_its_stored_value_goes_on() -> None:
    calls: list[str] = []
    broken = [True]

    def vault() -> str:
        calls.append("vault")
        return SECRET

    def echo(value: str) -> str:
        if broken:
            raise ValueError(broken.pop())
        return value

    workflow = flow(
        called("a", tool="vault", expected_key="card"),
        called("b", "a", tool="echo", inputs={"value": "${a.output}"}),
    )
    capabilities = capable(plain_tool("vault", vault, returns_private_data=True), echo=echo)
    first = run_workflow(workflow, capabilities)
    assert states(first.workflow) == {"a": "completed", "b": "failed"}
    again = run_workflow(workflow, capabilities, session=first.session)
    assert (dict(again.outputs), calls) == ({"a": SECRET, "b": SECRET}, ["vault"])


def test_a_private_output_that_was_not_stored_is_missed_after_the_run_was_taken_up_again() -> None:
    broken = [True]

    def echo(value: str) -> str:
        if broken:
            raise ValueError(broken.pop())
        return value

    workflow = flow(called("a", tool="vault"), called("b", "a", tool="echo", inputs={"value": "${a.output}"}))
    capabilities = capable(plain_tool("vault", lambda: SECRET, returns_private_data=True), echo=echo)
    first = run_workflow(workflow, capabilities)
    again = run_workflow(workflow, capabilities, session=first.session)
    message = (
        "'${a.output}' has no value: what step a gave is not known; let a store it under an expected_key"
    )
    assert dict(again.errors) == {"b": told(message)}


def test_the_result_of_a_private_run_can_still_be_written_down() -> None:
    result = run_workflow(flow(called("a", tool="vault")), private(lambda: SECRET))
    assert json.loads(json.dumps(result.to_dict()))["outputs"] == {"a": SECRET}
