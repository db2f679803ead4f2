"""The node that runs tools: every failure is an update that says what happened, and nothing raises."""

from __future__ import annotations

import asyncio
import copy
import socket
import time
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any
from unittest.mock import Mock

import pytest
from agent_samples import COUNT, QUESTION, SCHEMA, ShopTools, failing, in_turn, rows
from run_cases import refusal
from syrupy.assertion import SnapshotAssertion

from planning import Toolbox
from planning.agent import decide_next_action, execute_tools_node
from planning.agent.generate import asked
from planning.agent.nodes import generating, named_tool
from planning.agent.state import collected
from planning.tools import StorageUnavailable, ToolContext, ToolError, ToolRegistry, ToolValidationError
from planning.tools.errors import ContextInvalid, RateLimitExceeded, ToolTimeout, UserInputNeeded
from planning.tools.ledger import tool_calls
from session import Session

STATE: dict[str, Any] = {"resolved_query": QUESTION, "schema": SCHEMA, "sql_query": COUNT}
STATE["execution_result"] = rows([3])
ACTIONS = {
    "get_schema": ("schema", {"query": QUESTION}),
    "execute_sql": ("execution_result", {"sql": COUNT}),
    "validate_results": ("validation_result", {"query": QUESTION, "sql": COUNT, "results": rows([3])}),
}


def done(action: str, answer: Any, **more: Any) -> dict[str, Any]:
    """The update by a tool that returns or raises this, without the time that it took."""
    names = {"get_schema": "schema", "execute_sql": "executed", "validate_results": "verdict"}
    answers: dict[str, Any] = {names[action]: answer}
    shop = ShopTools(**answers)
    update: dict[str, Any] = dict(execute_tools_node({**STATE, "next_action": action, **more}, shop.tools()))
    assert shop.calls == [(action, ACTIONS[action][1])]
    assert type(update["tool_calls"][0].pop("elapsed")) is float
    return update


def failed(action: str, error: str, message: str | None = None, result: Any = None) -> dict[str, Any]:
    call = {"success": False, "tool": action, "result": result, "error": error}
    message = error if message is None else message
    return {"tool_calls": [call], "error": f"Tool {action}: {error}", "user_message": message}


@pytest.mark.parametrize(
    ("action", "answer"), [("get_schema", ""), ("execute_sql", rows()), ("validate_results", False)]
)
def test_a_result_is_stored_under_its_key_and_clears_an_old_error(action: str, answer: Any) -> None:
    call = {"success": True, "tool": action, "result": answer, "error": None}
    update = {"tool_calls": [call], ACTIONS[action][0]: answer, "error": None, "user_message": None}
    assert done(action, answer, error="Tool execute_sql: no such column", user_message="no") == update


@pytest.mark.parametrize("action", ["generate_sql", "complete", "", "drop_tables", None, 5, ["get_schema"]])
def test_an_action_without_a_tool_changes_nothing(action: Any) -> None:
    shop = ShopTools()
    assert execute_tools_node({**STATE, "next_action": action}, shop.tools()) == {}
    assert execute_tools_node({"resolved_query": QUESTION}, shop.tools()) == {}
    assert shop.calls == []


def test_a_missing_tool_ends_the_question_with_the_nearest_name() -> None:
    update = execute_tools_node({**STATE, "next_action": "get_schema"}, {"get_shema": lambda: SCHEMA})
    error = "no tool is named get_schema; did you mean get_shema?"
    assert update["tool_calls"][0].pop("elapsed") == 0.0
    assert update == failed("get_schema", error) | {"is_complete": True}


RAISED: list[Any] = [
    ToolValidationError("no such column: nope"),
    ToolTimeout("it took too long"),
    TimeoutError("late"),
    ValueError(),
    StorageUnavailable("the file is locked; close it"),
    socket.gaierror("no such host"),
    *(failing(error, code) for error, code in (("wrong", "parameter"), ("late", "timeout"))),
    failing("gone", "storage"),
    in_turn(None),
]


def test_a_failing_statement_is_rewritten(snapshot: SnapshotAssertion) -> None:
    """The user reads the message, and the generator, which then writes the statement again, the attempt."""
    told = (f"{raised!r}\n    {done('execute_sql', raised)}\n" for raised in RAISED)
    assert "".join(told) == snapshot


@pytest.mark.parametrize("action", ACTIONS)
def test_a_tool_that_needs_the_user_ends_it_with_its_question(action: str) -> None:
    asks = {"needs_user_input": True, "input_request": "Which year?", "is_complete": True}
    made = done(action, UserInputNeeded("it lacks a year", "Which year?"))
    assert made == failed(action, "it lacks a year") | asks


