"""No input of an accepted size costs more than in proportion to its size."""

from __future__ import annotations

import datetime
import gc
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

import pytest

from laws import work_of
from planning import PlanningToolsSection, Toolbox
from planning.tools import DataNotFound, Tool, ToolSpec, classify_error, tool
from planning.tools.ledger import ToolCall, tool_calls
from session import Session

MOST = 50_000
SIZE = 300


@dataclass
class Part:
    title: str
    size: int = 1


@dataclass
class Order:
    name: str = "n"
    count: int = 1
    tags: list[str] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    by: dict[str, Part] = field(default_factory=dict)
    either: int | list[int] | Part | None = None
    mode: Literal["slow", "fast"] = "slow"
    days: list[datetime.date] = field(default_factory=list)
    free: Any = None


@tool
def order(name: str = "n", tags: list[str] = [], parts: list[Part] = []) -> str:  # noqa: B006 - as users write it
    """Order a thing."""
    return "ordered"


CJK = "\u4fee"
TOOLS: list[Any] = [
    Tool("data", "D.", lambda order: "taken", parameters=Order),
    ToolSpec("spec", {"order": Order}, "out", function=lambda kind, order: "answered"),
    order,
]


def named(size: int) -> dict[str, int]:
    return {f"f{number}": number for number in range(size)}


# What hostile or broken models send, by a number that says how much of it.
SHAPES: dict[str, Callable[[int], str]] = {
    "unknown fields": lambda size: json.dumps(named(size)),
    "a record with many unknown fields": lambda size: json.dumps({"parts": [named(size)]}),
    "wrong records": lambda size: json.dumps({"parts": [{"title": 1}] * size}),
    "records that refuse themselves": lambda size: json.dumps({"parts": [{"title": "abcd"}] * size}),
    "records as text": lambda size: json.dumps({"parts": [json.dumps({"title": "a", "size": "2"})] * size}),
    "wrong values of a map": lambda size: json.dumps({"by": {name: {"title": 1} for name in named(size)}}),
    "wrong items in a union": lambda size: json.dumps({"either": ["x"] * size}),
    "a long option": lambda size: json.dumps({"mode": " - at `$" * size}),
    "a long number as text": lambda size: json.dumps({"count": "1" * size * 50}),
    "no days": lambda size: json.dumps({"days": ["2026-02-30"] * size}),
    "a deep array": lambda size: '{"free": ' + "[" * size * 50 + "]" * size * 50 + "}",
    "a deep array as text": lambda size: json.dumps({"parts": "[" * size * 50}),
    "a name twice": lambda size: "{" + ",".join(f'"{name}": 1' for name in named(size)) + ', "f9": 2}',
    "steps in another script": lambda size: json.dumps({"objective": "x", "initial_steps": [CJK] * size}),
    "steps of wrong fields": lambda size: json.dumps({"steps": [{"titel": "x" * 200}] * size}),
    "a long step": lambda size: json.dumps({"step_id": "1" * size * 50, "status": "in - progress" * size}),
}  # fmt: skip


NAMES = ["data", "spec", "order", "planning_setup_plan", "planning_add_step", "planning_mark_step"]


@pytest.fixture(scope="module")
def box() -> Toolbox:
    """The planning tools, with a plan, and tools that are declared in every way."""
    session = Session()
    section = PlanningToolsSection(session=session)
    made = Toolbox([*TOOLS, *section.tools()], session=session)
    assert made.call("planning_setup_plan", {"objective": "x", "initial_steps": ["a"] * 9}).success
    return made


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", NAMES)
def test_twice_the_arguments_cost_twice_for_bounded_answers(name: str, shape: str, box: Toolbox) -> None:
    make = SHAPES[shape]
    if name == "spec":
        plain, make = make, lambda size: f'{{"query_type": "order", "parameters": {plain(size)}}}'
    box.call(name, make(10))  # what is made once for a tool counts for none
    once, twice = (work_of(partial(box.call, name, make(size))) for size in (SIZE, 2 * SIZE))
    assert twice <= 2.3 * once + 1_000
    assert len(box.call(name, make(SIZE)).message) <= MOST


def test_the_newest_calls_are_read_without_all_others() -> None:
    session = Session()
    toolbox = Toolbox([Tool("t", "T.", lambda: 1, blocking=False)], session=session)
    for _ in range(1_000):
        toolbox.call("t")
    assert work_of(partial(tool_calls, session, limit=1)) < 250
    assert tool_calls(session, limit=1) == session.select_all(ToolCall)[-1:]


def group(depth: int, width: int) -> Exception:
    error: Exception = DataNotFound("x")
    for _ in range(depth):
        error = ExceptionGroup("x", [error] * width)
    return error


def test_a_group_of_exceptions_is_classified_in_linear_time() -> None:
    few, many = (work_of(partial(classify_error, group(size, 1))) for size in (150, 1_200))
    assert many < 10 * few
    assert classify_error(group(5_000, 2)) == "data_not_found"
    assert classify_error(ExceptionGroup("x", [group(60, 3), ValueError()])) == "unknown"


def test_a_refusal_leaves_nothing_for_the_garbage_collector() -> None:
    toolbox = Toolbox([*TOOLS[:1], *PlanningToolsSection(session=Session()).tools()])
    toolbox.call("planning_setup_plan", '{"objective": "Ship", "initial_steps": ["Build"]}')
    refused = '{"count": "three", "nmae": "x"}', '{"step_id": "S777", "status": "completed"}'

    def refuse() -> None:
        for name, arguments in zip(("data", "planning_mark_step"), refused, strict=True):
            assert not toolbox.call(name, arguments).success

    refuse()
    gc.collect()
    gc.disable()
    try:
        refuse()
        assert gc.collect() == 0
    finally:
        gc.enable()
