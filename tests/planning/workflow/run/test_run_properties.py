"""Random workflows: their runs, whole, interrupted, stored and resumed, against a plain account of them."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from run_cases import called, capable, flow, plain_tool, plan_states, states, thought

from planning import Plan
from planning.tools import ToolContext, ToolError
from planning.workflow import Capabilities, Workflow, WorkflowResult, arun_workflow, run_workflow
from planning.workflow.model import OnFailure
from planning.workflow.run.records import RunChanged, StepChanged, StepRecord, WorkflowRun
from session import Session, Snapshot
from session.stores import MemoryStore


@attrs.frozen
class Drawn:
    workflow: Workflow
    failing: frozenset[str]


@st.composite
def drawn_runs(draw: st.DrawFn, limit: int = 7) -> Drawn:
    """A workflow in any order of its steps: they use the outputs of some of those that they depend on.

    Two steps store under one key only if one of them runs after the other: the later value counts.
    """
    ids = [f"s{number}" for number in range(draw(st.integers(1, limit)))]
    steps, failing = [], set()
    before: dict[str, set[str]] = {}
    holders: dict[str, set[str]] = {"one": set(), "two": set()}
    for at, step_id in enumerate(ids):
        depends_on = draw(st.lists(st.sampled_from(ids[:at]), max_size=3)) if at else []
        before[step_id] = {*depends_on}.union(*(before[each] for each in depends_on))
        used = draw(st.lists(st.sampled_from(depends_on), unique=True)) if depends_on else []
        kind = draw(st.sampled_from(["tool", "tool", "fails", "thinking"]))
        said: dict[str, Any] = {}
        if kind != "thinking":
            inputs = {"used": [f"${{{each}.output}}" for each in used]}
            said = {"type": "tool", "name": "work", "inputs": inputs}
        if kind == "fails":
            failing.add(step_id)
        if draw(st.booleans()):
            key = draw(st.sampled_from(["one", "two"]))
            is_free = holders[key] <= before[step_id]
            said["expected_key"] = key if is_free else f"key of {step_id}"
            if is_free:
                holders[key].add(step_id)
        said["on_failure"] = draw(st.sampled_from(["fail", "skip_dependents", "continue"]))
        steps.append(thought(step_id, *depends_on, **said))
    return Drawn(flow(*draw(st.permutations(steps))), frozenset(failing))


def working(
    failing: frozenset[str], called: Callable[[str], object] = lambda step_id: None, **options: Any
) -> Capabilities:
    """Capabilities with the tool that these workflows call; ``called`` hears of each call first."""

    async def work(used: list[str], context: ToolContext) -> str:
        step_id = str(context.values["step_id"])
        called(step_id)
        if step_id in failing:
            raise ToolError(f"{step_id} failed")
        return f"{step_id}({','.join(used)})"

    return Capabilities(tools=[plain_tool("work", work, **options)])


@attrs.frozen
class Expected:
    status: str
    statuses: dict[str, str]
    outputs: dict[str, str]
    failed: set[str]
    skipped: dict[str, bool]
    plan: list[str]


def expected(drawn: Drawn) -> Expected:
    steps = {step.step_id: step for step in drawn.workflow.steps}
    statuses: dict[str, str] = {}
    outputs: dict[str, str] = {}
    causes: dict[str, set[str]] = {}
    while len(statuses) < len(steps):
        for step_id, step in steps.items():
            if step_id in statuses or any(each not in statuses for each in step.depends_on):
                continue
            causes[step_id] = set()
            for other in step.depends_on:
                causes[step_id] |= causes[other]
                if statuses[other] == "failed" and steps[other].on_failure != "continue":
                    causes[step_id].add(other)
            used = [each[2:-8] for each in step.inputs.get("used", ())]
            if causes[step_id]:
                statuses[step_id] = "pending"
            elif step_id in drawn.failing or any(each not in outputs for each in used):
                statuses[step_id] = "failed"
            else:
                statuses[step_id] = "completed"
                made = f"{step_id}({','.join(outputs[each] for each in used)})"
                outputs[step_id] = made if step.type else step.description
    failed = {step_id for step_id, status in statuses.items() if status == "failed"}
    marks = {"completed": "done", "failed": "blocked", "pending": "blocked"}
    return Expected(
        "failed" if any(steps[each].on_failure == "fail" for each in failed) else "completed",
        {step_id: statuses[step_id] for step_id in steps},
        {step_id: outputs[step_id] for step_id in steps if step_id in outputs},
        failed,
        {
            each: bool(causes[each])
            and all(steps[cause].on_failure == "skip_dependents" for cause in causes[each])
            for each in steps
        },
        [marks[statuses[step_id]] for step_id in steps],
    )


limits = st.integers(1, 4)


def check(result: WorkflowResult, drawn: Drawn) -> None:
    """Hold a result against what must come of the workflow."""
    wanted = expected(drawn)
    statuses = {step.step_id: step.status for step in result.workflow.steps}
    assert (result.status, statuses, dict(result.outputs)) == (wanted.status, wanted.statuses, wanted.outputs)
    assert (result.workflow.completed_at is None) is (wanted.status == "failed")
    failed = [each for each in statuses if each in wanted.failed]
    assert (list(result.outputs), list(result.errors)) == (list(wanted.outputs), failed)
    assert all(step.skipped is wanted.skipped[step.step_id] for step in result.workflow.steps)
    assert result.session.select_latest(Workflow) == result.workflow
    assert plan_states(result.session) == wanted.plan
    events = [event for kind in (RunChanged, StepChanged) for event in result.session.select_all(kind)]
    assert {event.session_id for event in events} == {result.session.session_id}
    keys = [step.expected_key for step in drawn.workflow.steps if step.step_id in wanted.outputs]
    assert set(result.memory) == {key for key in keys if key is not None}


@given(drawn_runs(10), limits)
def test_a_run_is_in_order_and_comes_out_as_a_plain_account_says(drawn: Drawn, limit: int) -> None:
    calls: list[str] = []
    result = run_workflow(drawn.workflow, working(drawn.failing, calls.append), max_parallel=limit)
    check(result, drawn)
    assert len(calls) == len(set(calls))
    steps = {step.step_id: step for step in drawn.workflow.steps}
    now, failed = dict[str, StepRecord](), expected(drawn).failed
    running = set()
    for record in result.session.select_all(StepRecord):
        before = now.get(record.step_id)
        assert (None if before is None else before.status) in {
            "in_progress": (None,),
            "completed": ("in_progress",) if steps[record.step_id].type else (None,),
            "failed": ("in_progress", None),
            "pending": (None, "pending"),  # skipped, and then blocked by a failure that counts for more
        }[record.status]
        if record.status == "in_progress":
            running.add(record.step_id)
            assert len(running) <= limit
        else:
            running.discard(record.step_id)
        if record.status in {"in_progress", "completed"}:
            for other in steps[record.step_id].depends_on:
                is_borne = steps[other].on_failure == "continue" and other in failed
                assert now[other].status == ("failed" if is_borne else "completed")
        now[record.step_id] = record
    times = [record.at for record in result.session.select_all(StepRecord)]
    assert times == sorted(times)


def interrupted(
    drawn: Drawn, at: int, session: Session, capabilities: Any, limit: int
) -> WorkflowResult | None:
    """Run, and cancel at a change of a step; None when it was stopped."""

    async def scene() -> WorkflowResult | None:
        options: dict[str, Any] = {"session": session, "max_parallel": limit}
        run = asyncio.create_task(arun_workflow(drawn.workflow, capabilities, **options))
        left = [at]

        def count(_event: StepChanged) -> None:
            left[0] -= 1
            if left[0] == 0:
                run.cancel()

        session.bus.subscribe(StepChanged, count)
        try:
            return await run
        except asyncio.CancelledError:
            return None
        finally:
            session.bus.unsubscribe(StepChanged, count)
            assert asyncio.all_tasks() == {asyncio.current_task()}

    return asyncio.run(scene())


@given(drawn_runs(), st.lists(st.integers(1, 8), max_size=6), limits)
def test_a_cancelled_run_ends_the_same(drawn: Drawn, cancellings: list[int], limit: int) -> None:
    others = set(threading.enumerate())  # such as tools of other tests that never end
    session = Session()
    calls: Counter[str] = Counter()
    completed: set[str] = set()

    def called(step_id: str) -> None:
        assert step_id not in completed
        calls[step_id] += 1

    result = None
    for at in [*cancellings, 0]:
        result = interrupted(drawn, at, session, working(drawn.failing, called), limit)
        if result is not None and result.status == "completed":
            break
        workflow, plan = session.select_latest(Workflow), session.select_latest(Plan)
        assert workflow is not None
        assert plan is not None
        completed = {step.step_id for step in workflow.steps if step.status == "completed"}
        assert all(step.status != "in_progress" for step in workflow.steps)
        assert all(step.status != "in_progress" for step in plan.steps)
    assert result is not None
    check(result, drawn)
    left = set(threading.enumerate()) - others
    assert not [each for each in left if each.name.startswith("tool ")]


@given(drawn_runs(), st.lists(st.tuples(st.integers(1, 8), st.booleans()), max_size=6), limits)
def test_what_must_be_once_is_once(drawn: Drawn, stops: list[tuple[int, bool]], limit: int) -> None:
    calls: Counter[str] = Counter()
    session = Session()
    for at, is_crash in [*stops, (0, False)]:
        dead: list[str] = []
        if is_crash:
            text = crash(drawn, at, session, calls, dead, limit)
            if not dead:
                break
            session = Session()
            session.rollback(Snapshot.from_json(text))
        else:
            capabilities = working(drawn.failing, lambda each: calls.update([each]), idempotent=False)
            result = interrupted(drawn, at, session, capabilities, limit)
            if result is not None and result.status == "completed":
                break
    assert all(count == 1 for count in calls.values())


def crash(drawn: Drawn, at: int, session: Session, calls: Counter[str], dead: list[str], limit: int) -> str:
    """Run until a change of a step, as if the process ended there; returns what was kept."""

    def keep(_event: StepChanged) -> None:
        nonlocal at
        at -= 1
        if at == 0:
            dead.append(session.snapshot().to_json())

    def called(step_id: str) -> None:
        if not dead:
            calls[step_id] += 1

    session.bus.subscribe(StepChanged, keep)
    capabilities = working(drawn.failing, called, idempotent=False)
    run_workflow(drawn.workflow, capabilities, session=session, max_parallel=limit)
    session.bus.unsubscribe(StepChanged, keep)
    return dead[0] if dead else session.snapshot().to_json()


# In stored sessions

SHOWN = {"pending": ["pending", "blocked"], "in_progress": ["in_progress"], "completed": ["done"]}


def outcome(result: WorkflowResult) -> tuple[Any, ...]:
    values = dict(result.outputs), dict(result.memory), dict(result.errors)
    return result.status, states(result.workflow), *values, result.warnings


@given(drawn_runs(6), st.lists(st.integers(1, 12), max_size=4), st.integers(1, 4))
def test_a_stored_run_goes_on_after_any_commit(drawn: Drawn, cuts: list[int], limit: int) -> None:
    """A fork of the versions up to a commit is what a killed process leaves behind."""
    whole = Session(session_id="nightly", store=MemoryStore())
    alone = run_workflow(drawn.workflow, working(drawn.failing), session=whole, max_parallel=limit)
    for number, cut in enumerate(cuts):
        session = whole.fork(at=min(cut, whole.version - 1), session_id=f"cut{number}")
        newest = {each.step_id: each.status for each in session.select_all(StepRecord)}
        if workflow := session.select_latest(Workflow):
            both = zip(workflow.steps, plan_states(session), strict=True)
            assert all(shown in SHOWN.get(step.status, ["blocked"]) for step, shown in both)
        calls: list[str] = []
        tools = working(drawn.failing, calls.append)
        again = run_workflow(drawn.workflow, tools, session=session, max_parallel=limit)
        assert not [each for each in calls if newest.get(each) == "completed"]
        assert outcome(again) == outcome(alone)
        assert len(session.select_all(WorkflowRun)) == 1


@pytest.mark.parametrize(("first", "second"), [("skip_dependents", "fail"), ("fail", "skip_dependents")])
def test_of_two_failures_either_may_be_first(first: OnFailure, second: OnFailure) -> None:
    """The whole run comes to b first; one that is resumed after x, to a."""
    workflow = flow(
        called("y", tool="broken", on_failure="continue"),
        called("x"),
        called("b", "y", tool="broken", on_failure=first),
        called("a", "x", tool="broken", on_failure=second),
        called("c", "a", "b"),
    )
    tools = capable(work=dict, broken=lambda: 1 / 0)
    whole = Session(session_id="nightly", store=MemoryStore())
    alone = run_workflow(workflow, tools, session=whole, max_parallel=1)
    assert states(alone.workflow)["c"] == "pending"
    for version in range(whole.version):
        session = whole.fork(at=version, session_id=f"cut{version}")
        assert outcome(run_workflow(workflow, tools, session=session, max_parallel=1)) == outcome(alone)