@pytest.mark.parametrize(
    ("failures", "is_over"),
    [(["gone"], False), (["locked", "gone", "gone"], True), (["gone", "locked"], False)],
)
def test_the_third_failure_with_the_same_error_ends_it(failures: list[str], is_over: bool) -> None:
    calls = [{"tool": "get_schema", "error": error} for error in failures]
    expected = failed("get_schema", "gone") | ({"is_complete": True} if is_over else {})
    assert done("get_schema", StorageUnavailable("gone"), tool_calls=calls) == expected


def test_tools_may_come_in_any_collection() -> None:
    plain = ShopTools().tools()
    state = {**STATE, "next_action": "get_schema"}
    for tools in (plain, list(plain.values()), ToolRegistry(plain.values()), Toolbox(plain.values())):
        session = Session()
        assert execute_tools_node(state, tools, session=session)["schema"] == SCHEMA
        assert [call.tool for call in tool_calls(session)] == ["get_schema"]
    with pytest.raises(TypeError, match=r"^a tool's function must be callable, got int$"):
        execute_tools_node(state, [5])  # type: ignore[list-item]  # what is tested


def test_a_tool_gets_only_the_arguments_that_it_takes_and_the_ids_of_the_request() -> None:
    seen: list[Any] = []

    def get_schema(context: ToolContext) -> str:
        """Read the schema."""
        seen.append(dict(context.values))
        return SCHEMA

    state = {**STATE, "next_action": "get_schema"}
    contexts = {"conversation_context": {"conversation_id": "c1"}, "user_context": {"conference_id": "f1"}}
    for more in ({"trace_id": "t1", **contexts}, {}):
        execute_tools_node({**state, **more}, [get_schema])
    names = ("trace_id", "conversation_id", "conference_id")
    assert seen == [dict(zip(names, ("t1", "c1", "f1"), strict=True)), dict.fromkeys(names)]
    update = execute_tools_node(state, {"get_schema": lambda **given: str(given)})
    assert update["schema"] == str({"query": QUESTION})


OFFERED = ("question", "schema", "error", "attempts", "state")
GIVEN = {name: name.upper() for name in OFFERED}


def called(function: Callable[..., Any]) -> Any:
    tool, _ = named_tool("writer", "Write.", function, OFFERED, None)
    outcome = tool.run(GIVEN, ToolContext())
    return asyncio.run(outcome) if tool.is_async else outcome


async def plain(question: str) -> str:
    return question


@pytest.mark.parametrize(
    ("function", "returned"),
    [
        (lambda: "nothing", "nothing"),
        (lambda anything: anything, "STATE"),
        (lambda a, b: (a, b), ("QUESTION", "SCHEMA")),
        (lambda it, question: (it, question), ("SCHEMA", "QUESTION")),
        (lambda state, it: (state, it), ("STATE", "QUESTION")),
        (lambda it, temperature=0.5: (it, temperature), ("STATE", 0.5)),
        (lambda *, question, error: (question, error), ("QUESTION", "ERROR")),
        (lambda *args: args, ()),
        (lambda **kwargs: kwargs, GIVEN),
        (lambda it, **kwargs: (it, sorted(kwargs)), ("STATE", ["attempts", "error", "question", "schema"])),
        (partial(lambda style, question: (style, question), "brief"), ("brief", "QUESTION")),
        (plain, "QUESTION"),
        (partial(plain), "QUESTION"),
        (dict, GIVEN),
        (Mock(side_effect=dict), GIVEN),
    ],
)
def test_a_callable_gets_what_it_names_then_the_rest(function: Callable[..., Any], returned: Any) -> None:
    assert called(function) == returned


REMEDY = "; name its parameters out of question, schema, error, attempts, state"


@pytest.mark.parametrize(
    ("function", "message"),
    [
        ("SELECT 1", "writer must be callable, got str"),
        (lambda a, b, c, d, e, f: a, f"writer cannot be called with a, b, c, d, e, f{REMEDY}"),
        (lambda question, /: question, f"writer cannot be called with question{REMEDY}"),
    ],
)
def test_a_callable_with_unknown_parameters_is_refused(function: Any, message: str) -> None:
    assert refusal(TypeError, called, function) == message


ASKED_STATE: dict[str, Any] = {"resolved_query": QUESTION, "schema": SCHEMA, "attempts": [], "iteration": 2}
NO_SQL = "no SQL was written; write one SELECT"
TEXT = "the model wrote text, not SQL: {}; write one SELECT, and nothing else"


def written(generator: Any, clarify: Any = None, **more: Any) -> Any:
    """The update of a state by a generator, or by what it returns or raises."""
    function = generator if callable(generator) else Mock(side_effect=[generator])
    return generating(function, 0.1, clarify, None, 50_000).run({**ASKED_STATE, **more})


