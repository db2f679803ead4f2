"""Capabilities: the tools, handlers and agents that a plan may name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import attrs

from planning.tools.parameters.model import FreeModel
from planning.tools.parameters.signature import read_signature, remedy
from planning.tools.registry import ToolRegistry
from planning.tools.spec import as_name
from planning.tools.tool import BaseTool, Tool, ToolSpec, as_tool, tool
from planning.tools.toolbox import Toolbox
from planning.workflow.checks.inputs import ToolInputs

if TYPE_CHECKING:
    from planning.tools.rate_limit import RateLimiter

Known = ToolRegistry | Toolbox | Mapping[str, Any] | Iterable[Any] | None
"""The declarations or names of one kind; None where they are not known."""

_DECLARED = (Tool, BaseTool, ToolSpec)
_WHOLE = "inputs"


_NONE: Any = ()  # what a kind is before its converter has seen it


def _tools(given: Known) -> Mapping[str, Tool | None] | None:
    return _read(given, "tools", _tool)


def _handlers(given: Known) -> Mapping[str, Callable[..., Any] | None] | None:
    return _read(given, "handlers", _callable)


def _agents(given: Known) -> Mapping[str, Callable[..., Any] | None] | None:
    return _read(given, "agents", _callable)


@attrs.frozen(eq=False)
class Capabilities:
    """The tools, handlers and agents that a plan may name.

    Each kind is a ``ToolRegistry``, a ``Toolbox``, a mapping from name to tool or callable, or any number of
    tools, functions and bare names. A bare name is enough to check a plan; a tool also declares its inputs.
    None means that the names are not known: then names of this kind are not checked.

    A registry is read once, when the capabilities are made; tools that are registered later are not in them.

    Attributes:
        tools: By name; None for a bare name. A plain function is made a ``Tool``, by its signature.
        handlers: The callables by name; None for a bare name.
        agents: The callables by name; None for a bare name.

    Raises:
        TypeError: A kind has the wrong type; a name is empty or not a string; a value cannot be called; or a
            function cannot be called by the names of its inputs.
        ValueError: Two tools have the same name, or a function is given under a name that a tool cannot have.
    """

    tools: Mapping[str, Tool | None] | None = attrs.field(default=_NONE, converter=_tools)
    handlers: Mapping[str, Callable[..., Any] | None] | None = attrs.field(default=_NONE, converter=_handlers)
    agents: Mapping[str, Callable[..., Any] | None] | None = attrs.field(default=_NONE, converter=_agents)
    limiter: Callable[[], RateLimiter] | None = attrs.field(init=False, repr=False)
    """Returns the limiter of the registry that the tools are from; None if they are not from a registry."""
    inputs: Mapping[str, ToolInputs] = attrs.field(init=False, repr=False)
    """The checks of inputs by name of a tool; bare names have none."""

    def __attrs_pre_init__(
        self, tools: Known = _NONE, handlers: Known = _NONE, agents: Known = _NONE
    ) -> None:
        del handlers, agents
        limiter: Callable[[], RateLimiter] | None = None
        if isinstance(tools, ToolRegistry):
            limiter = partial(getattr, tools, "limiter")  # made when it is first needed
        elif isinstance(tools, Toolbox):
            limiter = tools.limiter
        object.__setattr__(self, "limiter", limiter)  # frozen, and the registry is not kept

    @inputs.default
    def _inputs(self) -> Mapping[str, ToolInputs]:
        return {name: ToolInputs(name, tool) for name, tool in (self.tools or {}).items() if tool is not None}

    def schema(self, *, version: int = 2) -> dict[str, Any]:
        """The JSON Schema of documents that name only these, for constrained decoding.

        A step is one of the tools with its inputs, which may be references such as
        ``${user_prompt}``; a handler, an agent, or, in version 2, a thought. It has no conditions, one type a
        place, and anchors in each pattern, because libraries that constrain a model read no more. What a
        document says across steps is not in it: that ids are unique and that references lead somewhere is
        for ``validate_workflow``.

        Args:
            version: The format of the documents: 1 or 2.

        Raises:
            ValueError: There is no such version, or none of its steps can be made.
        """
        from planning.workflow.wire.constrained import constrained_schema  # noqa: PLC0415 - few need it

        return constrained_schema(self.tools, self.handlers, self.agents, version)


def _read(given: Any, kind: str, taken: Callable[[str, object], Any]) -> Mapping[str, Any] | None:
    """The declarations of a kind by name."""
    if given is None:
        return None
    if isinstance(given, (str, bytes, bytearray)):
        raise TypeError(
            f"{kind} must be names or declarations, got a single string; write {kind}=[{given!r}]"
        )
    if isinstance(given, Toolbox):
        given = given.tools
    if isinstance(given, Mapping):
        return MappingProxyType({_name(name, kind): taken(name, each) for name, each in given.items()})
    if isinstance(given, _DECLARED) or not hasattr(given, "__iter__"):
        remedy = "; put it into a list" if callable(given) else ""
        raise TypeError(
            f"{kind} must be a registry, a toolbox, a mapping by name, names or declarations; "
            f"got {type(given).__name__}{remedy}"
        )
    found: dict[str, Any] = {}
    for each in given:
        name = _name(each if isinstance(each, str) else _name_of(each, kind), kind)
        value = None if isinstance(each, str) else taken(name, each)
        known = found.get(name)
        if known is not None and value is not None and known is not value:
            raise ValueError(f"two {kind} are named {name}")
        found[name] = known if value is None else value
    return MappingProxyType(found)


def _name(name: object, kind: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"the names of {kind} must be strings, got {type(name).__name__}")
    if not name.strip():
        raise TypeError(f"a name in {kind} is empty")
    return name


def _name_of(declared: object, kind: str) -> object:
    """The name of a declaration that is given without one."""
    if isinstance(declared, _DECLARED):
        return getattr(declared, "name", None)  # a class may have forgotten it
    name = getattr(declared, "__name__", None) if callable(declared) else None
    if not isinstance(name, str) or name == "<lambda>":
        what = name or f"a value of type {type(declared).__name__}"
        how = remedy(declared)
        problem = (
            f"is not a tool of this toolkit{how}" if how else "has no name; pass a mapping from a name to it"
        )
        raise TypeError(f"{what} in {kind} {problem}")
    return name


def _callable(name: str, value: object) -> Callable[..., Any] | None:
    """The callable for a name, as it was given; None for a bare name."""
    if value is None or isinstance(value, _DECLARED):
        return None if value is None else as_tool(value)
    if not callable(value):
        what = f"{type(value).__name__}{remedy(value)}"
        raise TypeError(f"{name} must be a tool or something that can be called, got {what}")
    called_by_steps(name, value)
    return value


def _tool(name: str, value: object) -> Tool | None:
    """The tool for a name; None for a bare name."""
    if isinstance(value, type):
        raise TypeError(f"{name} is the class {value.__name__}; write {value.__name__}()")
    function = _callable(name, value)
    return function if function is None or isinstance(function, Tool) else tool(name=name)(function)


def called_by_steps(name: str, function: Callable[..., Any]) -> Tool:
    """A handler or an agent as a tool: called with its inputs by name, or with all as ``inputs``.

    Raises:
        TypeError: It cannot be one.
    """
    signature = read_signature(function)
    parameters = list(signature.parameters)
    if signature.is_open and not parameters:
        raise TypeError(
            f"{name} is a built-in whose parameters cannot be read; wrap it in a function that takes its "
            "inputs by name"
        )
    return Tool(as_name(name), "", function, parameters=FreeModel() if parameters[:1] == [_WHOLE] else None)
