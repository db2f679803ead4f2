"""Going on with a run: what continues, what begins afresh, and workflows that were begun elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from run_cases import Bench, called, flow, plan_notes, restored, states, thought

from planning.tools import ToolError
from planning.workflow import Workflow, WorkflowError, WorkflowStep
from planning.workflow.edits import replace_step
from planning.workflow.run.records import WorkflowRun
from session import Session


def bench(*, is_mended: bool = False) -> Bench:
    def broken(value: Any = None) -> Any:
        if not is_mended:
            raise ToolError("not yet")
        return value

    return Bench(work=lambda: {"rows": [1, None, "x"]}, broken=broken)


STEPS = flow(
    called("a", expected_key="key", output_path=("rows",)),
    called("m", tool="mail"),
    called("b", "a", "m", tool="broken", inputs={"value": "${a.output.rows[2]}"}),
    thought("c", "b"),
)


@pytest.mark.parametrize("is_restored", [False, True])
@pytest.mark.parametrize("is_from_result", [False, True])
def test_what_failed_is_tried_again_and_what_is_done_is_not(is_restored: bool, is_from_result: bool) -> None:
    broken, mended, session = bench(), bench(is_mended=True), Session()
    first = broken.run(STEPS, session, max_parallel=1)
    assert (first.status, broken.calls) == ("failed", ["work", "mail", ("broken", "x")])
    session = restored(session) if is_restored else session
    again = mended.run(first.workflow if is_from_result else STEPS, session)
    assert (again.status, mended.calls, dict(again.errors)) == ("completed", [("broken", "x")], {})
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
    broken, session = bench(), Session()
    given: dict[str, Any] = {"user_prompt": "One", "inputs": {"x": [1, (2,)]}}
    broken.run(STEPS, session, **given)
    broken.run(STEPS, session, **given)
    assert len(session.select_all(WorkflowRun)) == 1
    changes: list[tuple[Workflow, dict[str, Any]]] = [
        (STEPS, {"user_prompt": "Two"}),
        (STEPS, {"inputs": {"x": 2}}),
        (replace(STEPS, goal="Find out more"), {}),
    ]
    for workflow, changed in changes:
        broken.took()
        result = broken.run(workflow, session, **{**given, **changed}, max_parallel=1)
        assert result.warnings == ()  # the plan shows it in place of the run before
        assert broken.took() == ["work", "mail", ("broken", "x")]
    assert len(session.select_all(WorkflowRun)) == 4


def test_a_call_that_was_refused_before_it_was_made_is_made_the_next_time() -> None:
    def narrow(to: str) -> str:
        return to

    def wide(to: int) -> int:
        return to

    steps, session = flow(called("m", tool="mail", inputs={"to": 1})), Session()
    refusing, taking = Bench(mail=narrow), Bench(mail=wide)
    assert (refusing.run(steps, session).errors["m"].code, refusing.calls) == ("parameter", [])
    assert (dict(taking.run(steps, session).outputs), taking.calls) == ({"m": 1}, [("mail", 1)])


# Documents that say how far their steps are


def test_what_a_document_says_of_its_steps_is_no_run_so_they_all_run() -> None:
    mended, session = bench(is_mended=True), Session()
    at = "2024-05-06T07:08:09+00:00"
    workflow = flow(
        called("a", status="completed", completed_at=at, expected_key="key", output_path=("rows",)),
        called("s", status="pending", skipped=True),
        called("b", "a", "s", tool="broken", inputs={"value": "${a.output.rows[2]}"}),
        status="in_progress",
    )
    result = mended.run(workflow, session, inputs={"key": [7]}, max_parallel=1)
    assert (mended.calls, result.status, result.outputs["b"]) == (
        ["work", "work", ("broken", "x")],
        "completed",
        "x",
    )
    assert states(result.workflow) == dict.fromkeys("asb", "completed")
    assert result.workflow.steps[0].completed_at != at


@pytest.mark.parametrize("status", ["completed", "failed", "in_progress"])
def test_a_step_that_ran_elsewhere_and_must_not_be_called_twice_is_refused(status: Any) -> None:
    mended, session = bench(is_mended=True), Session()
    with pytest.raises(WorkflowError) as refused:
        mended.run(flow(called("a"), called("m", "a", tool="mail", status=status)), session)
    assert str(refused.value) == (
        f"step 'm' is already {status}, mail must not be called twice, and this session does not have that "
        "run; resume it in its own session or snapshot, or set the status of the step to 'pending' to call "
        "it again"
    )
    assert (mended.calls, session.select_all(WorkflowRun)) == ([], ())


# Edited workflows


def shop() -> Bench:
    """One tool takes only good values, one must not be called twice and fails."""

    def work(value: int = 1) -> int:
        if value < 0:
            raise ToolError(f"{value} is too little")
        return value

    def mail(value: int = 1) -> None:
        raise ToolError("The line went dead")

    return Bench(work=work, mail=mail)


DONE = called("a", inputs={"value": 7}, expected_key="key")
FAILING = called("b", "a", inputs={"value": -1})
MENDED = called("b", "a", inputs={"value": 2})
BEHIND = called("c", "b", inputs={"value": "${b.output}"})
SKIPPED = called("s", "a", done_check="True")


def begun(*steps: WorkflowStep, **fields: Any) -> Session:
    """A session with a run of these steps."""
    session = Session()
    shop().run(flow(*steps, **fields), session)
    return session


@pytest.mark.parametrize("goal", ["Find it out", ""])
def test_a_failed_step_with_other_inputs_is_run_and_what_is_done_is_not(goal: str) -> None:
    session, tools = begun(DONE, FAILING, BEHIND, goal=goal), shop()
    assert states(session.select_latest(Workflow)) == {"a": "completed", "b": "failed", "c": "pending"}
    mended = flow(DONE, MENDED, BEHIND, goal=goal)
    result = tools.run(mended, session)
    assert (result.status, dict(result.outputs)) == ("completed", {"a": 7, "b": 2, "c": 2})
    assert tools.calls == [("work", 2), ("work", 2)]
    assert [run.workflow for run in session.select_all(WorkflowRun)] == [mended]
    assert [status for status, _ in plan_notes(session)] == ["done", "done", "done"]


CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"inputs": {"value": 8}}, "inputs"),
    ({"description": "Else"}, "description"),
    ({"expected_key": None}, "expected_key"),
    ({"output_path": ("x",)}, "output_path"),
    ({"type": None, "name": None, "agent": "x"}, "type and name and agent"),
]
CHANGED: list[tuple[list[WorkflowStep], str]] = [
    *(
        ([replace(DONE, **new), SKIPPED, MENDED], f"step 'a' is completed and its {fields} changed")
        for new, fields in CHANGES
    ),
    ([called("s", done_check="True"), called("b")], "step 'a' is completed and was removed"),
    (
        [DONE, replace(SKIPPED, done_check="False"), MENDED],
        "step 's' is completed and its done_check changed",
    ),
]


@pytest.mark.parametrize(("steps", "what"), CHANGED)
def test_a_completed_step_that_was_changed_or_removed_is_refused_by_name(
    steps: list[WorkflowStep], what: str
) -> None:
    session, tools = begun(DONE, SKIPPED, FAILING), shop()
    before = session.snapshot()
    with pytest.raises(WorkflowError) as refused:
        tools.run(flow(*steps), session)
    assert str(refused.value) == (
        f"the unfinished run in this session cannot be resumed: {what}; restore that step, or use another "
        "session to start over"
    )
    assert (tools.calls, session.snapshot()) == ([], before)


@pytest.mark.parametrize(
    "changes",
    [
        {"depends_on": ("new",)},
        {"timeout": 5.0, "retries": 0, "on_failure": "continue"},
        {"done_check": "False"},
        {"status": "failed"},
    ],
)
def test_what_says_when_and_how_a_completed_step_runs_may_change(changes: Any) -> None:
    session, tools = begun(DONE, FAILING, BEHIND), shop()
    result = tools.run(flow(thought("new"), replace(DONE, **changes), MENDED, BEHIND), session)
    assert (result.status, tools.calls) == ("completed", [("work", 2), ("work", 2)])


def test_a_failed_step_that_must_not_be_called_twice_is_not_called_with_other_inputs_either() -> None:
    tools, session = shop(), Session()
    first = flow(thought("t"), called("m", "t", tool="mail"))
    tools.run(first, session)
    other = called("m", "t", tool="mail", inputs={"value": 2})
    again = tools.run(replace_step(first, other), session)
    assert (again.errors["m"].message, tools.took()) == ("The line went dead", ["mail"])
    assert again.warnings == (
        "step 'm' may have taken effect before and must not be called twice, so it was not called; give it "
        "another step_id to call it",
    )
    tools.run(flow(first.steps[0], replace(other, step_id="m2")), session)
    assert tools.calls == [("mail", 2)]


def test_without_a_goal_other_steps_with_the_same_numbers_are_another_workflow() -> None:
    tools, session = shop(), Session()
    for value in (7, 8):
        steps = called("1", inputs={"value": value}), called("2", "1", inputs={"value": -value})
        assert tools.run(flow(*steps, goal=""), session).status == "failed"
    assert tools.calls == [("work", 7), ("work", -7), ("work", 8), ("work", -8)]
    assert len(session.select_all(WorkflowRun)) == 2
