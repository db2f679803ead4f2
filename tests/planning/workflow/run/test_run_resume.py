"""Going on with a run: what continues, what begins afresh, and workflows that were begun elsewhere."""

from __future__ import annotations

from typing import Any

import pytest
from run_cases import called, capable, flow, plain_tool, plan_notes, states, thought

from planning.tools import ToolError, ToolResult
from planning.workflow import (
    Workflow,
    WorkflowError,
    WorkflowResult,
    run_workflow,
)
from planning.workflow.run.records import StepRecord, WorkflowRun
from session import Session, Snapshot


class Bench:
    """Tools that count their calls; ``mend`` makes the broken one work."""

    def __init__(self) -> None:
        self.calls: list[str] = []
        self.is_broken = True

    def work(self) -> dict[str, Any]:
        self.calls.append("work")
        return {"rows": [1, None, "x"]}

    def mail(self) -> str:
        self.calls.append("mail")
        return "sent"

    def broken(self, value: Any = None) -> Any:
        self.calls.append("broken")
        if self.is_broken:
            raise ToolError("not yet")
        return value

    def run(self, workflow: Workflow, session: Session, **options: Any) -> WorkflowResult:
        capabilities = capable(
            plain_tool("mail", self.mail, idempotent=False), work=self.work, broken=self.broken
        )
        return run_workflow(workflow, capabilities, session=session, **options)

    def took(self) -> list[str]:
        calls, self.calls = self.calls, []
        return calls


STEPS = flow(
    called("a", expected_key="key", output_path=("rows",)),
    called("m", tool="mail"),
    called("b", "a", "m", tool="broken", inputs={"value": "${a.output.rows[2]}"}),
    thought("c", "b"),
)


def restored(session: Session) -> Session:
    other = Session()
    other.rollback(Snapshot.from_json(session.snapshot().to_json()))
    return other


@pytest.mark.parametrize("is_restored", [False, True])
@pytest.mark.parametrize("is_from_result", [False, True])
def test_what_failed_is_tried_again_and_what_is_done_is_not(is_restored: bool, is_from_result: bool) -> None:
    bench, session = Bench(), Session()
    first = bench.run(STEPS, session, max_parallel=1)
    assert (first.status, bench.took()) == ("failed", ["work", "mail", "broken"])
    session = restored(session) if is_restored else session
    bench.is_broken = False
    again = bench.run(first.workflow if is_from_result else STEPS, session)
    assert (again.status, bench.took(), dict(again.errors)) == ("completed", ["broken"], {})
    assert dict(again.outputs) == {"a": {"rows": [1, None, "x"]}, "m": "sent", "b": "x", "c": "Do c"}
    assert dict(again.memory) == {"key": [1, None, "x"]}
    assert len(session.select_all(WorkflowRun)) == 1
    assert plan_notes(session) == [
        ("done", ('{"rows":[1,null,"x"]}',)),
        ("done", ("sent",)),
        ("done", ("Failed: not yet", "x")),
        ("done", ("Blocked: step b failed", "Thought through")),
    ]


def test_another_goal_another_prompt_or_other_inputs_begin_afresh() -> None:
    bench, session = Bench(), Session()
    given: dict[str, Any] = {"user_prompt": "One", "inputs": {"x": [1, (2,)]}}
    bench.run(STEPS, session, **given)
    bench.run(STEPS, session, **given)
    assert len(session.select_all(WorkflowRun)) == 1
    other = flow(*STEPS.steps, goal="Find out more")
    changes: list[tuple[Workflow, dict[str, Any]]] = [
        (STEPS, {"user_prompt": "Two"}),
        (STEPS, {"inputs": {"x": 2}}),
        (other, {}),
    ]
    for workflow, changed in changes:
        bench.took()
        bench.run(workflow, session, **{**given, **changed})
        assert sorted(bench.took()) == ["broken", "mail", "work"]
    assert len(session.select_all(WorkflowRun)) == 4


def test_a_call_that_was_refused_before_it_was_made_is_made_the_next_time() -> None:
    calls: list[int] = []
    session = Session()

    def narrow(to: str) -> None:
        raise AssertionError(to)

    def wide(to: int) -> str:
        calls.append(to)
        return "sent"

    first, again = (
        run_workflow(
            flow(called("m", tool="mail", inputs={"to": 1})),
            capable(plain_tool("mail", mail, idempotent=False)),
            session=session,
        )
        for mail in (narrow, wide)
    )
    assert (first.errors["m"].code, dict(again.outputs), calls) == ("parameter", {"m": "sent"}, [1])


# Documents that say how far their steps are


def test_what_a_document_says_of_its_steps_is_no_run_so_they_all_run() -> None:
    bench, session = Bench(), Session()
    bench.is_broken = False
    workflow = flow(
        called("a", status="completed", completed_at="2024-05-06T07:08:09+00:00", expected_key="key",
               output_path=("rows",)),
        called("s", status="pending", skipped=True),
        called("b", "a", "s", tool="broken", inputs={"value": "${a.output.rows[2]}"}),
        status="in_progress",
    )  # fmt: skip
    result = bench.run(workflow, session, inputs={"key": [7]}, max_parallel=1)
    assert (bench.took(), result.status, result.outputs["b"]) == (
        ["work", "work", "broken"],
        "completed",
        "x",
    )
    assert states(result.workflow) == {"a": "completed", "s": "completed", "b": "completed"}
    assert result.workflow.steps[0].completed_at != "2024-05-06T07:08:09+00:00"


@pytest.mark.parametrize("status", ["completed", "failed", "in_progress"])
def test_a_step_that_ran_elsewhere_and_must_not_be_called_twice_is_refused(status: Any) -> None:
    bench, session = Bench(), Session()
    mail = called("m", "a", tool="mail", status=status)
    with pytest.raises(WorkflowError) as refused:
        bench.run(flow(called("a"), mail), session)
    assert str(refused.value) == (
        f"step 'm' is already {status}, mail must not be called twice, and this session does not have that "
        "run; resume it in its own session or snapshot, or set the status of the step to 'pending' to call "
        "it again"
    )
    assert (bench.took(), session.select_all(WorkflowRun)) == ([], ())


# Snapshots

ODD = [{"x": [float("-inf")]}, b"\x00", {1: {2}}, "\ud800", 10**400]


@pytest.mark.parametrize("output", ODD, ids=repr)
def test_a_session_can_be_written_down_whatever_a_tool_gave(output: Any) -> None:
    session = Session()
    workflow = flow(called("a", expected_key="key"), thought("b", "a"), called("z", tool="nobody"))
    work = plain_tool("work", lambda: ToolResult(True, "Done.", output))
    run_workflow(workflow, capable(work), session=session, inputs={"odd": output})
    text = session.snapshot().to_json()
    assert Snapshot.from_json(text).to_json() == text
    other = restored(session)
    again = run_workflow(workflow, capable(work), session=other, inputs={"odd": output})
    run_ids = {run.run_id for run in session.select_all(WorkflowRun)}
    assert {record.run_id for record in other.select_all(StepRecord)} == run_ids
    assert states(again.workflow) == {"a": "completed", "b": "completed", "z": "failed"}
