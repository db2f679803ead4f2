"""Going on with a run whose workflow was edited meanwhile."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from run_cases import called, capable, flow, plain_tool, plan_notes, states, thought

from planning.tools import ToolError
from planning.workflow import Workflow, WorkflowError, WorkflowResult, WorkflowStep, run_workflow
from planning.workflow.edits import replace_step
from planning.workflow.run.records import WorkflowRun
from session import Session


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
    """A session whose run failed in the second step of three."""
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
