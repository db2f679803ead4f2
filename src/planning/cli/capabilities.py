"""The tools, handlers and agents that a user names: by name, or as an object in a Python module."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import typer

from planning.cli.usage import Refused
from planning.errors import printable, show
from planning.workflow.capabilities import Capabilities

if TYPE_CHECKING:
    from planning.workflow.reports.report import Report

__all__ = ["capabilities_of", "mention_colon", "with_tools"]

_NONE_KNOWN = Capabilities(tools=None, handlers=None, agents=None)
_MODULE = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+", re.ASCII)
_MANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def capabilities_of(**options: Sequence[str] | None) -> Capabilities | None:
    """What the values of the options say that exists; None when there are no values.

    Args:
        options: The values of ``tools``, ``handlers`` and ``agents``: names with commas between
            them, or ``module:object``. Of a kind without values, no name is checked.

    Raises:
        Refused: A value names nothing that can be used.
    """
    kinds = {kind: _merged(kind, values) for kind, values in options.items() if values}
    return attrs.evolve(_NONE_KNOWN, **kinds) if kinds else None


def mention_colon(report: Report, **options: Sequence[str] | None) -> None:
    """Say on standard error which values were read as names and are probably modules, if names are unknown.

    Args:
        report: About the workflow.
        options: As for ``capabilities_of``.
    """
    unknown = {error.code for error in report.errors}
    for kind, values in options.items():
        one = kind.removesuffix("s")
        for value in values or ():
            path = Path(value)
            is_file = path.suffix == ".py" and path.is_file() and not path.is_absolute()
            is_module = _MODULE.fullmatch(value) or Path(f"{value}.py").is_file()
            if f"unknown_{one}" in unknown and (is_file or is_module):
                given = f"--{kind} {printable(value)}"
                module = ".".join(path.with_suffix("").parts) if is_file else value
                remedy = f"for an object in a module, write --{kind} {printable(module)}:NAME"
                typer.echo(f"planning: {given} is read as the name of a {one}; {remedy}", err=True)


def with_tools(capabilities: Capabilities | None, tools: Mapping[str, Any]) -> Capabilities:
    """The capabilities with the tools of MCP servers added.

    Raises:
        Refused: There is a tool of that name already.
    """
    known = {} if capabilities is None else capabilities.tools or {}
    for name in tools:
        if known.get(name) is not None:
            raise Refused(f"--mcp: two tools are named {name}")
    return attrs.evolve(capabilities or _NONE_KNOWN, tools={**known, **tools})


def _merged(kind: str, values: Iterable[str]) -> dict[str, Any]:
    """What the values of one option name, by name."""
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
            return _by_name(kind, _imported(value))
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


def _imported(value: str) -> Any:
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
        raise Refused(f"no module is named {show(error.name)}, in this folder or installed") from None
    for attribute in attributes.split("."):
        try:
            found = getattr(found, attribute)
        except AttributeError:
            raise Refused(f"{show(module)} has no {show(attribute)}") from None
    if found is None:
        raise Refused("it is None; name a registry, a toolbox, a mapping or a list")
    return found() if _makes_one(found) else found


def _makes_one(found: object) -> bool:
    """Whether it is a function that is called without arguments, such as one that makes a registry."""
    if not inspect.isfunction(found):
        return False
    parameters = inspect.signature(found).parameters.values()
    return all(each.default is not each.empty or each.kind in _MANY for each in parameters)
