"""What steps call, and with what: tools of every form, handlers, agents, and steps that only think."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import attrs
import pytest
from run_cases import called, capable, flow, plain_tool, states, thought, told

from planning.tools import BaseTool, ToolContext, ToolError, ToolResult, ToolSpec
from planning.workflow import Capabilities, run_workflow
from planning.workflow.model import WorkflowStep
from planning.workflow.run.memory import MemoryItem
from session import Session


def outcome(step: WorkflowStep, capabilities: Capabilities, **options: Any) -> Any:
    """The output of a single step, or its error."""
    result = run_workflow(flow(step), capabilities, **options)
    assert len(result.outputs) + len(result.errors) == 1
    return {**result.outputs, **result.errors}[step.step_id]


def add(left: int, right: int = 1) -> int:
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


def test_a_tool_as_a_class_is_given_its_inputs_and_its_context() -> None:
    step = called("a", tool="adder", inputs={"left": 1})
    capabilities = Capabilities(tools=[Adder()])
    assert outcome(step, capabilities, user_prompt="Add!") == {"sum": 2, "step": "a", "prompt": "Add!"}


SPEC = ToolSpec("facts", {"one": Pair}, "facts_output", function=lambda kind, pair: {kind: pair.left})


def facts(**fields: Any) -> WorkflowStep:
    """A step that calls the tool with query types."""
    return called("a", tool="facts", inputs={"query_type": "one", "parameters": {"left": 7}}, **fields)


def test_a_tool_with_query_types_is_called_by_them_and_its_output_is_stored_under_its_own_key() -> None:
    result = run_workflow(flow(facts()), Capabilities(tools=[SPEC]))
    assert (dict(result.outputs), dict(result.memory)) == ({"a": {"one": 7}}, {"facts_output": {"one": 7}})
    (item,) = result.session.select_all(MemoryItem)
    assert (item.type, item.key, item.step_id) == ("step_result", "facts_output", "a")


@pytest.mark.parametrize(
    ("spec", "fields", "memory"),
    [
        (SPEC, {"expected_key": "mine", "output_path": ("one",)}, {"mine": 7}),
        (attrs.evolve(SPEC, output_key=""), {}, {}),
    ],
)
def test_the_key_that_a_step_says_goes_before_that_of_its_tool_which_may_have_none(
    spec: ToolSpec, fields: dict[str, Any], memory: dict[str, Any]
) -> None:
    result = run_workflow(flow(facts(**fields)), Capabilities(tools=[spec]))
    assert (dict(result.outputs), dict(result.memory)) == ({"a": {"one": 7}}, memory)


def calling(kind: str, function: Any, **fields: Any) -> tuple[WorkflowStep, Capabilities]:
    """A step that calls this function as a tool, a handler or an agent, and what it needs."""
    named: dict[str, Any] = {"agent": "it"} if kind == "agent" else {"type": kind, "name": "it"}
    given = [plain_tool("it", function)] if kind == "tool" else {"it": function}
    return thought("a", **named, **fields), Capabilities(**{f"{kind}s": given})


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
    step, capabilities = calling(kind, function, inputs={"left": 2, "right": 3})
    assert outcome(step, capabilities, inputs={"known": 1}) == output


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


def test_a_step_that_only_thinks_gives_its_description_and_a_tool_that_gives_nothing_none() -> None:
    steps = called("a", expected_key="key"), thought("b", expected_key="idea", description="Think hard.")
    result = run_workflow(flow(*steps), capable(work=lambda: None))
    assert dict(result.outputs) == {"a": None, "b": "Think hard."}
    assert dict(result.memory) == {"key": None, "idea": "Think hard."}


class Refused(ToolError):
    def user_message(self) -> str:
        return "That is closed on Sundays."


UNKNOWN = [
    (called("a", tool="ad"), "no tool is named 'ad'; did you mean add?"),
    (called("a", tool="bare"),
     "only the name of tool 'bare' is known; give Capabilities the tool itself"),
    (thought("a", type="handler", name="add"), "no handler is named 'add'; the handlers are toolset"),
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


def test_inputs_that_the_tool_refuses_fail_before_the_call_with_words_for_the_user() -> None:
    calls: list[int] = []
    step = called("a", tool="add", inputs={"left": "two", "wrong": 1})

    def note(left: int) -> None:
        calls.append(left)

    error = outcome(step, capable(plain_tool("add", note)))
    problems = (
        "2 problems:\n- left: expected an integer, got a string\n- wrong: unknown field; the fields are left"
    )
    assert error == told(f"Refused, nothing changed. {problems}", "parameter", problems)
    assert calls == []


FAILED = "work failed. Call it again, or go on without it."
NO_DATA = "work cannot reach its data now. Try again later, or go on without it."
FAILURES: list[tuple[Any, Any]] = [
    (Refused("closed"), told("closed", "tool", "That is closed on Sundays.")),
    (ValueError("at 0x7f"), told(FAILED, "unknown", cause="at 0x7f")),
    (ConnectionError("gone"), told(NO_DATA, "storage", cause="gone")),
    (ToolResult(False, "I will not"), told("I will not", "tool")),
    ({"success": False, "error": "No", "user_message": "Not today.", "code": "data_not_found"},
     told("No", "data_not_found", "Not today.")),
    ({"success": False}, told("work reported a failure", "tool")),
]  # fmt: skip


@pytest.mark.parametrize(("failure", "error"), FAILURES)
def test_a_tool_that_fails_or_reports_a_failure_fails_its_step(failure: Any, error: Any) -> None:
    def work() -> Any:
        if isinstance(failure, Exception):
            raise failure
        return failure

    assert outcome(called("a"), capable(work=work)) == error


RETURN = "return text, numbers, booleans, None, lists, dicts or records of these, at most 100 levels deep"
NO_FORM = f"which has no JSON form; {RETURN}"
TOO_DEEP = f"which is nested more than 100 levels deep; {RETURN}"
DEEP: Any = "x"
for _ in range(101):
    DEEP = {"in": DEEP}


class Thing:
    """An object that JSON cannot write."""


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (Thing(), f"the function returned test_run_calls.Thing, {NO_FORM}"),
        (
            {"hits": [1, {"first": Thing()}]},
            f"the function returned dict with test_run_calls.Thing in it, {NO_FORM}",
        ),
        (
            DEEP,
            f"the function returned dict with dict in it, {TOO_DEEP}",
        ),
    ],
)
def test_an_output_without_a_json_form_is_an_error_of_its_step_that_names_the_type(
    value: Any, reason: str
) -> None:
    error = outcome(called("a"), capable(work=lambda: value))
    message = f"work returned nothing that can be used. Go on without it. Reason: {reason}."
    assert error == told(message, "bad_result", cause=reason)


@pytest.mark.parametrize("name", ["notify.user", "send it"])
def test_a_handler_may_have_a_name_that_no_tool_has(name: str) -> None:
    capabilities = Capabilities(handlers={name: lambda: "sent"})
    assert outcome(thought("a", type="handler", name=name), capabilities) == "sent"