def tried(*errors: str) -> dict[str, Any]:
    return {"attempts": [{"sql": None, "error": error} for error in errors]}


SLOW = partial(time.sleep, 0.3)
LATE = "generate_sql took longer than 0.2 s and timed out; call it again, or continue without it"
GENERATORS: list[tuple[Any, dict[str, Any]]] = [
    (COUNT, {}),
    ({"sql": COUNT}, {}),
    ({"success": False, "error": "the model is away"}, {}),
    (ToolError("the model is away; try later"), {}),
    (ValueError("secret"), {}),
    (ValueError(), {}),
    ({"needs_user_input": True, "input_request": "Which year?"}, {}),
    ('{"needs_user_input": true}', {}),
    (UserInputNeeded("it lacks a year", "Which year?"), {}),
    *((None, tried(*[NO_SQL] * times)) for times in (1, 2)),
    ("I cannot.", {}),
    ("No.", tried(TEXT.format("Sorry."), TEXT.format("A."))),
    (ToolError("9 rows, 1 s"), tried("7 rows, 2.5 s", "1,234 rows, 1 s")),
    (SLOW, {}),
    (SLOW, {"error": f"Tool generate_sql: {LATE}"}),
    *((kind("it is away"), {}) for kind in (StorageUnavailable, RateLimitExceeded, ContextInvalid)),
]


def test_a_generator_writes_or_asks_or_fails(snapshot: SnapshotAssertion) -> None:
    told = (f"{each!r} {before}\n    {written(each, **before)}\n" for each, before in GENERATORS)
    assert "".join(told) == snapshot


def test_the_user_is_asked_before_the_first_statement_is_written() -> None:
    generator, clarify = Mock(return_value=COUNT), Mock(return_value="Which year?")
    assert written(generator, clarify) == asked("Which year?")
    clarify.assert_called_once_with(QUESTION, SCHEMA)
    generator.assert_not_called()
    failed = [{"sql": COUNT, "error": "no such column: n"}]
    assert written(generator, clarify, attempts=failed) == {"sql_query": COUNT}
    clarify.assert_called_once()


@pytest.mark.parametrize("clarify", [lambda *_: None, lambda *_: " ", lambda *_: True])
def test_a_clarify_without_a_question_is_ignored(clarify: Any) -> None:
    assert written(COUNT, clarify) == {"sql_query": COUNT}


def test_a_clarify_that_fails_is_logged_without_its_words(caplog: pytest.LogCaptureFixture) -> None:
    assert written(COUNT, Mock(side_effect=ValueError("secret"))) == {"sql_query": COUNT}
    (record,) = caplog.records
    words = record.getMessage(), vars(record)["error"], record.exc_info
    assert words == ("clarify_failed", "ValueError", None)


KEYS = ["schema", "sql_query", "execution_result", "validation_result"]
NAMES = ["get_schema", "generate_sql", "execute_sql", "validate_results"]
FALSY: list[Any] = ["", {}, [], 0, False]


@pytest.mark.parametrize("there", list(product([True, False], repeat=4)))
def test_the_first_key_that_is_missing_or_none_decides(there: tuple[bool, ...]) -> None:
    for value, lacking in product(["text", *FALSY], [{}, dict.fromkeys(KEYS)]):
        present = {key: value for key, is_there in zip(KEYS, there, strict=True) if is_there}
        state = {"iteration": 3, **lacking, **present}
        before, decided = copy.deepcopy(state), decide_next_action(state)
        assert state == before
        if all(there):
            assert decided == {"iteration": 4, "next_action": "complete", "is_complete": True}
        else:
            assert decided == {"iteration": 4, "next_action": NAMES[there.index(False)]}


@pytest.mark.parametrize(
    ("iteration", "most", "proceeds"),
    [(None, 1, True), (9, 10, True), (10, 10, False), (0, 0, False), (11, None, True), (12, None, False)],
)
def test_only_over_the_maximum_it_completes(iteration: int | None, most: int | None, proceeds: bool) -> None:
    decided = decide_next_action({"iteration": iteration, "max_iterations": most})
    last = {"next_action": "get_schema"} if proceeds else {"next_action": "complete", "is_complete": True}
    assert decided == {"iteration": (iteration or 0) + 1, **last}


@pytest.mark.parametrize(
    ("known", "new", "together"),
    [([1], [2], [1, 2]), ([1], [1, 2], [1, 2]), (None, [1], [1]), ([1], None, []), ((1,), (2,), [1, 2])],
)
def test_a_list_is_appended_and_none_empties_it(known: Any, new: Any, together: list[int]) -> None:
    before = copy.copy(known)
    assert (collected(known, new), known) == (together, before)
