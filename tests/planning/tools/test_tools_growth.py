"""Growth: no input costs more than linear time, measured in steps of the interpreter and not by a clock."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from planning.tools import (
    DataNotFound,
    Tool,
    Toolbox,
    classify_error,
)
from planning.tools.ledger import ToolCall, tool_calls
from session import Session

SMALL, TIMES = 150, 8


def steps(run: Callable[[], object]) -> int:
    """How many lines are run and functions of C are called."""
    made = 0

    def each(_frame: Any, event: str, _argument: Any) -> Any:
        nonlocal made
        made += event in {"line", "c_call"}
        return each

    before = sys.gettrace(), sys.getprofile()
    sys.settrace(each)
    sys.setprofile(each)
    try:
        run()
    finally:
        sys.settrace(before[0])
        sys.setprofile(before[1])
    return made


def is_linear(prepare: Callable[[int], Callable[[], object]]) -> bool:
    """Whether eight times the size costs at most some ten times the steps."""
    prepare(2)()  # what is loaded and cached at first use
    few, many = steps(prepare(SMALL)), steps(prepare(SMALL * TIMES))
    return many < few * TIMES * 1.4


def test_the_newest_calls_are_read_without_all_others() -> None:
    def called(times: int) -> Session:
        session = Session()
        toolbox = Toolbox([Tool("t", "T.", lambda: 1, blocking=False)], session=session)
        for _ in range(times):
            toolbox.call("t")
        return session

    few, many = called(SMALL), called(SMALL * TIMES)
    newest = tool_calls(few, limit=1)
    assert steps(partial(tool_calls, many, limit=1)) < SMALL * TIMES / 4
    assert (newest, len(tool_calls(few))) == (few.select_all(ToolCall)[-1:], SMALL)


def group(depth: int, width: int) -> Exception:
    error: Exception = DataNotFound("x")
    for _ in range(depth):
        error = ExceptionGroup("x", [error] * width)
    return error


def test_a_group_of_exceptions_is_classified_in_linear_time() -> None:
    assert is_linear(lambda size: lambda: classify_error(group(size, 1)))
    assert classify_error(group(5_000, 2)) == "data_not_found"
    assert classify_error(ExceptionGroup("x", [group(60, 3), ValueError()])) == "unknown"
