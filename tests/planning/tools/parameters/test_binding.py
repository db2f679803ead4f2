"""The decorator that makes tools of functions."""

from __future__ import annotations

from typing import Any

import pytest

from planning.tools import tool


class Called:
    def __call__(self, size: int) -> Any:
        return size


def greet(name: str, times: int = 1) -> str:
    """Greet somebody.

    With joy.

    Args:
        name: Who is greeted.
    """
    return " ".join(["hello", name] * times)


def test_the_decorator_reads_name_description_and_parameters() -> None:
    made = tool(greet)
    assert (made.name, made.description) == ("greet", "Greet somebody.\n\nWith joy.")
    assert made.parameters_schema() == {
        "type": "object",
        "properties": {
            "name": {"type": "string", "description": "Who is greeted."},
            "times": {"type": "integer"},
        },
        "required": ["name"],
        "additionalProperties": False,
    }
    assert (made("you"), made.execute(name="you", times=2)["result"]) == ("hello you", "hello you hello you")


@pytest.mark.parametrize("given", [Called, tool(greet)])
def test_the_decorator_refuses_what_is_no_function(given: Any) -> None:
    with pytest.raises(TypeError) as caught:
        tool(given)
    assert str(caught.value) == f"@tool decorates a function, got {given!r}"[:200]
