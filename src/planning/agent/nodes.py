"""The nodes of the SQL graph: each takes the state and returns an update of it, and none raises.

They call tools and the generator through the same pipeline as every tool call, with its timeouts, events and
ledger.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from inspect import Parameter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import attrs

from planning.agent.databases.base import Database, database_tools, is_database
from planning.agent.generate import OFFERED, Generator, asked, offered, prompt_messages, read_answer
from planning.agent.sql.guard import WROTE_TEXT
from planning.agent.state import MOST_ITERATIONS, STEPS, AgentState, Step, begun, decide_next_action
from planning.errors import ToolError
from planning.tools.context import ToolContext, context_values
from planning.tools.errors import SORRY, ErrorKind, nearest_tool
from planning.tools.outcome import execution_envelope
from planning.tools.parameters.model import FreeModel
from planning.tools.parameters.signature import read_signature
from planning.tools.pipeline import CallPipeline
from planning.tools.registry import ToolRegistry
from planning.tools.result import ToolResult
from planning.tools.tool import Declaration, Tool, as_tool
from planning.tools.toolbox import Toolbox
from session import Session

if TYPE_CHECKING:
    from planning.tools.rate_limit import RateLimiter

_VARIABLE: Final = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)


def named_tool(
    name: str,
    description: str,
    function: Callable[..., Any],
    offered: Sequence[str],
    timeout: float | None,
) -> tuple[Tool, frozenset[str]]:
    """A user's function as a tool that takes the offered values, and the names of those that it takes.

    Parameters get the values of their names, ``**kwargs`` gets all, and others without a default the rest in
    order; but a single parameter that matches no name gets the last value, which is the whole of it.
    """
    if not callable(function):
        raise TypeError(f"{name} must be callable, got {type(function).__name__}")
    signature = read_signature(function)
    taken = _taken(name, signature.parameters, offered, is_open=signature.is_open)

    def run(values: dict[str, Any]) -> Any:
        return function(**{parameter: values[value] for parameter, value in taken.items()})

    async def arun(values: dict[str, Any]) -> Any:
        return await run(values)

    called = arun if signature.is_async else run
    tool = Tool(name, description, called, parameters=FreeModel(), timeout=timeout)
    return tool, frozenset(taken.values())


def _taken(
    name: str, parameters: Mapping[str, Parameter], offered: Sequence[str], *, is_open: bool
) -> dict[str, str]:
    """The value for each parameter, by its name."""
    required = [
        each for each in parameters.values() if each.kind not in _VARIABLE and each.default is each.empty
    ]
    strange = [each.name for each in required if each.name not in offered]
    left = [value for value in offered if value not in parameters]
    if len(strange) == 1 and len(left) == len(offered):
        left = left[-1:]
    if len(strange) > len(left) or any(each.kind is Parameter.POSITIONAL_ONLY for each in required):
        names = ", ".join(each.name for each in required)
        can_take = ", ".join(offered)
        raise TypeError(f"{name} cannot be called with {names}; name its parameters out of {can_take}")
    placed = dict(zip(strange, left, strict=False))
    named = [value for value in offered if value in parameters or is_open]
    return {value: value for value in named if value not in placed.values()} | placed


logger = logging.getLogger("planning.agent")

State = Mapping[str, Any]
AgentTools: TypeAlias = Database | Toolbox | ToolRegistry | Mapping[str, Declaration] | Iterable[Declaration]
Clarify = Callable[[str, str], str | None]
Limiter = Callable[[], "RateLimiter"]

_WHAT: Final = "What would you like to know?"
_NOTHING: Final = "{} returned nothing; it must return a result"
_NUMBER: Final = re.compile(r"\d+([.,]\d+)*")
_UNWRITTEN: Final = "the SQL could not be written"


class NodeCall(NamedTuple):
    """The call of a node: a tool, its arguments, and the rate limiter if not that of the default registry."""

    tool: Tool
    arguments: dict[str, Any]
    limiter: Limiter | None = None


@attrs.frozen
class Node:
    """A node in two parts, before its call, if it has one, and after, which sync and async callers share."""

    prepare: Callable[[State], Any]
    finish: Callable[[State, ToolResult], Any] = lambda _state, _result: {}

    def run(self, state: State, session: Session | None = None) -> Any:
        """Run it from synchronous code."""
        call = self.prepare(state)
        if not isinstance(call, NodeCall):
            return call
        return self.finish(state, _pipeline(call, state, session).call(call.tool, call.arguments))

    async def arun(self, state: State, session: Session | None = None) -> Any:
        """Run it from async code."""
        call = self.prepare(state)
        if not isinstance(call, NodeCall):
            return call
        return self.finish(state, await _pipeline(call, state, session).acall(call.tool, call.arguments))


def _pipeline(call: NodeCall, state: State, session: Session | None) -> CallPipeline:
    return CallPipeline(ToolContext(session, context_values(state)), limiter=call.limiter)


def plan(state: State, max_iterations: int = MOST_ITERATIONS) -> AgentState:
    """Decide the next action; a new question starts over."""
    question, previous = state.get("resolved_query"), state.get("asked_query")
    is_answered = state.get("answer") is not None
    update: AgentState = {}
    if previous is None or previous != question or is_answered:
        update = begun(state, is_first=previous is None and not is_answered)
        if state.get("max_iterations") is None:
            update["max_iterations"] = max_iterations
        state = {**state, **update}
    elif state.get("is_complete"):
        return {"next_action": "complete"}  # a node has ended the question
    update |= decide_next_action(state)
    if not isinstance(question, str) or not question.strip():
        update |= {**asked(_WHAT), "next_action": "complete"}
    return update


def _is_third(failures: Sequence[Mapping[str, Any]], error: str) -> bool:
    """True if the last two failures had the same error: a third one ends the question."""
    return [_kind_of(each.get("error")) for each in failures[-2:]] == [_kind_of(error)] * 2


def _kind_of(error: object) -> str:
    """An error without what differs between errors of one kind: its numbers, and the text instead of SQL."""
    before, wrote_text, _ = str(error).partition(WROTE_TEXT)
    return _NUMBER.sub("0", before + wrote_text if wrote_text else str(error))


# Tools

_BY_ACTION: Final[Mapping[object, Step]] = {step.action: step for step in STEPS}
_NOT_OF_THE_SQL: Final = {
    ErrorKind.STORAGE, ErrorKind.RATE_LIMIT, ErrorKind.CIRCUIT_OPEN, ErrorKind.CANCELLED,
    ErrorKind.BAD_CONTEXT,
}  # fmt: skip
"""Failures that another statement would not change."""


def tool_running(tools: AgentTools) -> Node:
    """The node that runs the tool which ``next_action`` names; see ``execute_tools_node`` for its update."""
    by_name, limiter = _tools_in(tools)

    def prepare(state: State) -> NodeCall | dict[str, Any]:
        action = state.get("next_action")
        step = _BY_ACTION.get(action) if isinstance(action, str) else None
        if step is None or step.arguments is None:
            return {}
        tool = by_name.get(step.action)
        if tool is None:
            error = f"no tool is named {step.action}; {nearest_tool(step.action, by_name)}"
            return {**_fail(step.action, ToolResult(False, error, error=error)), "is_complete": True}
        schema = tool.model.published
        is_open, known = schema.get("additionalProperties"), schema["properties"]
        given = {name: state.get(key) for name, key in step.arguments.items() if is_open or name in known}
        return NodeCall(tool, given, limiter)

    def finish(state: State, result: ToolResult) -> dict[str, Any]:
        action = str(state.get("next_action"))
        if result.success and result.value is not None:
            done = {_BY_ACTION[action].key: result.value, "error": None, "user_message": None}
            return {"tool_calls": [execution_envelope(action, result)], **done}
        if result.success:
            nothing = _NOTHING.format(action)
            result = ToolResult(False, nothing, error=nothing, elapsed=result.elapsed)
        update = _fail(action, result)
        if result.needs_user_input:
            return {**update, **asked(str(result.input_request))}
        error = update["tool_calls"][0]["error"]
        if _is_third(state.get("tool_calls") or (), error):
            update["is_complete"] = True
        if action == "execute_sql" and result.code not in _NOT_OF_THE_SQL:
            read = result.message if _for_people(result) == SORRY else error  # never an exception's own text
            update |= {"sql_query": None, "attempts": [{"sql": state.get("sql_query"), "error": read}]}
        return update

    return Node(prepare, finish)


def _fail(action: str, result: ToolResult) -> dict[str, Any]:
    envelope = execution_envelope(action, result)
    error = f"Tool {action}: {envelope['error']}"
    return {"tool_calls": [envelope], "error": error, "user_message": _for_people(result)}


def _for_people(result: ToolResult) -> str:
    """A failure in words for the user; an apology if the error is meant for developers."""
    message = str(result.error or result.message)
    return message if result.cause in {None, message} else SORRY


def _tools_in(tools: AgentTools) -> tuple[Mapping[str, Tool], Limiter | None]:
    """The tools by name, and their limiter."""
    if isinstance(tools, Mapping):
        return {name: as_tool(each) for name, each in tools.items()}, None
    if not isinstance(tools, Toolbox):
        tools = Toolbox(database_tools(tools) if is_database(tools) else tools)
    return tools.tools, tools.limiter


def execute_tools_node(state: State, tools: AgentTools, *, session: Session | None = None) -> AgentState:
    """Run the tool that ``next_action`` names with arguments from the state; never raises.

    Args:
        state: An ``AgentState`` with ``next_action``.
        tools: Where ``get_schema``, ``execute_sql`` and ``validate_results`` are: a ``SqlDatabase`` or
            another ``Database``, or your own tools under these names.
        session: Where the call is published and recorded; nowhere when omitted.

    Returns:
        An update: the call in ``tool_calls``, its result under ``schema``, ``execution_result`` or
        ``validation_result``, and ``error`` None. If it failed, ``error`` says why, and a statement that was
        wrong moves from ``sql_query`` to ``attempts``. Empty for an action without a tool.
    """
    update: AgentState = tool_running(tools).run(state, session)
    return update


# The generator


def generating(
    generate_sql: Generator,
    timeout: float | None,
    clarify: Clarify | None,
    dialect: str | None,
    prompt_limit: int,
) -> Node:
    """The node that asks the generator for the SQL, or the user for more."""
    description = "Write the SQL that answers a question."
    tool, taken = named_tool("generate_sql", description, generate_sql, OFFERED, timeout)

    def prepare(state: State) -> NodeCall | AgentState:
        given = offered(state) | {"dialect": dialect}
        question, schema, attempts = given["question"], given["schema"], given["attempts"]
        request = None if clarify is None or attempts else _ask_clarify(clarify, question, schema)
        if request is not None:
            return asked(request)
        if "prompt" in taken:
            turns = prompt_messages(question, schema, attempts[-1:], dialect, prompt_limit)
            given["prompt"] = "\n\n".join(turn["content"] for turn in turns)
        return NodeCall(tool, given)

    def finish(state: State, result: ToolResult) -> AgentState:
        if result.needs_user_input:
            return asked(str(result.input_request))
        if result.success:
            try:
                return read_answer(result.value)
            except ToolError as failure:
                error = message = failure.message
        else:
            shown = _for_people(result)
            error, message = str(result.cause or shown), _UNWRITTEN if shown == SORRY else shown
        failed: AgentState = {"error": f"Tool generate_sql: {error}", "user_message": message}
        if result.code in _NOT_OF_THE_SQL:  # a model does not read what only its server has to do with
            return {**failed, "is_complete": True}
        if result.code is ErrorKind.TIMEOUT:
            was_slow = _kind_of(state.get("error")) == _kind_of(failed["error"])
            return {**failed, "is_complete": was_slow}
        return {
            **failed,
            "attempts": [{"sql": None, "error": message}],
            "is_complete": _is_third(state.get("attempts") or (), message),
        }

    return Node(prepare, finish)


def _ask_clarify(clarify: Clarify, question: str, schema: Any) -> str | None:
    """The question of ``clarify`` to the user; None if it has none or fails."""
    try:
        request: object = clarify(question, schema)
    except Exception as error:  # noqa: BLE001 - a user's function may raise anything; the question continues
        logger.warning("clarify_failed", extra={"error": type(error).__name__})
        return None
    return request if isinstance(request, str) and request.strip() else None
