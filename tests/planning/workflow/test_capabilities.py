"""What there is for a plan to name, in every form in which it may be given."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from run_cases import refusal

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
    ("given", "kept"), [({}, {}), (dict.fromkeys(["tools", "handlers", "agents"]), None)]
)
def test_what_is_not_given_does_not_exist_and_none_means_that_it_is_not_known(given: Any, kept: Any) -> None:
    capabilities = Capabilities(**given)
    assert (capabilities.tools, capabilities.handlers, capabilities.agents) == (kept, kept, kept)


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


def test_a_bare_name_is_enough() -> None:
    capabilities = Capabilities(tools=["a", "b", "a"], handlers={"h": None}, agents=("x",))
    assert capabilities.tools == {"a": None, "b": None}
    assert capabilities.handlers == {"h": None}
    assert capabilities.agents == {"x": None}


def test_a_function_becomes_a_tool_under_the_name_that_it_is_given() -> None:
    tools: Any = Capabilities(tools={"repos/get.file": search}).tools
    tool = tools["repos/get.file"]
    assert (tool.name, tool.description) == ("repos/get.file", "Search the web.")
    assert list(tool.parameters_schema()["properties"]) == ["query", "limit"]
    assert [*(Capabilities(tools=[search]).tools or ())] == ["search"]


def placed(text: str, /) -> None: ...


def unreadable(text: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821 - as in a user's module


NO_TOOL: list[tuple[Any, str]] = [
    ([placed], "placed takes text by position only; wrap it in a function that takes it by name"),
    ({"count": len}, "len takes obj by position only; wrap it in a function that takes it by name"),
    (
        {"most": max},
        "most is a built-in whose parameters cannot be read; wrap it in a function that takes its "
        "inputs by name",
    ),
    (
        [unreadable],
        "unreadable has a type hint that cannot be read: name 'Missing' is not defined; "
        "import the name at the top of its module",
    ),
    (
        {"send mail": search},
        "'send mail' cannot be a tool's name: use 1 to 128 letters, digits, _, -, . and /",
    ),
]
WANTED = "tools must be a registry, a toolbox, a mapping by name, names or declarations; got "
NAMELESS = "in tools has no name; pass a mapping from a name to it"
REFUSED: list[tuple[Any, str]] = [
    ("search", "tools must be names or declarations, got a single string; write tools=['search']"),
    (5, f"{WANTED}int"),
    (LOOK, f"{WANTED}Tool; put it into a list"),
    (search, f"{WANTED}function; put it into a list"),
    ([""], "a name in tools is empty"),
    ({5: LOOK}, "the names of tools must be strings, got int"),
    ({"a": 5}, "a must be a tool or something that can be called, got int"),
    ([lambda: None], f"<lambda> {NAMELESS}"),
    ([Nameless()], "the names of tools must be strings, got NoneType"),
    ([Mail], "Mail is the class Mail; write Mail()"),
    ([LOOK, Tool("look", "Another.", search)], "two tools are named look"),
]


@pytest.mark.parametrize(("given", "message"), [*NO_TOOL, *REFUSED])
def test_what_cannot_be_a_tool_is_refused_where_it_is_given(given: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError)) as refused:
        Capabilities(tools=given)
    assert str(refused.value) == message


@pytest.mark.parametrize(("given", "message"), NO_TOOL[:-1])
@pytest.mark.parametrize("kind", ["handlers", "agents"])
def test_so_is_a_handler_or_an_agent_that_cannot_be_called_by_name(
    kind: str, given: Any, message: str
) -> None:
    assert refusal(TypeError, Capabilities, **{kind: given}) == message
    assert list(getattr(Capabilities(**{kind: {"send mail": search}}), kind)) == ["send mail"]


def test_handlers_and_agents_are_kept_as_they_were_given() -> None:
    def notify() -> None: ...

    later = functools.partial(search, limit=1)
    capabilities = Capabilities(
        handlers=[notify, LOOK, MAIL], agents={"writer": later, "facts": FACTS, "k": Mail}
    )
    assert capabilities.handlers == {"notify": notify, "look": LOOK, "mail": MAIL.as_tool}
    assert capabilities.agents == {"writer": later, "facts": FACTS.as_tool, "k": Mail}


def test_capabilities_cannot_be_changed() -> None:
    given = {"look": LOOK}
    capabilities = Capabilities(tools=given)
    given["more"] = LOOK
    assert capabilities.tools == {"look": LOOK}
    with pytest.raises(TypeError):
        capabilities.tools["more"] = LOOK  # type: ignore[index]  # that is what is tested
