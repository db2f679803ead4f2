"""The toolbox: calls from models always give a result, calls from Python raise."""

from __future__ import annotations

import asyncio
import json
import logging
from dataclasses import dataclass
from typing import Any

import pytest
from syrupy.assertion import SnapshotAssertion

from planning import MarkStep, Plan, ReadPlan, SetupPlan, Toolbox, ToolValidationError
from planning.tools import Tool, ToolContext, ToolError, ToolExample, ToolResult
from session import Session, ToolInvoked, append, select_all, select_latest


@dataclass(frozen=True)
class Add:
    left: int
    right: int = 1


@dataclass(frozen=True)
class Total:
    value: int


def add(params: Add, _context: ToolContext) -> Total:
    return Total(params.left + params.right)


ADD = Tool(name="add", description="Add two numbers.", parameters=Add, function=add, reduces=True)


def failing(error: BaseException) -> Tool:
    def fail(_params: Add, _context: ToolContext) -> None:
        raise error

    return Tool(name="fail", description="Fail.", parameters=Add, function=fail)


def call(tool: Tool, arguments: Any = '{"left": 2}', session: Session | None = None) -> ToolResult:
    return Toolbox([tool], session=session).call(tool.name, arguments)


def test_a_models_call_runs_the_tool() -> None:
    result = call(ADD, '{"left": 2, "right": 3}')
    assert (result.success, result.message, result.value, result.error, result.user_message) == (
        True,
        '{"value":5}',
        Total(5),
        None,
        None,
    )
    assert result.elapsed > 0


def test_python_calls_with_parameters_or_a_mapping() -> None:
    toolbox = Toolbox([ADD])
    assert toolbox.invoke("add", Add(1, 2)).value == Total(3)
    assert toolbox.invoke("add", {"left": 1}).value == Total(2)


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("ad", Add(1), "no tool is named 'ad'; did you mean add?"),
        ("zzz", Add(1), "no tool is named 'zzz'; the tools are add"),
        (None, Add(1), "no tool is named a value of type NoneType; the tools are add"),
        ("add", Total(1), "add takes Add, got Total"),
        ("add", None, "left: missing; send an integer"),
        ("add", {"left": "x"}, "left: expected an integer, got a string"),
    ],
)
def test_a_wrong_call_from_python_raises_with_what_to_do(name: Any, params: Any, message: str) -> None:
    with pytest.raises(ToolValidationError) as caught:
        Toolbox([ADD]).invoke(name, params)
    assert str(caught.value) == message


def test_a_wrong_call_from_a_model_is_a_failed_result() -> None:
    result = call(ADD, '{"left": "x", "rigth": 1}')
    problems = (
        "2 problems:\n- left: expected an integer, got a string\n- rigth: unknown field; did you mean right?"
    )
    assert (result.success, result.value, result.error) == (False, None, problems)
    assert result.message == f"Refused, nothing changed. {problems}"
    assert result.user_message == problems


@pytest.mark.parametrize("name", ["nope", "", None, 7, ["add"], {}])
def test_an_unknown_tool_is_a_failed_result(name: Any) -> None:
    result = Toolbox([ADD]).call(name, "{}")
    shown = repr(name) if isinstance(name, str) else f"a value of type {type(name).__name__}"
    assert result.message == f"Refused, nothing changed. no tool is named {shown}; the tools are add"


def test_an_empty_toolbox_says_so() -> None:
    assert Toolbox([]).call("x").error == "no tool is named 'x'; the tools are none"


def test_two_tools_of_one_name_are_refused() -> None:
    other = Tool(name="add", description="Other.", parameters=Add, function=add)
    with pytest.raises(ValueError, match=r"^two tools are named add$"):
        Toolbox([ADD, other])
    assert list(Toolbox([ADD, ADD]).tools) == ["add"]


def test_a_tool_error_is_what_the_model_and_the_person_read() -> None:
    class Busy(ToolError):
        def user_message(self) -> str:
            return "Try again later."

    result = call(failing(Busy("the queue is full")))
    assert (result.success, result.message, result.error, result.user_message) == (
        False,
        "the queue is full",
        "the queue is full",
        "Try again later.",
    )


