"""The nodes of the SQL graph: each takes the state and returns an update of it, and none raises.

They call tools, the generator and the judge through the same pipeline as every tool call, with its timeouts,
events and ledger. A node is split in two, before and after its call, so that sync and async callers share it.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, Protocol, TypeAlias

from planning.agent import generate
from planning.agent.calling import is_in_loop
from planning.agent.databases.base import Database, is_database
from planning.agent.databases.tools import database_tools
from planning.agent.decide import decide_next_action
from planning.agent.generate import Asked, Written, read_answer
from planning.agent.state import MOST_ITERATIONS, AgentState, first_answer, fresh_answer, restored
from planning.errors import ToolError
from planning.tools.context import ToolContext, context_values
from planning.tools.declare import Declaration, as_tool
from planning.tools.envelopes import execution_envelope
from planning.tools.errors import SORRY, ErrorKind, nearest_tool
from planning.tools.pipeline import CallPipeline
from planning.tools.registry import ToolRegistry
from planning.tools.result import ToolResult
from planning.tools.tool import Tool
from planning.tools.toolbox import Toolbox
from session import Session

if TYPE_CHECKING:
    from planning.tools.rate_limit import RateLimiter

__all__ = [
    "AgentTools",
    "Call",
    "ExecuteTools",
    "GenerateSql",
    "Node",
    "aexecute_tools_node",
    "arun",
    "execute_tools_node",
    "plan",
    "run",
]

logger = logging.getLogger("planning.agent")

State = Mapping[str, Any]
AgentTools: TypeAlias = Database | Toolbox | ToolRegistry | Mapping[str, Declaration] | Iterable[Declaration]

_WHAT: Final = "What would you like to know?"
_AGAIN: Final = "the same SQL as before, which failed: "
_PIECES: Final = re.compile(r"""'[^']*'|"[^"]*"|[^\s'"]+|['"]""")
"""The parts of a statement, without the spaces between them."""
_TRIES_OF_THE_SAME: Final = 2
_NOTHING: Final = "{} returned nothing; it must return a result"
_UNWRITTEN: Final = "the SQL could not be written"


Limiter = Callable[[], "RateLimiter"]


class Call(NamedTuple):
    """The call of a node: a tool, its arguments, and the rate limiter if not that of the default registry."""

    tool: Tool
    arguments: dict[str, Any]
    limiter: Limiter | None = None


class Node(Protocol):
    """A node: the part before its call, and the part after it."""

    def prepare(self, state: State) -> Call | Any:
        """The call, or the update if nothing is to be called."""

    def finish(self, state: State, result: ToolResult, /) -> Any:
        """The update for a result."""


def run(node: Node, state: State, session: Session | None = None) -> Any:
    """Run a node from synchronous code."""
    call = node.prepare(state)
    if not isinstance(call, Call):
        return call
    if call.tool.is_async and is_in_loop():
        return node.finish(state, _unawaited(call.tool))
    return node.finish(state, _pipeline(call, state, session).call(call.tool, call.arguments))


def _unawaited(tool: Tool) -> ToolResult:
    message = (
        f"{tool.name} is async; from code that runs in an event loop, await graph.ainvoke(...) instead of"
        " graph.invoke(...)"
    )
    return ToolResult(False, message, error=message, user_message=SORRY, code=ErrorKind.TOOL)


async def arun(node: Node, state: State, session: Session | None = None) -> Any:
    """Run a node from async code."""
    call = node.prepare(state)
    if not isinstance(call, Call):
        return call
    return node.finish(state, await _pipeline(call, state, session).acall(call.tool, call.arguments))


def _pipeline(call: Call, state: State, session: Session | None) -> CallPipeline:
    return CallPipeline(ToolContext(session, context_values(state)), limiter=call.limiter)


def plan(state: State, max_iterations: int = MOST_ITERATIONS) -> AgentState:
    """Decide the next action; a new question starts over.

    Args:
        state: An ``AgentState``.
        max_iterations: The most decisions if the state does not say.
    """
    question = state.get("resolved_query")
    asked = state.get("asked_query")
    update: AgentState = {}
    if state.get("answer") is not None or (asked is not None and asked != question):
        update = fresh_answer()
    elif state.get("is_complete") and asked is not None:
        return {"next_action": "complete"}  # a node has ended the question
    elif asked is None:
        update = first_answer(state)
    if state.get("max_iterations") is None:
        update["max_iterations"] = max_iterations
    if asked != question:
        update["asked_query"] = question
    if update:
        state = {**state, **update}
    update |= decide_next_action(state)
    if not isinstance(question, str) or not question.strip():
        update |= {
            "next_action": "complete",
            "is_complete": True,
            "needs_user_input": True,
            "input_request": _WHAT,
        }
    return update


# Tools

_ARGUMENTS: Final[Mapping[str, Callable[[State], dict[str, Any]]]] = {
    "get_schema": lambda state: {"query": state.get("resolved_query")},
    "execute_sql": lambda state: {"sql": state.get("sql_query")},
    "validate_results": lambda state: {
        "query": state.get("resolved_query"),
        "sql": state.get("sql_query"),
        "results": state.get("execution_result"),
    },
}
_KEYS: Final[Mapping[str, Literal["schema", "execution_result", "validation_result"]]] = {
    "get_schema": "schema",
    "execute_sql": "execution_result",
    "validate_results": "validation_result",
}
_NOT_OF_THE_SQL: Final = frozenset(
    {
        ErrorKind.STORAGE,
        ErrorKind.RATE_LIMIT,
        ErrorKind.CIRCUIT_OPEN,
        ErrorKind.CANCELLED,
        ErrorKind.BAD_CONTEXT,
    }
)
"""Failures that another statement would not change."""


class ExecuteTools:
    """Runs the tool that ``next_action`` names, and puts its result into the state."""

    def __init__(self, tools: AgentTools) -> None:
        """Take the tools ``get_schema``, ``execute_sql`` and ``validate_results``."""
        self._tools = _by_name(tools)
        self._parameters: dict[str, frozenset[str]] = {}
        self._limiter = _limiter_of(tools)

    def prepare(self, state: State) -> Call | AgentState:
        """The call of the tool; an empty update for an action without a tool."""
        action = state.get("next_action")
        arguments = _ARGUMENTS.get(action) if isinstance(action, str) else None
        if action is None or arguments is None:
            return {}
        tool = self._tools.get(action)
        if tool is None:
            error = f"no tool is named {action}; {nearest_tool(action, self._tools)}"
            envelope = execution_envelope(action, ToolResult(False, error, error=error))
            return {**_failed(action, error, envelope), "is_complete": True}
        return Call(tool, self._taken(tool, arguments(state)), self._limiter)

    def _taken(self, tool: Tool, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments that a tool takes: a custom get_schema may take none."""
        taken = self._parameters.get(tool.name)
        if taken is None:
            schema = tool.parameters_schema()
            taken = frozenset(arguments if schema.get("additionalProperties") else schema["properties"])
            self._parameters[tool.name] = taken
        return {name: value for name, value in arguments.items() if name in taken}

    def finish(self, state: State, result: ToolResult) -> AgentState:
        """The result of the tool, or why it failed; a statement that failed leaves ``sql_query``."""
        action = str(state.get("next_action"))
        envelope = execution_envelope(action, result)
        if result.success and result.value is None:
            result = ToolResult(False, _NOTHING.format(action), error=_NOTHING.format(action))
            envelope |= {"success": False, "error": result.error}
        if result.success:
            update: AgentState = {"tool_calls": [envelope], "error": None, "user_message": None}
            update[_KEYS[action]] = result.value
            return update
        error = str(envelope["error"])
        update = _failed(action, error, envelope)
        update["user_message"] = _for_people(result)
        if result.needs_user_input:
            asked: AgentState = {"needs_user_input": True, "input_request": result.input_request}
            return {**update, **asked, "is_complete": True}
        if action == "execute_sql" and result.code not in _NOT_OF_THE_SQL:
            return {
                **update,
                "sql_query": None,
                "attempts": [{"sql": state.get("sql_query"), "error": error}],
            }
        calls = state.get("tool_calls") or ()
        if calls and calls[-1].get("tool") == action and calls[-1].get("error") == error:
            update["is_complete"] = True  # the same failure again
        return update


