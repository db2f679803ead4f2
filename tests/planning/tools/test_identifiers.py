"""Identifiers: a tool that requires one is not called before somebody is named."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import pytest
from tool_entries import QUESTION, piped, through

from planning.tools import Tool, Toolbox, ToolSpec
from planning.tools.errors import ErrorKind

NOBODY: list[Any] = [
    None, False, True, "", " \n\t", "\u200b\u00a0\u2060", b"", [], {}, (), set(), deque(),
]  # fmt: skip


class Calls(list[Any]):
    def take(self, **arguments: Any) -> str:
        self.append(arguments)
        return "done"


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


@pytest.mark.parametrize(
    "arguments",
    [
        None,
        "{}",
        {"limit": 3},
        {"parameters": {"email": "x"}},
        {"parameters": '{"email": "x"}'},
        {"Email": "x"},
        {"user": {"email": "x"}},
        {"email ": "x"},
    ],
)
def test_an_identifier_under_another_key_is_none(arguments: Any) -> None:
    calls = Calls()
    tool = Tool("t", "T.", calls.take, requires_identifier=True)
    for entry in ("call", "acall"):
        assert through(entry, tool, arguments).code == ErrorKind.NEEDS_USER_INPUT
    told = piped([tool], [{"tool": "t", "args": arguments}])["t"]
    assert (told["code"], told["input_request"]) == ("needs_user_input", QUESTION)
    assert calls == []


@dataclass
class Who:
    email: Any = None


def in_query(parameters: Any) -> dict[str, Any]:
    return {"query_type": "one", "parameters": parameters}


@pytest.mark.parametrize(
    ("arguments", "calls"),
    [
        (in_query({"email": "a"}), ["a"]),
        (in_query('{"email": "a"}'), ["a"]),
        ({"query_type": "one", "email": "x"}, []),
        ({"email": "x", **in_query({})}, []),
        (in_query({"email": []}), []),
        (in_query({"email": None}), []),
        (in_query('{"email": " "}'), []),
        (in_query({"parameters": {"email": "x"}}), []),
        (in_query(None), []),
        (in_query([]), []),
    ],
)
def test_a_query_has_its_identifier_among_its_parameters(arguments: Any, calls: list[str]) -> None:
    made: list[Any] = []
    spec = ToolSpec("t", {"one": Who}, "t")
    tool = Tool(
        "t", "T.", lambda _type, who: made.append(who.email), parameters=spec, requires_identifier=True
    )
    assert Toolbox([tool]).call("t", arguments).input_request == (None if calls else QUESTION)
    assert made == calls
