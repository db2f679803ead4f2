"""What there is for a plan to name, in every form in which it may be given."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from run_cases import refusal
from syrupy.assertion import SnapshotAssertion

from planning.tools import BaseTool, Tool, Toolbox, ToolRegistry, ToolSpec
from planning.workflow import Capabilities


def search(query: str, limit: int = 3) -> str:
    """Search the web."""
    return query * limit


class Mail(BaseTool):
    name = "mail"
    description = "Send mail."

    async def execute(self, args: Any, context: dict[str, Any]) -> dict[str, Any]:
        return {"success": True}


class Nameless(BaseTool):
    async def execute(self, args: Any, context: dict[str, Any]) -> dict[str, Any]:
        return {"success": True}


MAIL = Mail()
LOOK = Tool("look", "Look.", search)
FACTS = ToolSpec("facts", {"search": None}, "facts", function=lambda query_type, parameters: None)


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({}, ({}, {}, {})),
        (dict.fromkeys(["tools", "handlers", "agents"]), (None, None, None)),
        (
            {"tools": ["a", "b", "a"], "handlers": {"h": None}, "agents": ("x",)},
            ({"a": None, "b": None}, {"h": None}, {"x": None}),
        ),
    ],
)
def test_what_is_not_given_does_not_exist_and_a_bare_name_is_enough(given: Any, kept: Any) -> None:
    """None means that what there is, is not known."""
    capabilities = Capabilities(**given)
    assert (capabilities.tools, capabilities.handlers, capabilities.agents) == kept


@pytest.mark.parametrize(
    "given",
    [
        ToolRegistry([LOOK, MAIL, FACTS]),
        Toolbox([LOOK, MAIL, FACTS]),
        [LOOK, MAIL, FACTS],
        iter([LOOK, MAIL, FACTS]),
        {"look": LOOK, "mail": MAIL, "facts": FACTS},
    ],
)
def test_tools_come_in_any_collection(given: Any) -> None:
    assert Capabilities(tools=given).tools == {"look": LOOK, "mail": MAIL.as_tool, "facts": FACTS.as_tool}


def test_a_function_becomes_a_tool_under_the_name_that_it_is_given() -> None:
    tools: Any = Capabilities(tools={"repos/get.file": search}).tools
    tool = tools["repos/get.file"]
    assert (tool.name, tool.description) == ("repos/get.file", "Search the web.")
    assert list(tool.parameters_schema()["properties"]) == ["query", "limit"]
    assert [*(Capabilities(tools=[search]).tools or ())] == ["search"]


def placed(text: str, /) -> None: ...


def unreadable(text: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821 - as in a user's module


UNCALLABLE: list[Any] = [[placed], {"count": len}, {"most": max}, [unreadable]]
REFUSED: list[Any] = [
    *UNCALLABLE,
    {"send mail": search},
    "search",
    5,
    LOOK,
    search,
    [""],
    {5: LOOK},
    {"a": 5},
    [lambda: None],
    [Nameless()],
    [Mail],
    [LOOK, Tool("look", "Another.", search)],
]


def test_what_cannot_be_a_tool_is_refused_where_it_is_given(snapshot: SnapshotAssertion) -> None:
    told = [refusal((TypeError, ValueError), Capabilities, tools=given) for given in REFUSED]
    assert "\n".join(told) + "\n" == snapshot


@pytest.mark.parametrize("given", UNCALLABLE)
@pytest.mark.parametrize("kind", ["handlers", "agents"])
def test_so_is_a_handler_or_an_agent_that_cannot_be_called_by_name(kind: str, given: Any) -> None:
    message = refusal(TypeError, Capabilities, tools=given)
    assert refusal(TypeError, Capabilities, **{kind: given}) == message
    assert list(getattr(Capabilities(**{kind: {"send mail": search}}), kind)) == ["send mail"]
    told = refusal(TypeError, Capabilities, tools="search")
    assert refusal(TypeError, Capabilities, **{kind: "search"}) == told.replace("tools", kind)


def test_handlers_and_agents_are_kept_as_they_were_given() -> None:
    def notify() -> None: ...

    later = functools.partial(search, limit=1)
    agents = {"writer": later, "facts": FACTS, "k": Mail}
    capabilities = Capabilities(handlers=[notify, LOOK, MAIL], agents=agents)
    assert capabilities.handlers == {"notify": notify, "look": LOOK, "mail": MAIL.as_tool}
    assert capabilities.agents == {"writer": later, "facts": FACTS.as_tool, "k": Mail}


def test_capabilities_cannot_be_changed() -> None:
    given = {"look": LOOK}
    capabilities = Capabilities(tools=given)
    given["more"] = LOOK
    assert capabilities.tools == {"look": LOOK}
    with pytest.raises(TypeError):
        capabilities.tools["more"] = LOOK  # type: ignore[index]  # that is what is tested
