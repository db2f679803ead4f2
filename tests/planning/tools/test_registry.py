"""Registries: tools by name in order, the default one, and what installed packages offer."""

from __future__ import annotations

import importlib.metadata
from types import ModuleType
from typing import Any
from unittest.mock import Mock

import pytest
import tool_entries

import planning.prompt
import planning.tools
from planning.tools import (
    QueryTypeUnsupported,
    Tool,
    Toolbox,
    ToolRegistry,
    ToolSpec,
    get_all_tools,
    get_tool,
    get_tool_descriptions,
    initialize_tools,
    register_tool,
    validate_call,
)
from planning.tools.rate_limit import RateLimiter
from planning.tools.registry import default_registry


class Look(tool_entries.Look):
    requires_identifier = True


def add(left: int) -> int:
    """Add one."""
    return left + 1


HOP = Tool("hop", "Hop.", lambda: 1)
SPEC = ToolSpec("facts", {"all": None}, "facts", "Facts.")


def test_every_kind_of_declaration_is_kept_as_it_was_given_and_in_order() -> None:
    look = Look()
    kept = ToolRegistry([look, HOP, SPEC, add])
    assert list(kept.get_all_tools().items()) == [("look", look), ("hop", HOP), ("facts", SPEC), ("add", add)]
    assert [type(tool) for tool in kept] == [Tool] * 4
    assert [tool.name for tool in kept] == ["look", "hop", "facts", "add"]
    assert len(kept) == 4
    found = kept.get_tool("look"), kept.find("look"), kept.get_tool_spec("facts")
    assert found == (look, look.as_tool, SPEC)
    texts = {"look": "Look.", "hop": "Hop.", "facts": "Facts.", "add": "Add one."}
    assert kept.get_tool_descriptions() == [
        {"name": name, "description": text, "requires_identifier": name == "look"}
        for name, text in texts.items()
    ]


def test_a_second_tool_of_a_name_is_refused_unless_it_is_the_first_or_replaces_it() -> None:
    look, other = Look(), Tool("hop", "Other.", lambda: 2)
    kept = ToolRegistry([HOP, SPEC, look])
    for tool in (HOP, SPEC, look):
        kept.register_tool(tool)
    with pytest.raises(ValueError, match=r"^a tool is named hop already; pass replace=True to replace it$"):
        kept.register_tool(other)
    assert kept.find("hop") is HOP
    kept.register_tool(other, replace=True)
    assert [tool.name for tool in kept] == ["hop", "facts", "look"]
    assert kept.find("hop") is other
    kept.register_tool(Tool("facts", "No query types.", lambda: 1), replace=True)
    assert kept.get_tool_spec("facts") is None


NO_FUNCTION = "a tool's function must be callable, got"
OF_OTHERS = {
    "langchain_core.tools": "give it to create_agent(tools=...), or convert it with "
    "planning.integrations.langchain.tools_from",
    "agents.tool.x": "give it to planning.integrations.openai_agents.planning_tools, or pass its function",
    "google.adk.tools": "give it to LlmAgent(tools=...), or pass its function",
    "pydantic_ai.tools": "give it to Pydantic AI's Agent(tools=...), or pass its function",
    "mcp.types": "convert its server's tools with planning.integrations.mcp.tools_from",
    "mcp_types.tools": "convert its server's tools with planning.integrations.mcp.tools_from",
}


def theirs(module: str) -> Any:
    """A tool of another framework."""
    return type("Subclass", (type("Theirs", (), {"__module__": module}),), {})()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (Look, "got the class Look for a tool; write Look()"),
        *((wrong, f"{NO_FUNCTION} {type(wrong).__name__}") for wrong in (5, "look", None)),
        (
            {"type": "function"},
            f"{NO_FUNCTION} dict: convert it with planning.integrations.openai.tools_from",
        ),
        *((theirs(module), f"{NO_FUNCTION} Subclass: {remedy}") for module, remedy in OF_OTHERS.items()),
    ],
)
def test_what_is_no_tool_is_refused_with_what_to_do_with_it(wrong: Any, message: str) -> None:
    for take in (ToolRegistry, Toolbox):
        with pytest.raises(TypeError) as caught:
            take([wrong])
        assert str(caught.value) == message


def test_a_limiter_is_made_when_it_is_needed_and_can_be_replaced() -> None:
    kept, limiter = ToolRegistry(), RateLimiter()
    made = kept.limiter
    assert (type(made), kept.limiter is made) == (RateLimiter, True)
    kept.limiter = limiter
    assert kept.limiter is limiter is ToolRegistry(limiter=limiter).limiter


def test_the_functions_of_the_module_work_on_the_default_registry(own_default: ToolRegistry) -> None:
    register_tool(HOP)
    register_tool(HOP, replace=True)
    register_tool(SPEC)
    assert default_registry() is own_default
    assert (get_tool("hop"), get_tool("nope")) == (HOP, None)
    assert get_all_tools() == {"hop": HOP, "facts": SPEC}
    assert [told["name"] for told in get_tool_descriptions()] == ["hop", "facts"]
    validate_call("facts", "all", {})
    with pytest.raises(QueryTypeUnsupported):
        validate_call("facts", "none", {})


def point(offered: Any) -> Any:
    """An entry point of an installed package."""
    error = offered if isinstance(offered, BaseException) else None
    return Mock(value="package:tools", load=Mock(return_value=offered, side_effect=error))


def install(monkeypatch: pytest.MonkeyPatch, *offered: Any) -> None:
    points = {"planning.tools": [*map(point, offered)]}
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda *, group: points[group])


def test_initializing_registers_what_is_installed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    several = [add, Tool("b", "B.", add)]
    install(monkeypatch, HOP, lambda: SPEC, Look, lambda: several, lambda: Tool("c", "C.", add), Look())
    kept = ToolRegistry()
    assert initialize_tools(registry=kept) == ("hop", "facts", "look", "add", "b", "c")
    before = kept.get_all_tools()
    assert initialize_tools(registry=kept) == ()
    assert kept.get_all_tools() == before


@pytest.mark.parametrize(
    ("broken", "kind"),
    [
        (ImportError("no such module"), "ImportError"),
        (AttributeError("no such name"), "AttributeError"),
        (lambda: 5, "TypeError"),
        (lambda: [Look], "TypeError"),
        (lambda: ToolSpec("", {"all": None}, "x"), "ValueError"),
    ],
)
def test_a_package_that_offers_what_is_no_tool_is_named_and_nothing_is_registered(
    broken: Any, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, HOP, broken)
    kept = ToolRegistry()
    with pytest.raises(ImportError) as caught:
        initialize_tools(registry=kept)
    assert str(caught.value) == f"the tools package:tools cannot be loaded: {kind}"
    assert len(kept) == 0


# The rooms' own names: loaded when they are asked for, and no others


@pytest.mark.parametrize("room", [planning.tools, planning.prompt])
def test_a_room_lists_its_names_and_has_no_other(room: ModuleType) -> None:
    assert set(room.__all__) <= set(dir(room))
    with pytest.raises(AttributeError) as caught:
        room.nothing  # noqa: B018 - asking for it is the point
    assert str(caught.value) == f"module '{room.__name__}' has no attribute 'nothing'"
