"""Going on with a run: what continues, what begins afresh, and workflows that were begun elsewhere."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from run_cases import called, capable, flow, plain_tool, plan_notes, restored, states, thought

from planning.tools import ToolError
from planning.workflow import (
    Workflow,
    WorkflowError,
    WorkflowResult,
    WorkflowStep,
    run_workflow,
)
from planning.workflow.edits import replace_step
from planning.workflow.run.records import WorkflowRun
from session import Session


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


class Shop:
    """Tools that note their calls; one takes only good values, one must not be called twice."""

    def __init__(self) -> None:
        self.calls: list[Any] = []

    def run(self, workflow: Workflow, session: Session, **options: Any) -> WorkflowResult:
        def work(value: int = 1) -> int:
            self.calls.append(value)
            if value < 0:
                raise ToolError(f"{value} is too little")
            return value

        def mail(value: int = 1) -> None:
            self.calls.append(f"mail {value}")
            raise ToolError("The line went dead")

        tools = plain_tool("work", work), plain_tool("mail", mail, idempotent=False)
        return run_workflow(workflow, capable(*tools), session=session, **options)


FIRST = flow(
    called("a", inputs={"value": 7}, expected_key="key"),
    called("b", "a", inputs={"value": -1}),
    called("c", "b", inputs={"value": "${b.output}"}),
)
MENDED = called("b", "a", inputs={"value": 2})


@pytest.fixture
def shop() -> Shop:
    return Shop()


@pytest.fixture
def session(shop: Shop) -> Session:
    session = Session()
    assert states(shop.run(FIRST, session).workflow) == {"a": "completed", "b": "failed", "c": "pending"}
    assert shop.calls == [7, -1]
    shop.calls.clear()
    return session


@pytest.mark.parametrize("goal", ["Find it out", ""])
def test_a_failed_step_with_other_inputs_is_run_and_what_is_done_is_not(shop: Shop, goal: str) -> None:
    session = Session()
    shop.run(replace(FIRST, goal=goal), session)
    shop.calls.clear()
    mended = replace(FIRST, goal=goal, steps=(FIRST.steps[0], MENDED, FIRST.steps[2]))
    result = shop.run(mended, session)
    assert (result.status, dict(result.outputs), shop.calls) == (
        "completed",
        {"a": 7, "b": 2, "c": 2},
        [2, 2],
    )
    assert [run.workflow for run in session.select_all(WorkflowRun)] == [mended]
    assert [status for status, _ in plan_notes(session)] == ["done", "done", "done"]


SKIPPED = called("s", "a", done_check="True")
CHANGES: list[tuple[dict[str, Any], str]] = [
    ({"inputs": {"value": 8}}, "inputs"),
    ({"description": "Else"}, "description"),
    ({"expected_key": None}, "expected_key"),
    ({"output_path": ("x",)}, "output_path"),
    ({"type": None, "name": None, "agent": "x"}, "type and name and agent"),
]
CHANGED: list[tuple[list[WorkflowStep], str]] = [
    *(
        ([replace(FIRST.steps[0], **new), SKIPPED, MENDED], f"step 'a' is completed and its {fields} changed")
        for new, fields in CHANGES
    ),
    ([called("s", done_check="True"), called("b")], "step 'a' is completed and was removed"),
    (
        [FIRST.steps[0], replace(SKIPPED, done_check="False"), MENDED],
        "step 's' is completed and its done_check changed",
    ),
]


@pytest.mark.parametrize(("steps", "what"), CHANGED)
def test_a_completed_step_that_was_changed_or_removed_is_refused_by_name(
    shop: Shop, steps: list[WorkflowStep], what: str
) -> None:
    session = Session()
    shop.run(flow(FIRST.steps[0], SKIPPED, FIRST.steps[1]), session)
    shop.calls.clear()
    before = session.snapshot()
    with pytest.raises(WorkflowError) as refused:
        shop.run(flow(*steps), session)
    assert str(refused.value) == (
        f"the unfinished run in this session cannot be resumed: {what}; restore that step, or use another "
        "session to start over"
    )
    assert (shop.calls, session.snapshot()) == ([], before)


@pytest.mark.parametrize(
    "changes",
    [
        {"depends_on": ("new",)},
        {"timeout": 5.0, "retries": 0, "on_failure": "continue"},
        {"done_check": "False"},
        {"status": "failed"},
    ],
)
def test_what_says_when_and_how_a_completed_step_runs_may_change(
    shop: Shop, session: Session, changes: Any
) -> None:
    steps = (thought("new"), replace(FIRST.steps[0], **changes), MENDED, FIRST.steps[2])
    result = shop.run(replace(FIRST, steps=steps), session)
    assert (result.status, shop.calls) == ("completed", [2, 2])


def test_a_failed_step_that_must_not_be_called_twice_is_not_called_with_other_inputs_either(
    shop: Shop,
) -> None:
    session = Session()
    first = flow(thought("t"), called("m", "t", tool="mail"))
    shop.run(first, session)
    other = called("m", "t", tool="mail", inputs={"value": 2})
    again = shop.run(replace_step(first, other), session)
    assert (again.errors["m"].message, shop.calls) == ("The line went dead", ["mail 1"])
    assert again.warnings == (
        "step 'm' may have taken effect before and must not be called twice, so it was not called; give it "
        "another step_id to call it",
    )
    renamed = flow(first.steps[0], replace(other, step_id="m2"))
    shop.run(renamed, session)
    assert shop.calls == ["mail 1", "mail 2"]


def test_without_a_goal_other_steps_with_the_same_numbers_are_another_workflow(shop: Shop) -> None:
    session = Session()
    for value in (7, 8):
        steps = called("1", inputs={"value": value}), called("2", "1", inputs={"value": -value})
        assert shop.run(flow(*steps, goal=""), session).status == "failed"
    assert (shop.calls, len(session.select_all(WorkflowRun))) == ([7, -7, 8, -8], 2)
