"""Runs that are stopped, and runs that are resumed: what continues, and what starts over."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from run_cases import (
    MAYBE,
    Bench,
    Slow,
    called,
    cancelled,
    capable,
    flow,
    plain_tool,
    plan_notes,
    refusal,
    restored,
    states,
    thought,
    tool_threads,
)
from syrupy.assertion import SnapshotAssertion

from planning.tools import ToolError
from planning.tools.guard import Retry
from planning.tools.parameters.model import FreeModel
from planning.workflow import Capabilities, Workflow, WorkflowError, WorkflowStep, arun_workflow, run_workflow
from planning.workflow.edits import replace_step
from planning.workflow.run.records import StepChanged, StepRecord, WorkflowRun
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
    prompt = "" if is_restored else None  # which is the same
    again = mended.run(first.workflow if is_from_result else STEPS, session, user_prompt=prompt)
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
    mended = bench(is_mended=True)
    assert mended.run(STEPS, session, **given, max_parallel=1).status == "completed"
    assert mended.calls == [("broken", "x")]  # the first one is resumed, though others came later
    assert len(session.select_all(WorkflowRun)) == 4


def test_a_call_that_was_refused_before_it_was_made_is_made_the_next_time() -> None:
    def mail(to: str) -> str:
        return to

    steps, session = flow(called("m", tool="mail", inputs={"to": 1})), Session()
    refusing, taking = Bench(mail=mail), Bench(mail=lambda to: to)
    assert (refusing.run(steps, session).errors["m"].code, refusing.calls) == ("parameter", [])
    assert (dict(taking.run(steps, session).outputs), taking.calls) == ({"m": 1}, [("mail", 1)])


# Documents that say how far their steps are


def test_what_a_document_says_of_its_steps_is_no_run_so_they_all_run() -> None:
    mended, at = bench(is_mended=True), "2024-05-06T07:08:09+00:00"
    workflow = flow(
        called("a", status="completed", completed_at=at, expected_key="key", output_path=("rows",)),
        called("s", status="pending", skipped=True),
        called("b", "a", "s", tool="broken", inputs={"value": "${a.output.rows[2]}"}),
        status="in_progress",
    )
    result = mended.run(workflow, Session(), inputs={"key": [7]}, max_parallel=1)
    assert (mended.calls, result.status) == (["work", "work", ("broken", "x")], "completed")
    assert result.outputs["b"] == "x"
    assert states(result.session.select_all(WorkflowRun)[0].workflow) == dict.fromkeys("asb", "pending")
    assert states(result.workflow) == dict.fromkeys("asb", "completed")
    assert result.workflow.steps[0].completed_at != at


@pytest.mark.parametrize("status", ["completed", "failed", "in_progress"])
def test_a_step_that_ran_elsewhere_and_must_not_be_called_twice_is_refused(status: Any) -> None:
    mended, session = bench(is_mended=True), Session()
    steps = flow(called("a"), called("m", "a", tool="mail", status=status))
    assert refusal(WorkflowError, mended.run, steps, session) == (
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


def changed(**fields: Any) -> list[WorkflowStep]:
    return [replace(DONE, **fields), SKIPPED, MENDED]


CHANGED = [
    changed(inputs={"value": 8}),
    changed(description="Else"),
    changed(expected_key=None),
    changed(output_path=("x",)),
    changed(type=None, name=None, agent="x"),
    [called("s", done_check="True"), called("b")],
    [DONE, called("s", "a", done_check="False"), MENDED],
]


def test_a_completed_step_that_was_changed_or_removed_is_refused_by_name(snapshot: SnapshotAssertion) -> None:
    session, tools = begun(DONE, SKIPPED, FAILING), shop()
    before = session.snapshot()
    told = [refusal(WorkflowError, tools.run, flow(*steps), session) for steps in CHANGED]
    assert "\n".join(told) + "\n" == snapshot
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
@pytest.mark.parametrize("goal", ["Find it out", ""])
def test_what_says_when_and_how_a_completed_step_runs_may_change(changes: Any, goal: str) -> None:
    same = called("same", inputs={"value": 3})
    session, tools = begun(same, DONE, FAILING, BEHIND, goal=goal), shop()
    mended = flow(same, thought("new"), replace(DONE, **changes), MENDED, BEHIND, goal=goal)
    result = tools.run(mended, session)
    assert (result.status, tools.calls) == ("completed", [("work", 2), ("work", 2)])
    assert [run.workflow.steps[-2:] for run in session.select_all(WorkflowRun)] == [(MENDED, BEHIND)]


def test_a_failed_step_that_must_not_be_called_twice_is_not_called_with_other_inputs_either() -> None:
    tools, session, first = shop(), Session(), flow(thought("t"), called("m", "t", tool="mail"))
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


def stop(
    workflow: Workflow, capabilities: Capabilities, slow: Slow, *, begun: int = 1, times: int = 1
) -> Session:
    """Run in a session of its own, and cancel so many times as soon as so many calls have begun."""
    session = Session()

    async def scene() -> None:
        run = asyncio.create_task(arun_workflow(workflow, capabilities, session=session, max_parallel=3))
        await slow.until_begun(begun)
        for _ in range(times):
            run.cancel()
            for _ in range(20):
                await asyncio.sleep(0)
            slow.was_awaited.append(not run.done())
        if times == 1:
            slow.may_end.set()
        await cancelled(run)
        slow.may_end.set()

    asyncio.run(scene())
    return session


def test_running_async_steps_are_cancelled_and_the_rest_is_pending() -> None:
    slow = Slow()
    steps = [thought("a"), called("b", tool="later"), called("c", "b"), called("d", tool="later")]
    session = stop(flow(*steps), capable(later=slow.later, work=slow.later), slow, begun=2)
    assert slow.told == ["cancelled", "cancelled"]
    (workflow,) = session.select_all(Workflow)
    assert states(workflow) == {"a": "completed", "b": "pending", "c": "pending", "d": "pending"}
    assert (workflow.status, workflow.completed_at) == ("in_progress", None)
    stopped = ("pending", ("Stopped before it was done",))
    assert plan_notes(session) == [("done", ("Thought through",)), stopped, ("pending", ()), stopped]
    last = [(each.step_id, each.status) for each in session.select_all(StepRecord)[-2:]]
    assert sorted(last) == [("b", "pending"), ("d", "pending")]


def test_steps_in_threads_are_awaited_and_their_outputs_are_kept() -> None:
    slow = Slow()
    calls = [called(step_id, tool="plain") for step_id in "abc"]
    workflow = flow(*calls, thought("d", "a"), thought("e", "c"))
    session = stop(workflow, capable(plain=slow.plain), slow, begun=3)
    assert slow.was_awaited == [True]
    statuses = dict.fromkeys("abc", "completed") | dict.fromkeys("de", "pending")
    assert states(session.select_latest(Workflow)) == statuses
    assert tool_threads("plain") == []
    again = run_workflow(workflow, capable(plain=Slow().plain), session=session)
    assert dict(again.outputs) == dict.fromkeys("abc", "from a thread") | {"d": "Do d", "e": "Do e"}


@pytest.mark.parametrize("tool", ["plain", "careful"])
def test_a_second_cancelling_waits_for_nothing(tool: str) -> None:
    slow = Slow()
    workflow = flow(called("a", tool="mail"), thought("b", "a"))
    mail = plain_tool("mail", getattr(slow, tool), idempotent=False)
    session = stop(workflow, capable(mail), slow, times=2)
    assert slow.was_awaited[0] is True
    assert states(session.select_latest(Workflow)) == {"a": "failed", "b": "pending"}
    again = Bench(mail=lambda: "twice!").run(workflow, session)
    assert (again.status, dict(again.errors), dict(again.outputs)) == ("failed", {"a": MAYBE}, {})


@pytest.mark.parametrize("idempotent", [True, False])
def test_a_call_that_must_be_once_or_refuses_to_be_cancelled_is_awaited(idempotent: bool) -> None:
    slow = Slow()

    async def stubborn() -> str:
        with suppress(asyncio.CancelledError):
            await slow.later()
        return "nevertheless"

    work = plain_tool("work", stubborn if idempotent else slow.careful, idempotent=idempotent)
    session = stop(flow(called("a"), thought("b", "a")), capable(work), slow)
    assert slow.told == ["cancelled" if idempotent else "careful"]
    assert states(session.select_latest(Workflow)) == {"a": "completed", "b": "pending"}


@pytest.mark.parametrize(
    ("is_in_the_wait", "retries", "idempotent", "state"),
    [
        (True, 2, True, "pending"),
        (False, 2, True, "pending"),
        (False, 0, True, "failed"),
        (False, 2, False, "failed"),
    ],
)
def test_a_run_that_is_stopped_between_two_attempts_makes_no_other_and_keeps_the_last_failure(
    is_in_the_wait: bool, retries: int, idempotent: bool, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    monkeypatch.setattr("planning.workflow.run.calls.Retry", partial(Retry, wait_initial=60, wait_max=60))

    async def scene(session: Session) -> None:
        tried, go_on = asyncio.Event(), threading.Event()
        loop = asyncio.get_running_loop()

        def work() -> None:
            calls.append(1)
            loop.call_soon_threadsafe(tried.set)
            go_on.wait(10)
            raise ConnectionError("reset")

        tools = capable(plain_tool("work", work, idempotent=idempotent))
        run = asyncio.create_task(arun_workflow(flow(called("a", retries=retries)), tools, session=session))
        await tried.wait()
        if is_in_the_wait:
            go_on.set()
            await asyncio.sleep(0.1)
        run.cancel()
        loop.call_later(0.02, go_on.set)
        await cancelled(run)

    session = Session()
    asyncio.run(scene(session))
    assert (calls, states(session.select_latest(Workflow))) == ([1], {"a": state})
    error = session.select_all(StepRecord)[-1].error
    assert (None if error is None else error.cause) == ("reset" if state == "failed" else None)


def test_what_breaks_in_a_session_of_others_stops_the_run_and_leaves_nothing_running() -> None:
    def refuse(_slice: tuple[Any, ...], event: StepChanged) -> tuple[Any, ...]:
        if event.record.step_id == "b":
            raise RuntimeError("not in my session")
        return ()

    slow, session = Slow(), Session()
    session.register_reducer(StepChanged, refuse, Slow)
    steps, tools = flow(called("a"), thought("b")), capable(work=slow.later)
    assert refusal(RuntimeError, run_workflow, steps, tools, session=session) == "not in my session"
    assert slow.told == []
    assert states(session.select_latest(Workflow)) == {"a": "pending", "b": "pending"}


@pytest.fixture(autouse=True)
def errors_of_asyncio(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """What asyncio says of tasks that were left behind fails the test."""
    with caplog.at_level(logging.ERROR, "asyncio"):
        yield
    assert [each.getMessage() for each in caplog.get_records("call") if each.name == "asyncio"] == []


def ended_by(run: Callable[[], object]) -> type[BaseException]:
    """What a run ended with; whatever it left behind is found now."""
    with pytest.raises(BaseException) as ended:
        run()
    gc.collect()
    return ended.type


def test_ctrl_c_stops_a_run_cleanly_and_it_can_go_on() -> None:
    slow = Slow()

    async def work() -> str:
        signal.raise_signal(signal.SIGINT)
        return await slow.later()

    session = Session()
    workflow = flow(thought("a"), called("b", "a"), thought("c", "b"))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it
    try:
        ended = ended_by(lambda: run_workflow(workflow, capable(work=work), session=session))
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended is KeyboardInterrupt
    assert states(session.select_latest(Workflow)) == {"a": "completed", "b": "pending", "c": "pending"}
    result = run_workflow(workflow, capable(work=lambda: "again"), session=session)
    assert dict(result.outputs) == {"a": "Do a", "b": "again", "c": "Do c"}
    assert len(session.select_all(WorkflowRun)) == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("options", [{}, {"parameters": FreeModel(), "publishes": "own"}], ids=len)
def test_a_tool_that_must_not_be_called_twice_and_ends_the_process_is_not_called_again(
    options: Any, error: type[BaseException]
) -> None:
    calls: list[int] = []

    def work(_params: Any = None, _context: Any = None) -> None:
        calls.append(1)
        raise error

    session, steps = Session(), flow(called("a"))
    capabilities = capable(plain_tool("work", work, idempotent=False, **options))
    assert ended_by(lambda: run_workflow(steps, capabilities, session=session)) is error
    assert states(session.select_latest(Workflow)) == {"a": "failed"}
    result = run_workflow(steps, capabilities, session=session)
    assert (calls, dict(result.errors)) == ([1], {"a": MAYBE})
