"""Bad input and bad tools: each gives a failed result with a stable code, and the next call works."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pydantic
import pytest

from planning.tools import (
    BaseTool,
    ErrorKind,
    Tool,
    Toolbox,
    ToolCall,
    ToolError,
    ToolRegistry,
    ToolResult,
    UserInputNeeded,
    execute_tools,
    tool_calls,
)
from session import Session, ToolFailed

DEEP = '{"left": ' + "[" * 100_000 + "]" * 100_000 + "}"
BIG = '{"left": "' + "x" * 10_000_000 + '"}'


@dataclass
class Add:
    left: int


class Odd(BaseException):
    pass


class Mute(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")

    __repr__ = __str__


class Violent(Exception):
    def __str__(self) -> str:
        raise Odd("no words")


class Bare(ToolError):
    def __init__(self) -> None:
        pass


class BareQuestion(UserInputNeeded):
    def __init__(self) -> None:
        ToolError.__init__(self, "ask")


class Wordless(ToolError):
    def user_message(self) -> str:
        return None  # type: ignore[return-value]  # what is tested


class Unspeakable:
    def __str__(self) -> str:
        raise ValueError("no words")


class Savage:
    def __str__(self) -> str:
        raise Odd("no words")


def add(left: int) -> int:
    return left + 1


ADD = Tool("add", "Add one.", add, parameters=None)


def through(door: str, tool: Tool, arguments: Any, session: Session | None = None) -> ToolResult:
    toolbox = Toolbox([tool, ADD] if tool is not ADD else [ADD], session=session)
    if door == "call":
        return toolbox.call(tool.name, arguments)
    return asyncio.run(toolbox.acall(tool.name, arguments))


@pytest.mark.parametrize("door", ["call", "acall"])
@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ("left", "arguments are not JSON at line 1, column 1: Expecting value; send one JSON object"),
        ("[1]", "arguments must be a JSON object, got an array"),
        ("1", "arguments must be a JSON object, got a number"),
        ("null", "left: missing; send an integer"),
        ("", "left: missing; send an integer"),
        (None, "left: missing; send an integer"),
        (5, "arguments must be a JSON object, got a number"),
        ([], "arguments must be a JSON object, got an array"),
        (DEEP, "arguments are nested too deep; send a flat JSON object"),
        (BIG, "arguments of 10000012 characters, at most 1000000; send less at once"),
        ({}, "left: missing; send an integer"),
        ({5: 1}, None),
        (
            b"\xff",
            "arguments are not JSON: NaN, Infinity and broken Unicode are not allowed; send one JSON object",
        ),
    ],
    ids=lambda value: None if value is None else str(value)[:12],
)
def test_arguments_that_are_none_are_a_failed_result_and_the_next_call_works(
    door: str, arguments: Any, error: str | None
) -> None:
    session = Session()
    result = through(door, ADD, arguments, session)
    assert (result.success, result.value, result.code) == (False, None, ErrorKind.PARAMETER)
    if error is not None:
        assert (result.error, result.message) == (error, f"Refused, nothing changed. {error}")
    assert through(door, ADD, '{"left": 1}', session).value == 2
    assert [call.outcome for call in tool_calls(session)] == ["success", "parameter"]


def returning(value: Any) -> Tool:
    return Tool("odd", "Odd.", lambda: value)


def raising(error: BaseException | type[BaseException]) -> Tool:
    def fail() -> None:
        raise error

    return Tool("odd", "Odd.", fail)


def async_raising(error: BaseException | type[BaseException]) -> Tool:
    async def fail() -> None:
        raise error

    return Tool("odd", "Odd.", fail)


async def coroutine() -> None: ...


class Awaitable:
    def __await__(self) -> Any:
        yield


@dataclass
class Holder:
    part: Any


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(arbitrary_types_allowed=True)
    part: object


class Hostile(Mapping[str, Any]):
    def __getitem__(self, key: str) -> Any:
        raise ValueError("no")

    def __iter__(self) -> Any:
        raise ValueError("no")

    def __len__(self) -> int:
        raise ValueError("no")


async def async_generator() -> Any:
    yield 1


RETURN = "return text, numbers, booleans, None, lists, dicts or records of these"
NO_FORM = f"has no JSON form; {RETURN}"
UNUSABLE = "odd returned nothing that can be used. Go on without it."


@pytest.mark.parametrize("door", ["call", "acall"])
@pytest.mark.parametrize(
    ("make", "cause"),
    [
        (lambda: ValueError, f"the function returned the class ValueError, which {NO_FORM}"),
        (lambda: ValueError("x"), f"the function returned ValueError, which {NO_FORM}"),
        (
            lambda: (each for each in [1]),
            "the function returned a generator; return a list of what it yields",
        ),
        (async_generator, "the function returned a generator; return a list of what it yields"),
        (coroutine, "the function returned a coroutine; declare it async or await it"),
        (Awaitable, "the function returned an awaitable, Awaitable; declare it async and await it"),
        (Unspeakable, f"the function returned Unspeakable, which {NO_FORM}"),
        (object, f"the function returned object, which {NO_FORM}"),
        (
            lambda: [{"deep": Unspeakable()}],
            f"the function returned list with Unspeakable in it, which {NO_FORM}",
        ),
        (
            lambda: [print],
            f"the function returned list with builtin_function_or_method in it, which {NO_FORM}",
        ),
        (
            lambda: {"error": ValueError("x")},
            f"the function returned dict with ValueError in it, which {NO_FORM}",
        ),
        (lambda: {"kinds": {int}}, f"the function returned dict with type in it, which {NO_FORM}"),
        (lambda: {object(): 1}, f"the function returned dict with object in it, which {NO_FORM}"),
        (lambda: Holder(object()), f"the function returned Holder with object in it, which {NO_FORM}"),
        (lambda: Model(part=object()), f"the function returned Model, which cannot be read; {RETURN}"),
        (
            lambda: {1: 2, "1": 3},
            f"the function returned dict, which has two keys that are the same text in JSON; {RETURN}",
        ),
        (Hostile, f"the function returned Hostile, which cannot be read; {RETURN}"),
    ],
)
def test_what_a_function_returns_and_has_no_json_form_is_a_bad_result(
    door: str, make: Callable[[], Any], cause: str
) -> None:
    result = through(door, returning(make()), {})
    assert (result.success, result.code, result.message, result.error, result.cause, result.value) == (
        False,
        ErrorKind.BAD_RESULT,
        UNUSABLE,
        UNUSABLE,
        cause,
        None,
    )
    assert result.user_message == "I ran into a problem looking that up. Could you try again?"


@pytest.mark.parametrize(("value", "message"), [(None, "Done."), ("text", "text"), ("", ""), (0, "0")])
def test_a_plain_function_may_return_none_or_text(value: Any, message: str) -> None:
    result = through("call", returning(value), {})
    assert (result.success, result.value, result.message) == (True, value, message)


def test_a_flood_is_told_to_the_model_in_part_and_kept_whole_for_python() -> None:
    result = through("call", returning("x" * 10_000_000), {})
    assert result.success
    assert len(result.value) == 10_000_000
    assert result.message == "x" * 49_940 + "... (9950060 more characters; ask for less)"


def test_what_holds_itself_is_told_up_to_there() -> None:
    loop: list[Any] = []
    loop.append(loop)
    assert through("call", returning(loop), {}).message == '["..."]'


@pytest.mark.parametrize("door", ["call", "acall"])
@pytest.mark.parametrize("make", [raising, async_raising])
@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Odd("x"), "unknown"),
        (Odd, "unknown"),
        (BaseExceptionGroup("x", [Odd()]), "unknown"),
        (Mute(), "unknown"),
        (Violent(), "unknown"),
        (Bare(), "tool"),
        (BareQuestion(), "needs_user_input"),
        (ToolError(5), "tool"),  # type: ignore[arg-type]  # what is tested
        (ToolError(Unspeakable()), "tool"),  # type: ignore[arg-type]  # what is tested
        (ToolError(Savage()), "tool"),  # type: ignore[arg-type]  # what is tested
        (RecursionError(), "unknown"),
        (MemoryError(), "unknown"),
        (StopIteration("x"), "unknown"),
        (StopAsyncIteration("x"), "unknown"),
        (concurrent.futures.CancelledError(), "cancelled"),
    ],
)
def test_whatever_a_tool_raises_is_a_failed_result_and_the_next_call_works(
    door: str, make: Callable[[Any], Tool], error: Any, code: str
) -> None:
    session = Session()
    result = through(door, make(error), {}, session)
    assert (result.success, result.code, result.value) == (False, code, None)
    assert result.message
    assert through(door, ADD, {"left": 1}, session).value == 2
    assert [call.outcome for call in tool_calls(session)] == ["success", code]


def test_a_value_whose_text_raises_more_than_an_exception_is_a_failed_result() -> None:
    assert through("call", returning(Savage()), {}).success is False


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
@pytest.mark.parametrize("door", ["call", "acall"])
def test_what_ends_a_program_passes_and_is_in_no_ledger(door: str, error: type[BaseException]) -> None:
    session = Session()
    with pytest.raises(error):
        through(door, raising(error()), {}, session)
    assert session.select_all(ToolCall) == ()


def test_a_tool_error_without_words_for_a_person_is_told_with_its_message() -> None:
    assert through("call", raising(Wordless("full")), {}).user_message == "full"


class Raising(ToolError):
    def user_message(self) -> str:
        raise ValueError("4711")


def test_a_tool_error_whose_words_for_a_person_fail_is_told_with_its_message() -> None:
    assert through("call", raising(Raising("full")), {}).user_message == "full"


def test_a_tool_error_without_any_words_still_says_what_to_do() -> None:
    assert through("call", raising(ToolError("")), {}).message == (
        "odd failed. Call it again, or go on without it."
    )


@pytest.mark.parametrize("context", [5, "x", ["trace_id"]])
@pytest.mark.parametrize("door", ["call", "acall"])
def test_a_context_that_is_no_mapping_is_a_failed_result(door: str, context: Any) -> None:
    toolbox = Toolbox([ADD])
    result = (
        toolbox.call("add", {"left": 1}, context=context)
        if door == "call"
        else asyncio.run(toolbox.acall("add", {"left": 1}, context=context))
    )
    assert (result.code, result.error) == (
        ErrorKind.BAD_CONTEXT,
        f"add was not called: its context must be a dict, got {type(context).__name__}",
    )


def test_a_context_of_none_is_no_context() -> None:
    assert Toolbox([ADD]).call("add", {"left": 1}, context=None).value == 2


class Answer(BaseTool):
    name = "answer"
    description = "Answer."

    def __init__(self, outcome: Any) -> None:
        self.outcome = outcome

    async def execute(self, args: Any, context: dict[str, Any]) -> dict[str, Any]:
        return self.outcome  # type: ignore[no-any-return]  # what is tested


@pytest.mark.parametrize(
    ("outcome", "cause"),
    [
        (None, "execute() must return a dict, got NoneType"),
        ("text", "execute() must return a dict, got str"),
        (ValueError, "execute() must return a dict, got the class ValueError"),
        ([], "execute() must return a dict, got list"),
        ({}, "the dict of execute() must say success: True or False, got NoneType"),
        ({"success": "yes"}, "the dict of execute() must say success: True or False, got str"),
        ({"success": 1}, "the dict of execute() must say success: True or False, got int"),
    ],
)
def test_an_outcome_of_execute_that_is_none_is_a_bad_result(outcome: Any, cause: str) -> None:
    result = through("acall", Answer(outcome).as_tool, {})
    assert (result.code, result.cause) == (ErrorKind.BAD_RESULT, cause)


def test_arguments_a_state_and_a_context_that_cannot_be_read_are_failed_results() -> None:
    answer = Answer({"success": True})
    assert through("call", ADD, Hostile()).code == ErrorKind.UNKNOWN
    assert asyncio.run(answer.safe_execute(Hostile(), {}))["code"] == "unknown"
    assert asyncio.run(answer.safe_execute({}, Hostile()))["code"] == "bad_context"
    assert asyncio.run(answer.safe_execute({}, None))["code"] == "bad_context"


@dataclass
class Who:
    name: str
    age: int = 0


S = "zq4711"


@pytest.mark.parametrize("identified", [False, True])
@pytest.mark.parametrize(
    "arguments",
    [
        {"name": "x", S: 1},
        {"name": [S], "age": S},
        {S: S},
        f'{{"name": "{S}", "{S}',
        f'{{"{S}": 1, "{S}": 2}}',
        f'["{S}"]',
        f'"\\"{S}\\""',
        f'{{"name": "{S * 200_000}"}}',
        f'{{"name": {"[" * 5000}"{S}"{"]" * 5000}}}',
        S.encode() + b"\xff",
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_refusal_of_private_arguments_says_nothing_of_them(
    arguments: Any, identified: bool, caplog: pytest.LogCaptureFixture
) -> None:
    tool = Tool(
        "t",
        "Look.",
        lambda who: who.name,
        parameters=Who,
        returns_private_data=True,
        requires_identifier=identified,
        identifiers=("name",),
    )
    session = Session()
    calls = {"tool_calls": [{"tool": "t", "args": arguments}]}
    with caplog.at_level(logging.DEBUG):
        results = [Toolbox([tool], session=session).call("t", arguments)]
        results.append(asyncio.run(Toolbox([tool], session=session).acall("t", arguments)))
        piped = asyncio.run(execute_tools(calls, registry=ToolRegistry([tool]), session=session))
    told = [str(result.to_dict()) + str(result.cause) for result in results]
    told += [str(vars(record)) for record in caplog.records]
    told += [str(event) + str(event.result.to_dict()) for event in session.select_all(ToolFailed)]
    assert all(S not in text for text in [*told, str(piped)])
    assert {result.success for result in results} == {False}