def test_the_text_of_any_other_exception_reaches_nobody(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        result = call(failing(RuntimeError("secret 4711")))
    message = "fail failed. Call it again, or go on without it."
    assert (result.success, result.message, result.error, result.user_message) == (
        False,
        message,
        "Tool 'fail' encountered an error",
        "I ran into a problem looking that up. Could you try again?",
    )
    assert "4711" not in caplog.text
    (record,) = caplog.records
    assert (record.message, record.__dict__["tool"], record.__dict__["error"]) == (
        "tool_failed",
        "fail",
        "RuntimeError",
    )


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(), asyncio.CancelledError()])
def test_what_ends_a_program_or_a_task_passes(error: BaseException) -> None:
    with pytest.raises(type(error)):
        call(failing(error))


def test_python_gets_the_tools_own_exception() -> None:
    with pytest.raises(RuntimeError):
        Toolbox([failing(RuntimeError())]).invoke("fail", Add(1))


def test_a_tool_may_give_a_result_of_its_own() -> None:
    own = ToolResult(False, "no luck", error="no luck")
    tool = Tool(name="own", description="Own.", parameters=Add, function=lambda _params, _context: own)
    result = call(tool)
    assert (result.success, result.message, result.error, result.code) == (
        False,
        "no luck",
        "no luck",
        "tool",
    )


def test_a_call_is_an_event_and_its_value_is_reduced(session: Session) -> None:
    session.register_reducer(Total, append)
    result = call(ADD, session=session)
    (event,) = select_all(session, ToolInvoked)
    assert (event.name, event.params, event.result, event.value) == ("add", Add(2), result, Total(3))
    assert select_all(session, Total) == (Total(3),)


def test_the_value_of_a_failed_result_is_not_reduced(session: Session) -> None:
    session.register_reducer(Total, append)
    tool = Tool(
        name="half",
        description="Half.",
        parameters=Add,
        function=lambda _params, _context: ToolResult(False, "half", Total(1), "half"),
        reduces=True,
    )
    assert call(tool, session=session).success is False
    assert select_all(session, Total) == ()
    assert [event.value for event in select_all(session, ToolInvoked)] == [None]


def test_what_a_tool_returns_is_reduced_only_when_the_tool_says_so(
    toolbox: Toolbox, session: Session
) -> None:
    toolbox.call("planning_setup_plan", {"objective": "old"})
    old = select_latest(session, Plan)
    peek = Tool(name="peek", description="Peek.", parameters=ReadPlan, function=lambda _params, _context: old)
    toolbox.call("planning_setup_plan", {"objective": "new"})
    assert Toolbox([peek], session=session).call("peek").value is old
    assert select_latest(session, Plan) == Plan("new", "active", ())


def test_a_subclass_of_the_parameters_is_refused() -> None:
    class More(Add):
        pass

    with pytest.raises(ToolValidationError) as caught:
        Toolbox([ADD]).invoke("add", More(1))
    assert str(caught.value) == "add takes Add, got More"


def test_a_toolbox_of_another_session_hears_nothing_of_the_plan(toolbox: Toolbox) -> None:
    toolbox.call("planning_setup_plan", {"objective": "x", "initial_steps": ["secret"]})
    foreign = Toolbox(toolbox.tools.values(), session=Session())
    assert foreign.call("planning_mark_step", {"step_id": "S009", "status": "x"}).error == (
        "2 problems:\n"
        "- status: 'x' is unknown; send one of pending, in_progress, blocked, done\n"
        "- planning_mark_step belongs to another session;"
        " use the tools of this session's PlanningToolsSection"
    )


def test_a_reducer_that_raises_makes_the_call_fail_and_leaves_nothing(session: Session) -> None:
    def broken(_slice: tuple[Total, ...], _event: Total) -> tuple[Total, ...]:
        raise RuntimeError

    session.register_reducer(Total, append)
    session.register_reducer(Total, broken)
    result = call(ADD, session=session)
    assert result.message == "add failed. Call it again, or go on without it."
    assert select_all(session, Total) == ()
    assert select_all(session, ToolInvoked) == ()


def test_a_tool_sees_its_session() -> None:
    def who(_params: Add, context: ToolContext) -> bool:
        return context.session is session

    session = Session()
    tool = Tool(name="who", description="Who.", parameters=Add, function=who)
    toolbox = Toolbox([tool], session=session)
    assert toolbox.session is session
    assert toolbox.invoke("who", Add(1)).value is True


def test_a_tool_needs_a_name_and_a_function() -> None:
    for name in ("", "  "):
        with pytest.raises(ValueError, match=r"^a tool needs a name: a model calls it by that$"):
            Tool(name=name, description="", parameters=Add, function=add)
    with pytest.raises(TypeError) as caught:
        Tool(name="add", description="", parameters=Add, function=Total(1))  # type: ignore[arg-type]  # what is tested
    assert str(caught.value) == "a tool's function must be callable, got Total"