def _failed(action: str, error: str, envelope: dict[str, Any]) -> AgentState:
    return {"tool_calls": [envelope], "error": f"Tool {action}: {error}", "user_message": error}


def _for_people(result: ToolResult) -> str:
    """A failure in words for the user; an apology if the error is meant for developers."""
    message = str(result.error or result.message)
    return message if result.cause in {None, message} else SORRY


def _by_name(tools: AgentTools) -> Mapping[str, Tool]:
    if is_database(tools):
        tools = database_tools(tools)
    if isinstance(tools, Toolbox):
        return tools.tools
    if isinstance(tools, Mapping):
        return {name: as_tool(each) for name, each in tools.items()}
    return {tool.name: tool for tool in map(as_tool, tools)}


def _limiter_of(tools: AgentTools) -> Limiter | None:
    if isinstance(tools, ToolRegistry):
        return lambda: tools.limiter
    return tools.limiter if isinstance(tools, Toolbox) else None


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
    update: AgentState = run(ExecuteTools(tools), state, session)
    return update


async def aexecute_tools_node(
    state: State, tools: AgentTools, *, session: Session | None = None
) -> AgentState:
    """``execute_tools_node`` for async code."""
    update: AgentState = await arun(ExecuteTools(tools), state, session)
    return update


# The generator

