"""Tools with private data: nothing shows or keeps what they were given or gave but the result of the run."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from run_cases import called, capable, flow, plain_tool, refusal, restored, states, told

from planning import Plan
from planning.tools import ToolError
from planning.workflow import Capabilities, Workflow, WorkflowError, run_workflow
from planning.workflow.run.records import StepRecord, WorkflowRun
from session import Session
from session.events import SessionEvent
from session.stores import SqliteStore

SECRET = "4111-0815"  # noqa: S105 - it is none


Opened = Callable[[], Session]


def written(folder: Path) -> bytes:
    return b"".join(each.read_bytes() for each in sorted(folder.glob("plans.db*")))


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Opened]:
    """Opens a stored session, each time as another process; its file never has a byte of the secret."""
    stores: list[SqliteStore] = []

    def session() -> Session:
        stores.append(SqliteStore(tmp_path / "plans.db"))
        return Session(session_id="nightly", store=stores[-1])

    yield session
    assert SECRET.encode() not in written(tmp_path)
    for store in stores:
        store.close()
    assert SECRET.encode() not in written(tmp_path)


def vault(outcome: Any, **options: Any) -> Any:
    """A tool with private data that gives or raises this."""

    def call(account: str = "") -> Any:
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    return plain_tool("vault", call, returns_private_data=True, **options)


def same(value: Any = None) -> Any:
    return value


def everything_told(
    workflow: Workflow, capabilities: Capabilities, session: Session, caplog: pytest.LogCaptureFixture
) -> str:
    """All that records, events, the plan, the errors and the log say of a run, and its warnings."""
    events: list[SessionEvent] = []
    session.bus.subscribe(SessionEvent, events.append)
    with caplog.at_level(logging.DEBUG):
        result = run_workflow(workflow, capabilities, session=session)
    logged = [vars(record) for record in caplog.records]
    changed = [event.record.output for event in events if hasattr(event, "record")]
    outputs = [record.output for record in session.select_all(StepRecord)]
    slices = [session.select_all(kind) for kind in (StepRecord, WorkflowRun, Plan)]
    return repr([slices, outputs, events, changed, result.errors, logged, result])


@pytest.mark.parametrize(
    "outcome",
    [
        SECRET,
        {"in": {SECRET: 1}},
        {SECRET: 1},
        {"success": False, "error": SECRET, "user_message": SECRET},
        ValueError(SECRET),
        ToolError(SECRET),
        ConnectionError(SECRET),
        asyncio.CancelledError(SECRET),
    ],
    ids=range(8),
)
@pytest.mark.parametrize(
    "fields",
    [{}, {"expected_key": "card"}, {"output_path": ("in", "total"), "expected_key": "card"}],
    ids=len,
)
def test_private_data_is_in_no_record_event_error_log_or_file_whatever_the_outcome(
    file: Opened, tmp_path: Path, caplog: pytest.LogCaptureFixture, outcome: Any, fields: dict[str, Any]
) -> None:
    step = called("a", tool="vault", **fields)
    nowhere = called("b", "a", tool="same", inputs={"value": "${a.output.total}"})
    capabilities = capable(vault(outcome), same=same)
    assert SECRET not in everything_told(flow(step, nowhere), capabilities, Session(), caplog)
    given = replace(step, inputs={"account": SECRET})
    assert SECRET not in everything_told(flow(given, nowhere), capabilities, file(), caplog)
    assert b"vault" in written(tmp_path)


def test_the_file_has_nothing_that_was_made_of_private_data(file: Opened) -> None:
    def broken(value: str) -> str:
        raise ToolError(f"no such card: {value}")

    workflow = flow(
        called("a", tool="vault", expected_key="card", output_path=("card",)),
        called("whole", "a", tool="same", inputs={"value": "${a.output}"}, expected_key="copy"),
        called("text", "whole", tool="same", inputs={"value": "it is ${whole.output.card}"}),
        called("deep", "text", tool="same", inputs={"value": [{"x": "${text.output}"}]}),
        called("bad", "a", tool="broken", inputs={"value": "${a.output.card}"}, on_failure="continue"),
        called("refused", "a", tool="same", inputs={"${a.output.card}": 1, "other": "${a.output.card}"},
               on_failure="continue"),
        called("missing", "a", tool="same", inputs={"value": "${a.output.card.x}"}, on_failure="continue"),
        called("skipped", "whole", tool="same", done_check="'card' in memory", expected_key="card"),
        called("again", "skipped", tool="same", done_check="'card' in memory", expected_key="card"),
        called("check", "a", done_check="card", tool="same"),
        called("public", "skipped", tool="same", inputs={"value": 1}),
    )  # fmt: skip
    tools = capable(vault({"card": SECRET}), same=same, broken=broken)
    result = run_workflow(workflow, tools, session=file())
    assert result.outputs["deep"] == [{"x": f"it is {SECRET}"}]
    assert result.outputs["skipped"] == SECRET
    assert dict(result.memory) == {"card": SECRET, "copy": {"card": SECRET}}
    assert set(result.errors) == {"bad", "refused", "missing"}
    records = {each.step_id: each for each in result.session.select_all(StepRecord)}
    assert {each for each, record in records.items() if record.is_withheld} == {
        "a", "whole", "text", "deep", "skipped", "again"
    }  # fmt: skip
    assert records["public"].output == 1
    assert SECRET not in repr((result.session.select_all(Plan), result.session.history()))


def test_a_tool_that_keeps_its_inputs_in_the_session_is_not_given_private_data(file: Opened) -> None:
    keeps = plain_tool("keeps", same, publishes="value")
    given = {"value": "${a.output}"}
    workflow = flow(called("a", tool="vault"), called("b", "a", tool="keeps", inputs=given))
    result = run_workflow(workflow, capable(vault({"card": SECRET}), keeps), session=file())
    message = (
        "keeps keeps its inputs in the session, and these are private, which the session's store must "
        "not have; give it other inputs"
    )
    assert dict(result.errors) == {"b": told(message, "parameter")}


STEPS = flow(
    called("a", tool="vault", inputs={"account": SECRET}, expected_key="card"),
    called("b", "a", tool="same", inputs={"value": "${a.output}"}),
    called("c", "b", tool="flaky"),
    called("d", "c", "b", tool="same", inputs={"value": "${b.output.card}"}),
    called("e", "c", tool="same", inputs={"value": 1}, done_check="card is not None", expected_key="card"),
)


BROKEN = capable(vault({"card": SECRET}), same=same, flaky=lambda: {"success": False})
MENDED = capable(vault(AssertionError()), same=same, flaky=lambda: "mended")


def test_a_resumed_run_names_the_step_whose_private_output_was_not_kept(file: Opened) -> None:
    assert run_workflow(STEPS, BROKEN, session=file()).status == "failed"
    again = run_workflow(STEPS, MENDED, session=file())
    assert states(again.workflow) == {
        "a": "completed", "b": "completed", "c": "completed", "d": "failed", "e": "completed"
    }  # fmt: skip
    message = (
        "'${b.output.card}' has no value: the output of step b is private and was not kept; run that "
        "step again under another step_id, and refer to it"
    )
    assert dict(again.errors) == {"d": told(message)}
    assert (again.outputs["e"], dict(again.memory)) == (1, {"card": 1})


def test_other_private_inputs_of_a_completed_step_are_noticed(file: Opened) -> None:
    run_workflow(STEPS, BROKEN, session=file())
    changed = called("a", tool="vault", inputs={"account": "another"}, expected_key="card")
    steps = flow(changed, *STEPS.steps[1:])
    assert refusal(WorkflowError, run_workflow, steps, MENDED, session=file()) == (
        "the unfinished run in this session cannot be resumed: step 'a' is completed and its inputs changed; "
        "restore that step, or use another session to start over"
    )
    other = run_workflow(flow(), capable(), session=file())
    assert dict(other.memory) == {}
    kept = other.session.select_all(WorkflowRun)[0].workflow.steps[0].inputs
    assert list(kept) == ["withheld"]


UNKEPT = "'${a.output}' has no value: the output of step a is not known; store it under an expected_key"


@pytest.mark.parametrize(
    ("key", "output", "errors"), [("card", {"pin": 1}, {}), (None, None, {"b": told(UNKEPT)})]
)
def test_of_a_private_step_only_its_stored_value_goes_on(key: str | None, output: Any, errors: Any) -> None:
    uses = called("b", "a", tool="same", inputs={"value": "${a.output}"})
    steps = flow(called("a", tool="vault", expected_key=key), uses)
    first = run_workflow(steps, capable(vault({"pin": 1}), same=lambda value: {"success": False}))
    again = run_workflow(steps, capable(vault(AssertionError()), same=same), session=restored(first.session))
    assert (again.outputs.get("b"), dict(again.errors)) == (output, errors)
