"""What steps call, and with what: tools of every form, handlers, agents, and steps that only think."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from run_cases import called, capable, flow, plain_tool, states, thought, told

from planning.tools import BaseTool, ToolContext, ToolError, ToolResult, ToolSpec
from planning.workflow import Capabilities, MemoryItem, run_workflow
from planning.workflow.model import WorkflowStep
from session import Session


def outcome(step: WorkflowStep, capabilities: Capabilities, **options: Any) -> Any:
    """The output of a single step, or its error."""
    result = run_workflow(flow(step), capabilities, **options)
    assert len(result.outputs) + len(result.errors) == 1
    return {**result.outputs, **result.errors}[step.step_id]


def add(left: int, right: int = 1) -> int:
    return left + right


async def aadd(left: int, right: int = 1) -> int:
    return left + right


@dataclass(frozen=True)
class Pair:
    left: int
    right: int = 1


class Adder(BaseTool):
    name = "adder"
    description = "Adds."

    async def execute(self, args: Any, context: dict[str, Any]) -> dict[str, Any]:
        told = {"sum": args["left"] + 1, "step": context["step_id"], "prompt": context["user_prompt"]}
        return {"success": True, "data": told, "user_message": "There you are."}


@pytest.mark.parametrize("function", [add, aadd])
def test_a_tool_is_called_with_its_inputs_by_name(function: Any) -> None:
    step = called("a", tool="add", inputs={"left": 2, "right": 3})
    assert outcome(step, capable(plain_tool("add", function))) == 5
    assert outcome(called("a", tool="add", inputs={"left": 2}), capable(plain_tool("add", function))) == 3


def test_a_tool_with_a_parameter_model_is_given_that() -> None:
    tool = plain_tool("add", lambda pair: (type(pair).__name__, pair.left + pair.right), parameters=Pair)
    assert outcome(called("a", tool="add", inputs={"left": 2}), capable(tool)) == ("Pair", 3)


def test_a_tool_as_a_class_is_given_its_inputs_and_its_context() -> None:
    step = called("a", tool="adder", inputs={"left": 1})
    capabilities = Capabilities(tools=[Adder()])
    assert outcome(step, capabilities, user_prompt="Add!") == {"sum": 2, "step": "a", "prompt": "Add!"}


SPEC = ToolSpec("facts", {"one": Pair}, "facts_output", function=lambda kind, pair: {kind: pair.left})


def test_a_tool_with_query_types_is_called_by_them_and_its_output_is_stored_under_its_own_key() -> None:
    step = called("a", tool="facts", inputs={"query_type": "one", "parameters": {"left": 7}})
    result = run_workflow(flow(step), Capabilities(tools=[SPEC]))
    assert (dict(result.outputs), dict(result.memory)) == ({"a": {"one": 7}}, {"facts_output": {"one": 7}})
    (item,) = result.session.select_all(MemoryItem)
    assert (item.type, item.key, item.step_id) == ("step_result", "facts_output", "a")


def test_the_key_that_a_step_says_goes_before_that_of_its_tool() -> None:
    inputs = {"query_type": "one", "parameters": {"left": 7}}
    step = called("a", tool="facts", inputs=inputs, expected_key="mine", output_path=("one",))
    result = run_workflow(flow(step), Capabilities(tools=[SPEC]))
    assert (dict(result.outputs), dict(result.memory)) == ({"a": {"one": 7}}, {"mine": 7})


def test_a_tool_without_a_key_stores_nothing() -> None:
    spec = ToolSpec("facts", {"one": Pair}, "", function=lambda _kind, pair: pair.left)
    step = called("a", tool="facts", inputs={"query_type": "one", "parameters": {"left": 7}})
    assert dict(run_workflow(flow(step), Capabilities(tools=[spec])).memory) == {}


def by_name(left: int, right: int) -> int:
    return left * right


async def whole(inputs: Mapping[str, Any]) -> list[str]:
    return sorted(inputs)


def with_context(inputs: Mapping[str, Any], context: ToolContext) -> Any:
    return [dict(inputs), context.values["description"], dict(context.values["memory"])]


@pytest.mark.parametrize(
    ("function", "output"),
    [
        (by_name, 6),
        (whole, ["left", "right"]),
        (with_context, [{"left": 2, "right": 3}, "Do a", {"known": 1}]),
        (plain_tool("other", by_name), 6),
    ],
)
@pytest.mark.parametrize("kind", ["handler", "agent"])
def test_handlers_and_agents_are_called_by_name_or_with_all_inputs(
    kind: str, function: Any, output: Any
) -> None:
    inputs = {"left": 2, "right": 3}
    if kind == "handler":
        step = thought("a", type="handler", name="it", inputs=inputs)
        capabilities = Capabilities(handlers={"it": function})
    else:
        step = thought("a", agent="it", inputs=inputs)
        capabilities = Capabilities(agents={"it": function})
    assert outcome(step, capabilities, inputs={"known": 1}) == output


def test_a_method_and_an_object_that_can_be_called_are_handlers() -> None:
    class Clerk:
        def file(self, inputs: Mapping[str, Any]) -> int:
            return len(inputs)

        async def __call__(self, name: str) -> str:
            return f"Hello {name}"

    clerk = Clerk()
    step = thought("a", type="handler", name="it", inputs={"name": "Ann"})
    assert outcome(step, Capabilities(handlers={"it": clerk.file})) == 1
    assert outcome(step, Capabilities(handlers={"it": clerk})) == "Hello Ann"


def test_a_tool_is_given_the_session_and_what_the_run_knows() -> None:
    seen: list[Any] = []

    def look(context: ToolContext) -> None:
        values = context.values
        memory = values["memory"]
        seen.append((context.session, values["goal"], values["user_prompt"], values["step_id"], dict(memory)))
        seen.append((len(memory), memory["before"], "nothing" in memory))

    session = Session()
    workflow = flow(thought("a", expected_key="before"), called("b", "a", tool="look", description="Look."))
    run_workflow(workflow, capable(look=look), session=session, user_prompt="Go", inputs={"in": 1})
    assert seen == [
        (session, "Find it out", "Go", "b", {"in": 1, "before": "Do a"}),
        (2, "Do a", False),
    ]


def test_a_step_that_only_thinks_completes_with_its_description() -> None:
    result = run_workflow(flow(thought("b", expected_key="idea", description="Think hard.")), capable())
    assert (dict(result.outputs), dict(result.memory)) == ({"b": "Think hard."}, {"idea": "Think hard."})


def test_a_tool_that_gives_nothing_gives_none() -> None:
    result = run_workflow(flow(called("a", expected_key="key")), capable(work=lambda: None))
    assert (dict(result.outputs), dict(result.memory)) == ({"a": None}, {"key": None})


UNKNOWN = [
    (called("a", tool="ad"), "no tool is named 'ad'; did you mean add?"),
    (called("a", tool="zzz"), "no tool is named 'zzz'; the tools are add, bare"),
    (called("a", tool="bare"),
     "tool 'bare' is known by its name alone; give the capabilities what is to be called"),
    (thought("a", type="handler", name="add"), "no handler is named 'add'; the handlers are toolset"),
    (thought("a", type="handler", name="toolse"), "no handler is named 'toolse'; did you mean toolset?"),
    (thought("a", agent="toolsmit"), "no agent is named 'toolsmit'; did you mean toolsmith?"),
]  # fmt: skip


@pytest.mark.parametrize(("step", "message"), UNKNOWN)
def test_what_does_not_exist_is_an_error_of_its_step(step: WorkflowStep, message: str) -> None:
    capabilities = Capabilities(
        tools={"add": add, "bare": None}, handlers={"toolset": add}, agents={"toolsmith": add}
    )
    result = run_workflow(flow(step, thought("z")), capabilities)
    assert dict(result.errors) == {"a": told(message, "unknown_tool")}
    assert states(result.workflow) == {"a": "failed", "z": "completed"}


def test_where_it_is_not_known_what_exists_nothing_can_be_called() -> None:
    capabilities = Capabilities(tools=None, handlers=None, agents=None)
    message = "no tool is named 'add'; the tools are none"
    assert outcome(called("a", tool="add"), capabilities) == told(message, "unknown_tool")


def test_inputs_that_the_tool_refuses_fail_before_the_call_with_words_for_the_user() -> None:
    calls: list[int] = []

    def refused(left: int) -> None:
        calls.append(left)

    step = called("a", tool="add", inputs={"left": "two", "wrong": 1})
    result = run_workflow(flow(step), capable(plain_tool("add", refused)))
    assert (calls, [*result.errors]) == ([], ["a"])
    tool = plain_tool("add", add)
    error = outcome(step, capable(tool))
    assert (error.code, error.message) == (
        "parameter",
        "Refused, nothing changed. 2 problems:\n- left: expected an integer, got a string\n"
        "- wrong: unknown field; the fields are left, right",
    )
    assert error.user_message == error.message.removeprefix("Refused, nothing changed. ")


def test_a_query_type_that_the_tool_does_not_have_is_told_to_the_user() -> None:
    step = called("a", tool="facts", inputs={"query_type": "two", "parameters": {}})
    error = outcome(step, Capabilities(tools=[SPEC]))
    assert (error.code, error.user_message) == (
        "query_type",
        "Query type 'two' is not supported by the facts tool. Supported types are: one",
    )


def test_a_tool_that_needs_to_know_whom_it_is_about_asks_the_user() -> None:
    tool = plain_tool("bill", lambda email: email, requires_identifier=True, input_request="Your email?")
    error = outcome(called("a", tool="bill"), capable(tool))
    assert (error.code, error.user_message) == ("needs_user_input", "Your email?")


class Refused(ToolError):
    def user_message(self) -> str:
        return "That is closed on Sundays."


@pytest.mark.parametrize(
    ("failure", "error"),
    [
        (Refused("closed"), told("closed", "tool", "That is closed on Sundays.")),
        (
            ValueError("at 0x7f"),
            told("work failed. Call it again, or go on without it.", "unknown", cause="at 0x7f"),
        ),
        (
            KeyError("x"),
            told("work failed. Call it again, or go on without it.", "unknown", cause="'x'"),
        ),
        (
            OSError("disk"),
            told("work cannot reach its data now. Try again later, or go on without it.", "storage",
                 cause="disk"),
        ),
        (ToolResult(False, "I will not"), told("I will not", "tool")),
        ({"success": False, "error": "No such company"}, told("No such company", "tool")),
        (
            {"success": False, "error": "No", "user_message": "Not today.", "code": "data_not_found"},
            told("No", "data_not_found", "Not today."),
        ),
        ({"success": False}, told("work reported a failure", "tool")),
    ],
)  # fmt: skip
def test_a_tool_that_fails_or_reports_a_failure_fails_its_step(failure: Any, error: Any) -> None:
    def work() -> Any:
        if isinstance(failure, Exception):
            raise failure
        return failure

    assert outcome(called("a"), capable(work=work)) == error


def test_a_tool_that_cancels_itself_fails_its_step_and_nothing_else() -> None:
    import asyncio

    async def work() -> None:
        raise asyncio.CancelledError("out of mind")

    result = run_workflow(flow(called("a"), thought("b")), capable(work=work))
    assert (result.errors["a"].code, dict(result.outputs)) == ("cancelled", {"b": "Do b"})


def test_an_exception_that_cannot_be_read_is_an_error_of_its_step() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def work() -> None:
        raise Mute

    error = outcome(called("a"), capable(work=work))
    assert error == told("work failed. Call it again, or go on without it.", "unknown", cause="<Mute>")


@pytest.mark.parametrize("value", [(each for each in "ab"), int, ValueError("x")])
def test_what_is_no_value_is_an_error_of_its_step(value: Any) -> None:
    error = outcome(called("a"), capable(work=lambda: value))
    message = "work returned nothing that can be used. Go on without it."
    assert (error.message, error.code) == (message, "bad_result")


@pytest.mark.parametrize("kind", ["tool", "handler", "agent"])
def test_a_function_that_returns_a_coroutine_fails_its_step_with_the_reason(kind: str) -> None:
    async def later() -> str:
        return "never"

    function: Any = lambda: later()  # noqa: E731, PLW0108 - it forgets to await it
    steps = {
        "tool": called("a", tool="it"),
        "handler": thought("a", type="handler", name="it"),
        "agent": thought("a", agent="it"),
    }
    everything = {"it": function}
    error = outcome(steps[kind], Capabilities(tools=everything, handlers=everything, agents=everything))
    assert error == told(
        "it returned nothing that can be used. Go on without it. Reason: the function returned a coroutine; "
        "declare it async or await it.",
        "bad_result",
        cause="the function returned a coroutine; declare it async or await it",
    )


@pytest.mark.parametrize("kind", ["handler", "agent"])
@pytest.mark.parametrize("success", [False, None, 0, "false"])
def test_a_handler_or_agent_that_says_that_it_did_not_succeed_fails_its_step(kind: str, success: Any) -> None:
    said = {"it": lambda: {"success": success, "error": "No answer", "user_message": "Ask later"}}
    step = thought("a", agent="it") if kind == "agent" else thought("a", type="handler", name="it")
    error = outcome(step, Capabilities(handlers=said, agents=said))
    assert error == told("No answer", "tool", "Ask later")


TOO_LARGE = (
    "work gave more than 32 MB, which is not kept; let it store that itself, and give back where it is"
)


def test_an_output_that_is_too_large_to_be_kept_is_an_error_of_its_step() -> None:
    for large in ("x" * 33_000_000, [b"x" * 20_000_000, {"k": b"y" * 20_000_000}], [0] * 5_000_000):
        tool = plain_tool("work", lambda large=large: ToolResult(True, "Done.", large))
        assert outcome(called("a"), capable(tool)) == told(TOO_LARGE, "too_large")


def test_a_part_that_an_output_holds_many_times_counts_each_time_as_json_would_write_it() -> None:
    part = ["x" * 1000] * 10
    small = plain_tool("work", lambda: ToolResult(True, "Done.", {"parts": [part] * 1_000, "set": {1}}))
    assert len(outcome(called("a"), capable(small))["parts"]) == 1_000
    doubled: list[Any] = []
    for _ in range(40):
        doubled = [doubled, doubled]
    for large in ({"parts": [part] * 100_000}, doubled):
        tool = plain_tool("work", lambda large=large: ToolResult(True, "Done.", large))
        assert outcome(called("a"), capable(tool)) == told(TOO_LARGE, "too_large")


Alias = ToolContext


def aliased(context: Alias) -> Any:
    return context.values["step_id"]


def aliased_and_asked(task: str, who: Alias) -> Any:
    return task, who.values["step_id"]


NAMED: dict[str, dict[str, Any]] = {
    "handler": {"type": "handler", "name": "look"},
    "agent": {"agent": "look"},
}


@pytest.mark.parametrize("kind", ["tool", "handler", "agent"])
def test_a_context_under_another_name_knows_its_step(kind: str) -> None:
    step = called("a", tool="look") if kind == "tool" else thought("a", **NAMED[kind])
    functions = {"tool": {"tools": [plain_tool("look", aliased)]}}
    capabilities = Capabilities(**functions.get(kind, {f"{kind}s": {"look": aliased}}))
    assert outcome(step, capabilities) == "a"


def test_an_agent_with_a_context_under_another_name_is_given_its_task() -> None:
    capabilities = Capabilities(agents={"look": aliased_and_asked})
    assert outcome(thought("a", agent="look"), capabilities) == ("Do a", "a")


@pytest.mark.parametrize("name", ["notify.user", "send it", "x" * 300])
def test_a_handler_may_have_a_name_that_no_tool_has(name: str) -> None:
    capabilities = Capabilities(handlers={name: lambda: "sent"})
    assert outcome(thought("a", type="handler", name=name), capabilities) == "sent"