Clarify = Callable[[str, str], str | None]


class GenerateSql:
    """Asks the generator for the SQL, or the user for more."""

    def __init__(self, tool: Tool, clarify: Clarify | None, dialect: str | None = None) -> None:
        """Choose the generator.

        Args:
            tool: The generator.
            clarify: Called first with the question and the schema; returns a question to the user, or None.
            dialect: The SQL that the database takes; None if it is unknown.
        """
        self._tool = tool
        self._clarify = clarify
        self._dialect = dialect

    def prepare(self, state: State) -> Call | AgentState:
        """The call of the generator; a question to the user if ``clarify`` has one."""
        given = generate.offered(state)
        if self._clarify is not None and not given["attempts"]:
            request = _clarified(self._clarify, given["question"], given["schema"])
            if request is not None:
                return _asked(request)
        texts = given["question"], given["schema"], given["attempts"][-1:], self._dialect
        turns = generate.prompt_messages(*texts)
        prompt = "\n\n".join(turn["content"] for turn in turns)
        return Call(self._tool, {**given, "dialect": self._dialect, "prompt": prompt})

    def finish(self, state: State, result: ToolResult) -> AgentState:
        """The statement, or why there is none."""
        if result.needs_user_input:
            return _asked(str(result.input_request))
        if not result.success:
            message = _for_people(result)
            shown = _UNWRITTEN if message == SORRY else message
            return _unwritten(state, str(result.cause or message), shown)
        try:
            answer = read_answer(result.value)
        except ToolError as failure:
            return _unwritten(state, failure.message, failure.message)
        return _asked(answer.request) if isinstance(answer, Asked) else _written(state, answer)


def _clarified(clarify: Clarify, question: str, schema: object) -> str | None:
    """The question of ``clarify`` to the user; None if it has none or fails."""
    if not isinstance(schema, str):
        return None
    try:
        request: object = clarify(question, schema)
    except Exception as error:  # noqa: BLE001 - a user's function may raise anything, and the question can go on without it
        logger.warning("clarify_failed", extra={"error": type(error).__name__})
        return None
    return request if isinstance(request, str) and request.strip() else None


def _unwritten(state: State, error: str, message: str) -> AgentState:
    """An update for a generator that wrote no statement: the error for developers, the message for users."""
    attempts = state.get("attempts") or ()
    update: AgentState = {
        "error": f"Tool generate_sql: {error}",
        "user_message": message,
        "attempts": [{"sql": None, "error": message}],
    }
    if attempts and attempts[-1] == {"sql": None, "error": message}:
        update["is_complete"] = True  # the same failure again
    return update


def _asked(request: str) -> AgentState:
    return {"needs_user_input": True, "input_request": request, "is_complete": True}


def _written(state: State, answer: Written) -> AgentState:
    attempts, reflection = state.get("attempts") or (), state.get("reflection") or {}
    if not attempts or _same(attempts[-1]["sql"], answer.sql) is False:
        return {"sql_query": answer.sql}
    kept = reflection.get("kept")
    if isinstance(kept, Mapping) and _same(kept["sql_query"], answer.sql):
        # The generator repeats its statement: its first result is the answer.
        return restored(state)
    error = attempts[-1]["error"]
    repeated = error if error.startswith(_AGAIN) else _AGAIN + error
    update: AgentState = {
        "error": f"Tool execute_sql: {error.removeprefix(_AGAIN)}",
        "user_message": state.get("user_message") or error.removeprefix(_AGAIN),
        "attempts": [{"sql": answer.sql, "error": repeated}],
    }
    last = attempts[-_TRIES_OF_THE_SAME:]
    if len(last) == _TRIES_OF_THE_SAME and all(_same(each["sql"], answer.sql) for each in last):
        update["is_complete"] = True  # the same failure again
    return update


def _same(one: str | None, other: str) -> bool:
    return one is not None and _PIECES.findall(one) == _PIECES.findall(other)
