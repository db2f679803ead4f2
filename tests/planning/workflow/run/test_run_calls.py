"""What steps call, and with what; and what running a workflow takes, refuses and gives back."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import attrs
import pytest
import stamina
from run_cases import called, capable, flow, heard, plain_tool, plan_of, refusal, states, thought, told
from syrupy.assertion import SnapshotAssertion

from planning.tools import (
    StorageUnavailable,
    Toolbox,
    ToolContext,
    ToolError,
    ToolRegistry,
    ToolResult,
    ToolSpec,
)
from planning.tools.errors import RateLimitExceeded
from planning.tools.rate_limit import RateLimiter
from planning.workflow import Capabilities, Workflow, WorkflowError, arun_workflow, run_workflow
from planning.workflow.model import WorkflowStep
from planning.workflow.run.memory import MemoryItem
from planning.workflow.run.records import StepRecord
from session import Session


def outcome(step: WorkflowStep, capabilities: Capabilities, **options: Any) -> Any:
    result = run_workflow(flow(step), capabilities, **options)
    assert len(result.outputs) + len(result.errors) == 1
    return {**result.outputs, **result.errors}[step.step_id]


def add(left: int, right: int = 1) -> int:
    return left + right


@dataclass(frozen=True)
class Pair:
    left: int
    right: int = 1


SPEC = ToolSpec("facts", {"one": Pair}, "facts_output", function=lambda kind, pair: {kind: pair.left})


def facts(**fields: Any) -> WorkflowStep:
    return called("a", tool="facts", inputs={"query_type": "one", "parameters": {"left": 7}}, **fields)


KNOWN = {"facts_output": {"one": 9}}


@pytest.mark.parametrize(
    ("spec", "fields", "inputs", "output", "memory"),
    [
        (SPEC, {}, {}, 7, {"facts_output": {"one": 7}}),
        (SPEC, {"expected_key": "mine", "output_path": ("one",)}, {}, 7, {"mine": 7}),
        (attrs.evolve(SPEC, output_key=""), {}, {}, 7, {}),
        (SPEC, {"done_check": "True"}, KNOWN, 9, KNOWN),
    ],
    ids=["the tool's key", "the step's key goes first", "no key", "the step is skipped"],
)
def test_a_tool_with_query_types_is_called_by_them_and_its_output_is_stored_under_its_own_key(
    spec: ToolSpec, fields: dict[str, Any], inputs: dict[str, Any], output: int, memory: dict[str, Any]
) -> None:
    result = run_workflow(flow(facts(**fields)), capable(spec), inputs=inputs)
    assert (dict(result.outputs), dict(result.memory)) == ({"a": {"one": output}}, memory)
    assert states(result.workflow) == {"a": "completed, skipped" if inputs else "completed"}
    items = [(item.type, item.key, item.step_id) for item in result.session.select_all(MemoryItem)]
    assert items[len(inputs) :] == [("step_skipped" if inputs else "step_result", key, "a") for key in memory]


@pytest.mark.parametrize("idempotent", [True, False])
@pytest.mark.parametrize("collection", [Toolbox, ToolRegistry])
def test_steps_are_held_to_the_limits_of_their_collection(collection: Any, idempotent: bool) -> None:
    work = plain_tool("work", lambda: 1, rate_limit_key="mail", idempotent=idempotent)
    tools = collection([work], limiter=RateLimiter(default="1/hour"))
    result = run_workflow(flow(called("a"), called("b", "a")), Capabilities(tools=tools))
    assert (dict(result.outputs), result.errors["b"].code) == ({"a": 1}, "rate_limit")


def calling(kind: str, function: Any, **fields: Any) -> tuple[WorkflowStep, Capabilities]:
    """A step that calls this function as a handler or an agent, and what it needs."""
    named: dict[str, Any] = {"agent": "it"} if kind == "agent" else {"type": kind, "name": "it"}
    return thought("a", **named, **fields), Capabilities(**{f"{kind}s": {"it": function}})


def by_name(left: int, right: int) -> int:
    return left * right


async def whole(inputs: Mapping[str, Any]) -> list[str]:
    return sorted(inputs)


def with_context(inputs: Mapping[str, Any], context: ToolContext) -> Any:
    values = context.values
    return [dict(inputs), dict(values["memory"]), *map(values.get, ("description", "step_id", "user_prompt"))]


@pytest.mark.parametrize(
    ("function", "output"),
    [
        (by_name, 6),
        (whole, ["left", "right"]),
        (with_context, [{"left": 2, "right": 3}, {"known": 1}, "Do a", "a", "Add!"]),
        (plain_tool("other", by_name), 6),
    ],
)
@pytest.mark.parametrize("kind", ["handler", "agent"])
def test_handlers_and_agents_take_names_or_all_inputs(kind: str, function: Any, output: Any) -> None:
    step, capabilities = calling(kind, function, inputs={"left": 2, "right": 3})
    assert outcome(step, capabilities, inputs={"known": 1}, user_prompt="Add!") == output


def task_and_context(task: str, context: ToolContext) -> str:
    return f"{task} {context.values['step_id']}"


@pytest.mark.parametrize(
    ("agent", "inputs", "given"),
    [
        (lambda task: task, {}, "Find it ${out}"),
        (task_and_context, {}, "Find it ${out} a"),
        (lambda task="nothing": task, {}, "nothing"),
        (lambda task: task, {"task": "Another"}, "Another"),
    ],
)
def test_an_agent_without_inputs_is_given_its_task(agent: Any, inputs: dict[str, Any], given: Any) -> None:
    assert outcome(*calling("agent", agent, description="Find it ${out}", inputs=inputs)) == given


def test_a_step_that_only_thinks_gives_its_description_and_a_tool_that_gives_nothing_none() -> None:
    steps = called("a", expected_key="key"), thought("b", expected_key="idea", description="Think hard.")
    result = run_workflow(flow(*steps), capable(work=lambda: None))
    assert dict(result.outputs) == {"a": None, "b": "Think hard."}
    assert dict(result.memory) == {"key": None, "idea": "Think hard."}


class Refused(ToolError):
    def user_message(self) -> str:
        return "That is closed on Sundays."


ABSENT = [called("a", tool="ad"), called("b", tool="bare"), thought("c", type="handler", name="add")]
ABSENT.append(thought("d", agent="toolsmit"))


def test_what_does_not_exist_is_an_error_of_its_step(snapshot: SnapshotAssertion) -> None:
    tools = {"add": add, "bare": None}
    capabilities = Capabilities(tools=tools, handlers={"toolset": add}, agents={"toolsmith": add})
    result = run_workflow(flow(*ABSENT, thought("z")), capabilities)
    assert "".join(f"{each}: {error!r}\n" for each, error in result.errors.items()) == snapshot
    assert states(result.workflow) == dict.fromkeys("abcd", "failed") | {"z": "completed"}


def test_inputs_that_the_tool_refuses_fail_before_the_call_with_words_for_the_user() -> None:
    calls: list[int] = []

    def note(left: int) -> None:
        calls.append(left)

    error = outcome(called("a", inputs={"left": "two", "wrong": 1}), capable(work=note))
    problems = "2 problems:\n- left: expected an integer, got a string\n"
    problems += "- wrong: unknown field; the fields are left"
    assert error == told(f"Refused, nothing changed. {problems}", "parameter", problems)
    assert calls == []


NO_DATA = "work cannot reach its data now. Try again later, or continue without it."
FAILURES: list[Any] = [
    Refused("closed"),
    ValueError("at 0x7f"),
    ConnectionError("gone"),
    ToolResult(False, "I will not"),
    {"success": False, "error": "No", "user_message": "Not today.", "code": "data_not_found"},
    {"success": False},
    MemoryError("4 GB"),
    asyncio.CancelledError("soon"),
]


def test_a_tool_that_fails_or_reports_a_failure_fails_its_step(snapshot: SnapshotAssertion) -> None:
    def work(failure: Any) -> Any:
        if isinstance(failure, BaseException):
            raise failure
        return failure

    errors = [outcome(called("a"), capable(work=partial(work, each))) for each in FAILURES]
    for each in FAILURES:
        private = plain_tool("work", partial(work, each), returns_private_data=True, idempotent=False)
        errors.append(outcome(called("a"), capable(private)))
    assert "".join(f"{each!r}\n" for each in errors) == snapshot


@pytest.fixture(autouse=True)
def _at_once() -> Iterator[None]:
    """Retries that do not wait, and are as many as they are."""
    with stamina.set_testing(True, attempts=1000, cap=True):
        yield


PASSING = [
    ConnectionError("reset"),
    StorageUnavailable("down"),
    RateLimitExceeded("too often"),
    {"success": False, "error": "slow", "code": "timeout"},
    ToolResult(False, "too often", code="rate_limit"),  # type: ignore[arg-type] # tools give plain words too
]
LASTING = [ValueError("wrong"), ToolError("refused"), {"success": False, "error": "no"}]


def run(*failures: Any, retries: int, **options: Any) -> tuple[int, Any, list[StepRecord], tuple[str, ...]]:
    """A step whose tool fails in these ways and then works: its calls, its outcome, its records and notes."""
    session, calls, left = Session(), list[int](), iter(failures)

    def work() -> Any:
        calls.append(1)
        failure = next(left, len(calls))
        if isinstance(failure, BaseException):
            raise failure
        return failure

    records = heard(session)
    step = called("a", retries=retries)
    result = run_workflow(flow(step), capable(plain_tool("work", work, **options)), session=session)
    return len(calls), {**result.outputs, **result.errors}["a"], records, plan_of(session).steps[0].notes


@pytest.mark.parametrize("failure", PASSING)
def test_what_may_pass_by_itself_is_tried_again_and_every_attempt_is_recorded(failure: Any) -> None:
    assert run(failure, failure, retries=3, returns_private_data=True)[:2] == (3, 3)
    calls, output, records, notes = run(failure, failure, retries=3)
    assert (calls, output, notes) == (3, 3, ("3",))
    attempts = [("in_progress", number, True) for number in (1, 2, 3)]
    assert [(it.status, it.attempt, it.called) for it in records] == [*attempts, ("completed", 3, True)]


@pytest.mark.parametrize("failure", LASTING)
def test_what_does_not_pass_is_not_tried_again(failure: Any) -> None:
    assert run(failure, retries=5)[0] == 1
    assert run(failure, retries=5, returns_private_data=True)[0] == 1


@pytest.mark.parametrize("retries", [0, 1, 4])
def test_after_the_last_attempt_the_last_failure_is_the_error(retries: int) -> None:
    calls, error, _, _ = run(*(ConnectionError(str(each)) for each in range(9)), retries=retries)
    assert (calls, error) == (1 + retries, told(NO_DATA, "storage", cause=str(retries)))


@pytest.mark.parametrize("failure", [ConnectionError("x"), {"success": False, "code": "storage"}])
def test_a_step_whose_tool_is_not_idempotent_is_never_tried_again(failure: Any) -> None:
    calls, error, records, _ = run(failure, retries=5, idempotent=False)
    assert (calls, error.code) == (1, "storage")
    begun = ("in_progress", 1, False), ("in_progress", 1, True)
    assert [(it.status, it.attempt, it.called) for it in records] == [*begun, ("failed", 1, True)]


@pytest.mark.parametrize(
    ("step", "run_options", "tool_options"),
    [
        pytest.param(called("a", timeout=0.01), {}, {}, id="of the step"),
        pytest.param(called("a"), {"timeout": 0.01}, {}, id="of the run"),
        pytest.param(called("a"), {}, {"timeout": 0.01}, id="of the tool"),
        pytest.param(called("a", timeout=0.01), {"timeout": 60}, {"timeout": 60}, id="the step's goes first"),
    ],
)
@pytest.mark.parametrize("is_async", [True, False])
def test_a_tool_that_hangs_times_out(step: Any, run_options: Any, tool_options: Any, is_async: bool) -> None:
    let, ended = threading.Event(), list[str]()

    async def later() -> None:
        try:
            await asyncio.sleep(5)
        finally:
            ended.append("cancelled")

    tool = plain_tool("work", later if is_async else lambda: let.wait(10), **tool_options)
    result = run_workflow(flow(step, thought("b")), capable(tool), **run_options)
    let.set()
    message = "work took longer than 0.01 s and timed out; call it again, or continue without it"
    assert dict(result.errors) == {"a": told(message, "timeout")}
    assert (dict(result.outputs), ended) == ({"b": "Do b"}, ["cancelled"] if is_async else [])


def test_a_library_that_is_missing_is_said_before_anything_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    find: Callable[..., Any] = importlib.util.find_spec
    monkeypatch.setitem(sys.modules, "stamina", None)
    monkeypatch.setattr("planning.tools.guard.find_spec", lambda it: None if it == "stamina" else find(it))
    session = Session()
    before = session.snapshot()
    with pytest.raises(ImportError, match=r"^retrying needs stamina: pip install "):
        run_workflow(flow(called("a", retries=1)), capable(work=lambda: 1), session=session)
    assert session.snapshot() == before


NOTHING = Capabilities()
WRONG: list[dict[str, Any]] = [
    {"workflow": "{}"},
    {"capabilities": [print]},
    {"user_prompt": b""},
    {"max_parallel": 0},
    {"max_parallel": True},
    {"timeout": 0},
    {"inputs": [1]},
    {"inputs": {1: 2}},
    {"session": "mine"},
    {"executor": "threads"},
]


def test_an_argument_of_another_kind_is_refused(snapshot: SnapshotAssertion) -> None:
    told = list[str]()
    for options in WRONG:
        given = {"workflow": Workflow(), "capabilities": NOTHING, **options}
        kind = ValueError if options.keys() & {"max_parallel", "timeout"} else TypeError
        told.append(f"{options}\n    {refusal(kind, run_workflow, **given)}\n")
    assert "".join(told) == snapshot


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


def test_steps_that_never_wait_keep_nobody_else_from_running() -> None:
    async def busy() -> None:
        return None

    tool = {"type": "tool", "name": "busy"}
    kinds = [tool, {}, {"done_check": "True"}, {**tool, "name": "nobody", "on_failure": "continue"}]
    steps = [thought("s0"), *(thought(f"s{n}", f"s{n - 1}", **kinds[n % 4]) for n in range(1, 200))]

    async def scene() -> None:
        run = asyncio.create_task(arun_workflow(flow(*steps), capable(busy=busy)))
        turns = 0
        while not run.done():
            await asyncio.sleep(0)
            turns += 1
        assert (turns > 199, run.result().status) == (True, "completed")

    asyncio.run(scene())


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


def test_what_is_impossible_is_refused_and_nothing_is_begun(snapshot: SnapshotAssertion) -> None:
    session, told = Session(), ""
    before = session.snapshot()
    for what, steps in REFUSED.items():
        message = refusal(WorkflowError, run_workflow, flow(*steps), capable(), session=session)
        told += f"{what}\n    {message}\n"
        assert session.snapshot() == before
    assert told == snapshot