def test_a_tool_tells_its_schema_with_its_examples() -> None:
    tool = Tool(
        name="add",
        description="Add.",
        parameters=Add,
        function=add,
        examples=(ToolExample({"left": 1}, "Total(value=2)"),),
    )
    assert tool.parameters_schema()["examples"] == [{"left": 1}]
    assert "examples" not in ADD.parameters_schema()


def test_async_code_gets_the_same_results(toolbox: Toolbox) -> None:
    async def run() -> list[ToolResult]:
        return [
            await toolbox.acall("planning_setup_plan", '{"objective": "x", "initial_steps": ["a"]}'),
            await toolbox.acall("planning_mark_step", '{"step_id": "S009", "status": "done"}'),
        ]

    done, refused = asyncio.run(run())
    assert done.message == "Plan set: S001. Next: S001 a"
    assert refused.message == (
        "Refused, nothing changed. step_id: the plan has no step S009; its only step is S001"
    )


CONVERSATION: list[tuple[str, Any]] = [
    ("planning_mark_step", {"step_id": "S001", "status": "done"}),
    ("planning_setup_plan", {"objective": " "}),
    ("planning_setup_plan", {"objective": "Ship 2.0"}),
    ("planning_mark_step", {"step_id": "S001", "status": "done"}),
    ("planning_add_step", {"steps": []}),
    ("planning_add_step", {"steps": ["Freeze", "Tag", {"title": "Announce", "details": "Blog\nand mail"}]}),
    ("planning_add_step", {"steps": [{"title": "Caf\u00e9 \u2192 bar\u2026"}, {"title": "two\nlines"}]}),
    ("planning_update_step", {"step_id": "S001"}),
    ("planning_update_step", {"step_id": "S002", "title": "Tag and push"}),
    ("planning_mark_step", {"step_id": "S001", "status": "in_progress"}),
    ("planning_mark_step", {"step_id": "S001", "status": "done", "note": "Branch cut"}),
    ("planning_mark_step", {"step_id": "S002", "status": "blocked", "note": "CI is red"}),
    ("planning_mark_step", {"step_id": "S003", "status": "done"}),
    ("planning_read_plan", {}),
    ("planning_mark_step", {"step_id": "S9", "status": "finished", "note": "x" * 600}),
    ("planning_mark_step", {"step_id": "S002", "status": "done"}),
    ("planning_add_step", {"steps": ["More"]}),
    ("planning_mark_step", {"step_id": "S002", "status": "pending"}),
    ("planning_clear_plan", {}),
    ("planning_clear_plan", {}),
    ("planning_update_step", {"step_id": "S001", "title": "x"}),
    ("planning_read_plan", {"verbose": True}),
    ("planning_read_plan", {}),
    ("planning_finish", {}),
]


def test_everything_a_model_reads_in_a_long_conversation(
    toolbox: Toolbox, snapshot: SnapshotAssertion
) -> None:
    lines = []
    for name, arguments in CONVERSATION:
        lines += [f"> {name} {json.dumps(arguments)}", toolbox.call(name, json.dumps(arguments)).message, ""]
    assert "\n".join(lines) == snapshot


def test_the_event_carries_the_command_and_what_was_committed(toolbox: Toolbox, session: Session) -> None:
    seen: list[tuple[ToolInvoked, Plan | None]] = []
    session.bus.subscribe(ToolInvoked, lambda event: seen.append((event, select_latest(session, Plan))))
    result = toolbox.call("planning_setup_plan", '{"objective": " x "}')
    toolbox.call("planning_mark_step", '{"step_id": "S001", "status": "done"}')
    ((event, plan),) = seen
    assert (event.name, event.params, event.value, event.result) == (
        "planning_setup_plan",
        SetupPlan(" x "),
        SetupPlan("x"),
        result,
    )
    assert plan == Plan("x", "active", ())


def test_marking_by_text_and_by_parameters_is_the_same(toolbox: Toolbox) -> None:
    toolbox.call("planning_setup_plan", {"objective": "x", "initial_steps": ["a", "b"]})
    by_text = toolbox.call("planning_mark_step", '{"step_id": "S001", "status": "done"}')
    by_params = toolbox.invoke("planning_mark_step", MarkStep("S001", "done"))
    assert (by_text.message, by_text.value) == (by_params.message, by_params.value)
