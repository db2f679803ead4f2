"""LangChain's tools in a toolbox."""

from __future__ import annotations

import asyncio
from typing import Annotated

import pytest
from pydantic import AfterValidator, BaseModel

pytest.importorskip("langchain.agents", reason="needs langchain: pip install 'session-planning[langchain]'")

from langchain_core.messages import ToolMessage
from langchain_core.tools import InjectedToolCallId, ToolException
from langchain_core.tools import tool as langchain_tool

from planning import Toolbox
from planning.integrations.langchain import tools_from
from session import Session


def _even(number: int) -> int:
    if number % 2:
        raise ValueError(f"{number} is odd")
    return number


def test_a_tool_is_called_with_its_schema_checked() -> None:
    @langchain_tool
    def double(number: int) -> int:
        """Double a number."""
        return 2 * number

    toolbox = Toolbox(tools_from([double]), session=Session())
    assert toolbox.call("double", '{"number": 4}').message == "8"
    wrong = toolbox.call("double", '{"number": "x"}')
    assert not wrong.success
    assert wrong.message == "Refused, nothing changed. number: expected an integer, got a string"
    assert toolbox.tools["double"].description == "Double a number."


def test_an_async_tool_is_awaited_and_its_own_refusals_are_what_the_model_reads() -> None:
    @langchain_tool
    async def find(word: str) -> str:
        """Find a word."""
        if word == "shop":
            raise ToolException("There is no shop.")
        if word == "cafe":
            raise KeyError("secret")
        return word.upper()

    toolbox = Toolbox(tools_from([find]), session=Session())

    async def ask(word: str) -> str:
        return (await toolbox.acall("find", {"word": word})).message

    async def main() -> list[str]:
        return [await ask(word) for word in ("bar", "shop", "cafe")]

    assert asyncio.run(main()) == [
        "BAR",
        "There is no shop.",
        "find failed. Call it again, or continue without it.",
    ]


def test_a_tool_that_answers_with_an_error_has_failed_in_its_words() -> None:
    @langchain_tool
    def close(call_id: Annotated[str, InjectedToolCallId]) -> ToolMessage:
        """Close the shop."""
        return ToolMessage("It is closed already.", tool_call_id=call_id, status="error")

    result = Toolbox(tools_from([close]), session=Session()).call("close", {})
    assert (result.success, result.message) == (False, "It is closed already.")


def test_only_its_own_arguments_are_refused_and_not_what_its_work_validates() -> None:
    class Row(BaseModel):
        count: int

    @langchain_tool
    def count(word: str, most: Annotated[int, AfterValidator(_even)]) -> int:
        """Count a word."""
        return Row.model_validate({"count": word}).count + most

    toolbox = Toolbox(tools_from([count]), session=Session())
    refused = toolbox.call("count", {"word": "2", "most": 3})
    assert refused.message == "count failed: most: Value error, 3 is odd"
    failed = toolbox.call("count", {"word": "secret", "most": 4})
    assert failed.message == ("count cannot work with these arguments. Change them, or continue without it.")
    assert toolbox.call("count", {"word": "2", "most": 4}).message == "6"


def test_what_is_not_a_langchain_tool_is_refused() -> None:
    with pytest.raises(TypeError) as caught:
        tools_from([len])  # type: ignore[list-item]  # the mistake that is tested
    assert (
        str(caught.value)
        == "expected a LangChain tool, got builtin_function_or_method: decorate it with @tool"
    )
