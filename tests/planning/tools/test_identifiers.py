"""Identifiers: a tool that requires one is not called before somebody is named."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

from planning.tools import BaseTool, ErrorKind, Tool, Toolbox, ToolRegistry, ToolSpec, execute_tools

QUESTION = "Could you give me your identifier, email or registration id?"

loop: list[Any] = []
loop.append(loop)

NOBODY: list[Any] = [
    None, False, True, "", " \n\t", "\u200b\u00a0\u2060", b"", b" ", [], {}, (), set(), deque(), [None], [""],
    [[], {}], {"address": None}, {"address": [" ", False]}, loop,
]  # fmt: skip
SOMEBODY: list[Any] = [
    "a@b", "0", "none", 0, 4711, 1.5, b"a", ["a@b"], {"address": "a@b"}, [None, [0]], UUID(int=0),
]  # fmt: skip


class Calls(list[Any]):
    def take(self, **arguments: Any) -> str:
        self.append(arguments)
        return "done"


class Look(BaseTool):
    name = "t"
    description = "T."
    requires_identifier = True

    def __init__(self) -> None:
        self.calls: list[Any] = []

    async def execute(self, args: dict[str, Any], context: dict[str, Any]) -> dict[str, Any]:
        self.calls.append(args)
        return {"success": True}


@pytest.mark.parametrize("name", ["identifier", "email", "registration_id"])
@pytest.mark.parametrize("value", NOBODY, ids=lambda value: ascii(value)[:30])
def test_what_names_nobody_is_no_identifier(value: Any, name: str) -> None:
    calls = Calls()
    result = Toolbox([Tool("t", "T.", calls.take, requires_identifier=True)]).call("t", {name: value})
    assert (result.code, result.message, result.user_message, result.input_request, calls) == (
        ErrorKind.NEEDS_USER_INPUT,
        f"t was not called: ask the user first. {QUESTION}",
        QUESTION,
        QUESTION,
        [],
    )


@pytest.mark.parametrize("value", SOMEBODY, ids=lambda value: ascii(value)[:30])
def test_what_names_somebody_is_an_identifier(value: Any) -> None:
    calls = Calls()
    result = Toolbox([Tool("t", "T.", calls.take, requires_identifier=True)]).call("t", {"email": value})
    assert (result.success, calls) == (True, [{"email": value}])


@pytest.mark.parametrize(
    "arguments",
    [
        {"parameters": {"email": "x"}},
        {"parameters": '{"email": "x"}'},
        {"arguments": {"email": "x"}},
        {"Email": "x"},
        {"user": {"email": "x"}},
        {"email ": "x"},
    ],
)
def test_an_identifier_under_another_key_is_none(arguments: Any) -> None:
    calls, look = Calls(), Look()
    tool = Tool("t", "T.", calls.take, requires_identifier=True)
    assert Toolbox([tool]).call("t", arguments).code == ErrorKind.NEEDS_USER_INPUT
    assert asyncio.run(Toolbox([tool]).acall("t", arguments)).code == ErrorKind.NEEDS_USER_INPUT
    told = asyncio.run(look.safe_execute(arguments, {}))
    assert (told["code"], told["input_request"]) == ("needs_user_input", QUESTION)
    state = {"tool_calls": [{"tool": "t", "args": arguments}]}
    results = asyncio.run(execute_tools(state, registry=ToolRegistry([look])))["tool_results"]
    assert results["t"]["needs_user_input"] is True
    assert (calls, look.calls) == ([], [])


@dataclass
class Who:
    email: Any = None


@pytest.mark.parametrize(
    "arguments",
    [
        {"query_type": "one", "email": "x", "parameters": {}},
        {"query_type": "one", "email": "x"},
        {"query_type": "one", "parameters": {"email": []}},
        {"query_type": "one", "parameters": {"email": False}},
        {"query_type": "one", "parameters": {"parameters": {"email": "x"}}},
    ],
)
def test_a_query_has_its_identifier_among_its_parameters(arguments: Any) -> None:
    calls: list[Any] = []
    spec = ToolSpec("t", {"one": Who}, "t")
    tool = Tool("t", "T.", lambda _type, who: calls.append(who), parameters=spec, requires_identifier=True)
    assert Toolbox([tool]).call("t", arguments).input_request == QUESTION
    assert calls == []


@pytest.mark.parametrize("value", [None, [], {}, False, " "])
def test_parameters_from_python_that_name_nobody_are_no_identifier(value: Any) -> None:
    calls: list[Any] = []
    tool = Tool("t", "T.", calls.append, parameters=Who, requires_identifier=True)
    result = Toolbox([tool]).call("t", {"email": value})
    assert (result.code, calls) == (ErrorKind.NEEDS_USER_INPUT, [])
    with pytest.raises(Exception, match=r"^t was not called: ask the user first\."):
        Toolbox([tool]).invoke("t", Who(value))
    assert calls == []
