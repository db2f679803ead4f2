"""Which text of an exception a model reads: a ``ToolError``'s, and that of the types that the tool names."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pydantic
import pytest
from tool_entries import CALLS, SORRY, raising, through

from planning import tool
from planning.errors import Problem
from planning.tools import (
    BaseTool,
    DataNotFound,
    ParameterError,
    Tool,
    Toolbox,
    ToolError,
    ToolSpec,
    ToolValidationError,
)
from planning.tools.ledger import tool_calls
from session import Session

MISSING = "/nowhere/report-4711.txt"
NO_FILE = f"[Errno 2] No such file or directory: '{MISSING}'"
VISIBLE = (FileNotFoundError, ValueError)


def read(path: str) -> str:
    """Read a file."""
    return Path(path).read_text()


async def read_async(path: str) -> str:
    """Read a file."""
    return await asyncio.to_thread(read, path)


class Reading(BaseTool):
    name = "t"
    description = "Read a file."
    visible_errors = VISIBLE

    async def execute(self, args: Any, context: dict[str, Any]) -> dict[str, Any]:
        return {"success": True, "data": read(args["path"])}


class Path_(pydantic.BaseModel):
    path: str


DECLARED: dict[str, tuple[Any, dict[str, Any]]] = {
    "@tool": (tool(name="t", visible_errors=VISIBLE)(read), {"path": MISSING}),
    "async": (tool(name="t", visible_errors=VISIBLE)(read_async), {"path": MISSING}),
    "Tool": (Tool("t", "Read.", read, visible_errors=list(VISIBLE)), {"path": MISSING}),
    "one type": (Tool("t", "Read.", read, visible_errors=OSError), {"path": MISSING}),
    "BaseTool": (Reading(), {"path": MISSING}),
    "ToolSpec": (
        ToolSpec(
            "t", {"a": Path_}, "out", function=lambda _, given: read(given.path), visible_errors=VISIBLE
        ),
        {"query_type": "a", "parameters": {"path": MISSING}},
    ),
}


@pytest.mark.parametrize("entry", CALLS)
@pytest.mark.parametrize(("declared", "arguments"), DECLARED.values(), ids=DECLARED)
def test_the_text_of_a_visible_error_is_what_the_model_reads(
    entry: str, declared: Any, arguments: dict[str, Any]
) -> None:
    result = through(entry, declared, arguments)
    assert (result.success, result.message, result.error, result.user_message, result.code) == (
        False,
        f"t failed: {NO_FILE}",
        NO_FILE,
        SORRY,
        "data_not_found",
    )


@pytest.mark.parametrize("entry", CALLS)
@pytest.mark.parametrize(
    ("error", "message", "code"),
    [
        (FileNotFoundError(2, "No such file", MISSING), "t found nothing.", "data_not_found"),
        (PermissionError(13, "Permission denied", MISSING), None, "unknown"),
        (KeyError(MISSING), None, "unknown"),
        (
            ConnectionRefusedError(111, "Connection refused"),
            "t cannot reach its data now. Try again later, or go on without it.",
            "storage",
        ),
        (TimeoutError(MISSING), "t did not answer in time. Call it again, or go on without it.", "timeout"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_without_it_a_model_reads_the_kind_of_failure_and_never_the_text(
    entry: str, error: Exception, message: str | None, code: str
) -> None:
    def fail() -> None:
        raise error

    result = through(entry, Tool("t", "T.", fail, visible_errors=(ZeroDivisionError,)))
    expected = message or "t failed. Call it again, or go on without it."
    assert (result.message, result.error, result.code) == (expected, "Tool 't' encountered an error", code)


def test_a_tool_with_private_data_cannot_have_visible_errors() -> None:
    with pytest.raises(ValueError) as caught:
        Tool("t", "T.", read, visible_errors=VISIBLE, returns_private_data=True)
    assert str(caught.value) == (
        "a tool with private data cannot have visible_errors: their text may be private"
    )


@pytest.mark.parametrize("given", ["ValueError", (KeyboardInterrupt,), [ValueError("x")], BaseException])
def test_what_is_not_types_of_exceptions_is_refused_where_the_tool_is_declared(given: Any) -> None:
    for declare in (
        lambda: Tool("t", "T.", read, visible_errors=given),
        lambda: ToolSpec("t", {}, "out", visible_errors=given),
    ):
        with pytest.raises(TypeError) as caught:
            declare()
        assert str(caught.value) == (
            "a tool's visible_errors must be types of exceptions, such as (FileNotFoundError,), "
            f"got {given!r}"
        )


# Refused or failed: that nothing changed is said only where it is known


@pytest.mark.parametrize("entry", CALLS)
@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ToolValidationError("the city is unknown"), "t failed: the city is unknown"),
        (ToolValidationError([Problem("a", "b"), Problem("c")]), "t failed: 2 problems:\n- b: a\n- c"),
        (ParameterError("the city is unknown"), "t failed: the city is unknown"),
        (ToolError("the queue is full"), "the queue is full"),
        (DataNotFound("no such city"), "no such city"),
    ],
)
def test_what_a_tool_raises_after_it_began_is_a_failure(entry: str, error: ToolError, message: str) -> None:
    result = through(entry, raising(error))
    assert (result.message, result.error) == (message, error.message)


@pytest.mark.parametrize("entry", CALLS)
def test_what_is_refused_before_the_tool_began_changed_nothing(entry: str) -> None:
    tool = Tool("t", "T.", lambda left: left + 1)
    assert through(entry, tool, {"lef": 1}).message == (
        "Refused, nothing changed. 2 problems:\n"
        "- left: missing; send a value\n- lef: unknown field; did you mean left?"
    )


@pytest.mark.parametrize("entry", CALLS)
def test_a_refusal_of_another_tool_that_a_tool_calls_is_its_own_failure(entry: str, session: Session) -> None:
    inner = Toolbox([Tool("inner", "I.", lambda left: left)], session=session)
    sent: list[str] = []

    def outer() -> Any:
        sent.append("mail")
        return inner.invoke("inner", {})

    result = through(entry, Tool("t", "T.", outer), {}, session)
    assert (result.message, sent) == ("t failed: left: missing; send a value", ["mail"])
    assert [line.outcome for line in tool_calls(session)] == ["parameter", "parameter"]
