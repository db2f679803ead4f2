"""In which order steps run, and how many at the same time."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from run_cases import called, capable, flow, thought

from planning.workflow import WorkflowError, arun_workflow, run_workflow
from session import Session


@pytest.mark.parametrize("limit", [1, 3, 50])
def test_never_more_steps_run_at_once_than_allowed_and_as_many_as_that_do(limit: int) -> None:
    running = list[int]()
    most = 0

    async def work() -> None:
        nonlocal most
        running.append(1)
        most = max(most, len(running))
        await asyncio.sleep(0.01)
        running.pop()

    first = [called(f"a{number}") for number in range(10)]
    behind = [called(f"b{number}", f"a{number}") for number in range(10)]
    result = run_workflow(flow(*first, *behind), capable(work=work), max_parallel=limit)
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
    async def scene() -> str:
        ran = asyncio.Event()

        async def busy() -> None:
            return None

        async def other() -> None:
            ran.set()

        steps = [
            thought(f"s{number}", *([f"s{number - 1}"] if number else []), **fields) for number in range(99)
        ]
        run = asyncio.create_task(arun_workflow(flow(*steps), capable(busy=busy)))
        await asyncio.sleep(0)
        aside = asyncio.create_task(other())
        await asyncio.wait([ran_task := asyncio.create_task(ran.wait())], timeout=10)
        was_running = not run.done()
        await asyncio.gather(run, aside, ran_task)
        return f"{was_running}, {run.result().status}"

    assert asyncio.run(scene()) == "True, completed"


def test_steps_that_are_ready_at_once_run_in_the_order_of_the_document() -> None:
    ran = list[str]()

    def work(step: str) -> None:
        ran.append(step)

    after = {"a": ["c"], "b": [], "c": [], "d": ["b"], "e": []}
    steps = [called(step, *needs, inputs={"step": step}) for step, needs in after.items()]
    run_workflow(flow(*steps), capable(work=work), max_parallel=1)
    assert ran == ["b", "c", "e", "d", "a"]


CIRCLE = "the steps depend on each other in a cycle: "
TIMEOUT = "step 'a': a timeout must be seconds of more than 0, at most 1000000, or None; got "
RETRIES = "step 'a': retries must be a whole number of at least 0, got "
FIELDS: list[tuple[dict[str, Any], str]] = [
    ({"inputs": {"table": "t"}},
     "step 'a': it has inputs and calls nothing; name its tool, handler or agent, or remove the inputs"),
    ({"name": "x"}, "step 'a': type and name belong together: give both, or neither"),
    ({"type": "tool", "name": "work", "agent": "x"},
     "step 'a': it names the tool 'work' and the agent 'x'; keep one"),
    ({"type": "function", "name": "x"}, "step 'a': 'function' is unknown; send one of tool, handler"),
    ({"on_failure": "stop"}, "step 'a': 'stop' is unknown; send one of fail, skip_dependents, continue"),
    *(({"timeout": each}, f"{TIMEOUT}{each!r}") for each in (0, "5")),
    *(({"retries": each}, f"{RETRIES}{each!r}") for each in (-1, True)),
]  # fmt: skip
REFUSED = [
    ([thought("a", "a")], f"{CIRCLE}a -> a; remove one dependency"),
    (
        [thought("a", "c"), thought("b", "a"), thought("c", "b"), thought("d")],
        f"{CIRCLE}a -> c -> b -> a; remove one dependency",
    ),
    (
        [thought(f"s{number}", f"s{(number + 1) % 30}") for number in range(30)],
        f"{CIRCLE}s0 -> s1 -> s2 -> ... 25 more ... -> s28 -> s29 -> s0; remove one dependency",
    ),
    (
        [thought("a", "nobody")],
        "step 'a' depends on 'nobody', which does not exist; add that step, or remove the dependency",
    ),
    ([thought("a"), thought("b"), thought("a")], "two steps have the id 'a'; give each its own id"),
    *(([thought("a", **fields)], message) for fields, message in FIELDS),
]


@pytest.mark.parametrize(("steps", "message"), REFUSED)
def test_what_has_no_order_or_is_impossible_is_refused_and_nothing_is_begun(steps: Any, message: str) -> None:
    session = Session()
    before = session.snapshot()
    for _ in range(2):  # the first is not in the way of the second
        with pytest.raises(WorkflowError) as refused:
            run_workflow(flow(*steps), capable(), session=session)
        assert (str(refused.value), session.snapshot()) == (message, before)
