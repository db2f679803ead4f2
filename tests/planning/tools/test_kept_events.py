"""What events keep of a call stays as it was, whatever the tool does to its own objects later."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import attrs
import pydantic
import pytest
from tool_entries import in_async, returning, through

from planning.tools import Tool, ToolResult
from session import Session, SessionEvent, ToolInvoked


@dataclass
class Search:
    words: list[str] = field(default_factory=list)


@attrs.define
class Found:
    rows: list[Any]


class FoundModel(pydantic.BaseModel):
    rows: list[Any]


def invoked(session: Session) -> ToolInvoked:
    (event,) = session.select_all(ToolInvoked)
    return event


ENTRIES = ["call", "acall", "invoke", "ainvoke"]


def pop_all(**arguments: Any) -> str:
    arguments["words"].clear()
    arguments["words"].append("changed")
    return "done"


apop_all = in_async(pop_all)


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize(
    ("tool", "arguments", "kept"),
    [
        (Tool("t", "T.", pop_all), {"words": ["a"], "n": 1}, {"words": ["a"], "n": 1}),
        (Tool("t", "T.", apop_all), {"words": ["a", ["b"]]}, {"words": ["a", ["b"]]}),
        (Tool("t", "T.", pop_all, timeout=20.0), {"words": ["a"]}, {"words": ["a"]}),
        (
            Tool("t", "T.", lambda params: params.words.clear(), parameters=Search),
            {"words": ["a"]},
            Search(["a"]),
        ),
    ],
)
def test_the_arguments_in_the_event_are_those_of_the_call(
    entry: str, tool: Any, arguments: Any, kept: Any, session: Session
) -> None:
    assert through(entry, tool, copy.deepcopy(arguments), session).success
    assert invoked(session).params == kept


CACHES: list[Callable[[list[Any]], Any]] = [
    lambda rows: rows,
    lambda rows: {"rows": rows},
    lambda rows: {"deep": [{"rows": rows}]},
    lambda rows: (1, rows),
    Found,
    lambda rows: FoundModel.model_construct(rows=rows),
    lambda rows: ToolResult(True, "done", {"rows": rows}, elapsed=0.5),
    lambda rows: {"success": False, "error": "no", "rows": rows},
]


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("make", CACHES)
def test_the_result_in_the_event_is_the_one_of_the_call(
    entry: str, make: Callable[[list[Any]], Any], session: Session
) -> None:
    rows: list[Any] = [[1]]
    outcome, as_it_was = make(rows), make([[1]])
    heard: list[SessionEvent] = []
    session.bus.subscribe(ToolInvoked, heard.append)
    result = through(entry, Tool("t", "T.", lambda: outcome), {}, session)
    rows.append(2)
    rows[0].append(3)
    value = as_it_was.value if isinstance(as_it_was, ToolResult) else as_it_was
    assert invoked(session).result.value == value
    assert heard == [invoked(session)]
    assert result.value is (outcome.value if isinstance(outcome, ToolResult) else outcome)


def test_what_nothing_can_change_is_not_copied(session: Session) -> None:
    result = through("call", returning("x" * 100), {}, session)
    assert invoked(session).result is result
