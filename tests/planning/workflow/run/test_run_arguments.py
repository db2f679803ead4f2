"""What running a workflow takes and refuses, and what it gives back."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from run_cases import called, capable, flow, refusal, thought
from syrupy.assertion import SnapshotAssertion

from planning.tools import ToolError
from planning.workflow import (
    Capabilities,
    Workflow,
    WorkflowError,
    arun_workflow,
    run_workflow,
)
from session import Session

NOTHING = Capabilities()
TIMEOUT = "a timeout must be seconds of more than 0, at most 1000000, or None; got "
PARALLEL = "max_parallel must be a whole number of at least 1, got "
INPUTS = "inputs must be a mapping from memory keys, which are strings, to values"


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"workflow": "{}"}, TypeError,
         "workflow must be a Workflow, such as validate_workflow(document).workflow, got str"),
        ({"capabilities": [print]}, TypeError, "capabilities must be Capabilities(tools=[...]), got list"),
        ({"user_prompt": b""}, TypeError, "user_prompt must be text, got bytes"),
        ({"max_parallel": 0}, ValueError, PARALLEL + "0"),
        ({"max_parallel": True}, ValueError, PARALLEL + "True"),
        ({"timeout": 0}, ValueError, TIMEOUT + "0"),
        ({"inputs": [1]}, TypeError, INPUTS + ", got list"),
        ({"inputs": {1: 2}}, TypeError, INPUTS + ", got dict"),
        ({"session": "mine"}, TypeError, "session must be a Session, got str"),
        ({"executor": "threads"}, TypeError,
         "executor must be a concurrent.futures.Executor, got str"),
    ],
)  # fmt: skip
def test_an_argument_of_another_kind_is_refused(options: Any, kind: type[Exception], message: str) -> None:
    given = {"workflow": Workflow(), "capabilities": NOTHING, **options}
    assert refusal(kind, run_workflow, **given) == message


def test_in_a_running_event_loop_it_says_what_to_await() -> None:
    async def scene() -> None:
        session, steps = Session(), flow(thought("a"))
        before = session.snapshot()
        assert refusal(WorkflowError, run_workflow, steps, NOTHING, session=session) == (
            "an event loop is running in this thread: await arun_workflow(...) instead"
        )
        assert session.snapshot() == before
        assert (await arun_workflow(steps, NOTHING, session=session)).status == "completed"

    asyncio.run(scene())


def test_a_result_as_json(snapshot: SnapshotAssertion) -> None:
    def broken() -> None:
        raise ToolError("It broke")

    steps = [
        called("c", "b"),
        thought("b", expected_key="idea"),
        called("x", tool="broken", on_failure="continue"),
        thought("s", done_check="memory"),
    ]
    capabilities = capable(work=lambda: {"n": (1, 2)}, broken=broken)
    told_of = run_workflow(flow(*steps), capabilities, inputs={"given": {1: b"raw"}}).to_dict()
    document = told_of["workflow"]
    for part in (document, *document["steps"]):
        for name in ("created_at", "completed_at"):
            if part.get(name) is not None:
                part[name] = "2024-01-02T03:04:05+00:00"
    assert json.dumps(told_of, indent=2) + "\n" == snapshot


@pytest.mark.parametrize("first", [10, 1])
@pytest.mark.parametrize("limit", [1, 3, 50])
def test_never_more_steps_run_at_once_than_allowed_and_as_many_as_that_do(limit: int, first: int) -> None:
    running = list[int]()
    most = 0

    async def work() -> None:
        nonlocal most
        running.append(1)
        most = max(most, len(running))
        await asyncio.sleep(0.01)
        running.pop()

    steps = [called(f"a{number}") for number in range(first)]
    steps += [called(f"b{number}", f"a{number % first}") for number in range(10)]
    result = run_workflow(flow(*steps), capable(work=work), max_parallel=limit)
    assert (result.status, most) == ("completed", min(limit, 10))


@pytest.mark.parametrize(
    "fields",
    [
        {"type": "tool", "name": "busy"},
        {},
        {"done_check": "True"},
        {"type": "tool", "name": "nobody", "on_failure": "continue"},
    ],
    ids=["calls", "thinks", "is skipped", "fails"],
)
def test_a_step_that_never_waits_keeps_nobody_else_from_running(fields: dict[str, Any]) -> None:
    async def busy() -> None:
        return None

    async def scene() -> None:
        steps = [
            thought(f"s{number}", *([f"s{number - 1}"] if number else []), **fields) for number in range(99)
        ]
        run = asyncio.create_task(arun_workflow(flow(*steps), capable(busy=busy)))
        turns = 0
        while not run.done():
            await asyncio.sleep(0)
            turns += 1
        assert (turns > 99, run.result().status) == (True, "completed")

    asyncio.run(scene())


def test_steps_that_are_ready_at_once_run_in_the_order_of_the_document() -> None:
    ran = list[str]()

    def work(step: str) -> None:
        ran.append(step)

    after = {"a": ["c"], "b": [], "c": [], "d": ["b"], "e": []}
    steps = [called(step, *needs, inputs={"step": step}) for step, needs in after.items()]
    run_workflow(flow(*steps), capable(work=work), max_parallel=1)
    assert ran == ["b", "c", "e", "d", "a"]


FIELDS: list[dict[str, Any]] = [
    {"inputs": {"table": "t"}},
    {"name": "x"},
    {"type": "tool", "name": "work", "agent": "x"},
    {"type": "function", "name": "x"},
    {"on_failure": "stop"},
    *({"timeout": each} for each in (0, "5")),
    *({"retries": each} for each in (-1, True)),
]
REFERRING: list[Any] = ["${user_prompt}", {"deep": [1, ({"er": "$${x} ${user_prompt}"},)]}]
REFUSED = {
    "a step that depends on itself": [thought("a", "a")],
    "a cycle": [thought("a", "c"), thought("b", "a"), thought("c", "b"), thought("d")],
    "a cycle of thirty": [thought(f"s{number}", f"s{(number + 1) % 30}") for number in range(30)],
    "no such step": [thought("a", "nobody")],
    "an id twice": [thought("a"), thought("b"), thought("a")],
    **{f"no prompt for {each}": [thought("a"), called("b", "a", inputs={"q": each})] for each in REFERRING},
    **{f"a step with {fields}": [thought("a", **fields)] for fields in FIELDS},
}


def test_what_has_no_order_or_is_impossible_is_refused_and_nothing_is_begun(
    snapshot: SnapshotAssertion,
) -> None:
    session, told = Session(), ""
    before = session.snapshot()
    for what, steps in REFUSED.items():
        message = refusal(WorkflowError, run_workflow, flow(*steps), capable(), session=session)
        told += f"{what}\n    {message}\n"
        assert session.snapshot() == before
    assert told == snapshot
