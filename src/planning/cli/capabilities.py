"""The tools, handlers and agents that a user names: by name, or as an object in a Python module."""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from importlib import import_module
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

import attrs

from planning.cli.terminal import say
from planning.cli.usage import Refused
from planning.errors import ToolError, listed, nearest, printable, show
from planning.tools import Toolbox, ToolRegistry
from planning.tools.tool import Tool
from planning.workflow.capabilities import Capabilities
from planning.workflow.report import Report


@contextmanager
def tools_of_servers(commands: Sequence[str]) -> Iterator[Mapping[str, Tool]]:
    """Start MCP servers, and end them with the block.

    Their clients run in an event loop in another thread, so that tools can be called from any loop.
    """
    if not commands:
        yield {}
        return
    try:
        from anyio.from_thread import start_blocking_portal

        from planning.integrations.mcp import open_server, tools_from
    except ImportError as error:
        raise Refused(str(error)) from None

    logging.getLogger("mcp").setLevel(logging.CRITICAL)  # of servers that print more than MCP
    found: dict[str, Tool] = {}
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal())
        try:
            for command in commands:
                client = stack.enter_context(portal.wrap_async_context_manager(open_server(command)))
                tools = {tool.name: tool for tool in portal.call(tools_from, client)}
                for name in tools.keys() & found.keys():
                    raise Refused(f"--mcp: two tools are named {printable(name)}")
                found |= tools
        except ToolError as error:
            raise Refused(f"--mcp: {printable(error.message)}") from None
        yield found


_NONE_KNOWN = Capabilities(tools=None, handlers=None, agents=None)
_MANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def capabilities_of(
    served: Mapping[str, Any] = MappingProxyType({}), **options: Sequence[str] | None
) -> Capabilities | None:
    """The tools, handlers and agents that the options name; None when there are no values."""
    kinds = {kind: _merged(kind, values) for kind, values in options.items() if values}
    if served:
        tools = kinds.get("tools", {})
        if twice := [name for name in served if tools.get(name) is not None]:
            raise Refused(f"--mcp: two tools are named {printable(twice[0])}")
        kinds["tools"] = {**tools, **served}
    return attrs.evolve(_NONE_KNOWN, **kinds) if kinds else None


def mention_colon(report: Report, **options: Sequence[str] | None) -> None:
    """Say how an object in a module is given, if names are unknown and a value looks like a module."""
    unknown = {error.code for error in report.errors}
    for kind, values in options.items():
        name = kind.removesuffix("s")
        for value in values or () if f"unknown_{name}" in unknown else ():
            if ":" not in value and "," not in value and ("." in value or Path(f"{value}.py").is_file()):
                module = ".".join(Path(value.removesuffix(".py")).parts)
                say(
                    f"--{kind} {printable(value)} is read as the name of a {name}; for an object in a module,"
                    f" write --{kind} {printable(module)}:NAME"
                )


def _merged(kind: str, values: Iterable[str]) -> dict[str, Any]:
    """The objects that the values of one option name, by name."""
    merged: dict[str, Any] = {}
    for value in values:
        for name, what in _named(kind, value).items():
            merged[name] = merged.get(name) if what is None else what
    return merged


def _named(kind: str, value: str) -> Mapping[str, Any]:
    if ":" not in value:
        return dict.fromkeys(name for each in value.split(",") if (name := each.strip()))
    try:
        with redirect_stdout(sys.stderr):  # what a module prints is not part of a report
            return _by_name(kind, _imported(kind, value))
    except Refused as error:
        reason = error.message
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the user's own code may fail in any way
        reason = f"it failed with {type(error).__name__}: {error}".rstrip(": ")
    raise Refused(printable(f"--{kind} {value}: {' '.join(reason.split())}"))


def _by_name(kind: str, found: Any) -> Mapping[str, Any]:
    try:
        by_name: Mapping[str, Any] = getattr(attrs.evolve(_NONE_KNOWN, **{kind: found}), kind)
    except (TypeError, ValueError) as error:
        raise Refused(str(error)) from error
    return by_name


def _imported(kind: str, value: str) -> Any:
    module, _, attributes = value.partition(":")
    if not (module and attributes):
        raise Refused("write module:object, such as my_app.tools:registry")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = import_module(module)
    except ModuleNotFoundError as error:
        if not f"{module}.".startswith(f"{error.name}."):
            raise  # the module is there, and misses another
        near = nearest(error.name, (path.stem for path in Path(here).glob("*.py")))
        hint = "" if near is None else f"; did you mean {show(near)}?"
        raise Refused(f"no module is named {show(error.name)}, in this folder or installed{hint}") from None
    for attribute in attributes.split("."):
        try:
            found = getattr(found, attribute)
        except AttributeError:
            hint = f"; {_there(kind, found)}" if inspect.ismodule(found) else ""
            raise Refused(f"{show(module)} has no {show(attribute)}{hint}") from None
    if found is None:
        raise Refused("it is None; name a registry, a toolbox, a mapping or a list")
    return found() if _makes_one(found) else found


def _there(kind: str, module: ModuleType) -> str:
    """The objects of a module that hold tools, handlers or agents, and the functions that make one."""
    several, names = (ToolRegistry, Toolbox, Mapping, list, tuple), list[str]()
    for name, value in vars(module).items():
        with suppress(Refused):
            is_own = getattr(value, "__module__", None) == module.__name__ and _makes_one(value)
            if name[0] != "_" and (is_own or (isinstance(value, several) and _by_name(kind, value))):
                names.append(name)
    return f"it has {listed(names)}" if names else f"it has no registry, toolbox, mapping or list of {kind}"


def _makes_one(found: object) -> bool:
    """True if it is a function that is called without arguments, such as one that makes a registry."""
    if not inspect.isfunction(found):
        return False
    parameters = inspect.signature(found).parameters.values()
    return all(each.default is not each.empty or each.kind in _MANY for each in parameters)
