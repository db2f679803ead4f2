"""Registries of tools, and the default one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from threading import RLock
from typing import TYPE_CHECKING, Any

from planning.errors import show
from planning.tools.errors import ParameterError, nearest_tool
from planning.tools.rate_limit import DEFAULT_LIMITS, Limits
from planning.tools.spec import check_parameters, unsupported
from planning.tools.tool import BaseTool, Declaration, Tool, ToolSpec, as_tool

if TYPE_CHECKING:
    from planning.tools.rate_limit import RateLimiter

_INSTANCES = (Tool, BaseTool, ToolSpec)

ENTRY_POINTS = "planning.tools"


class ToolRegistry:
    """Tools by name, in the order of registration. Threads may share one."""

    def __init__(
        self, tools: Iterable[Declaration] = (), *, limiter: RateLimiter | Limits | None = None
    ) -> None:
        """Make a registry.

        Args:
            tools: The first ones.
            limiter: Counts the calls of tools with a ``rate_limit_key``; if omitted, 60 calls a
                minute for each key are counted in this process.

        Raises:
            ValueError: Two tools have the same name.
            TypeError: An item is not a tool.
        """
        self._lock = RLock()
        self._declared: dict[str, Declaration] = {}
        self._tools: dict[str, Tool] = {}
        self._limits = limiter if isinstance(limiter, Limits) else Limits(limiter)
        for tool in tools:
            self.register_tool(tool)

    def __iter__(self) -> Iterator[Tool]:
        """The tools in the form in which a toolbox takes them."""
        with self._lock:
            return iter(tuple(self._tools.values()))

    def __len__(self) -> int:
        """The number of tools."""
        return len(self._tools)

    @property
    def limiter(self) -> RateLimiter:
        """The limiter that counts the calls of tools with a ``rate_limit_key``; it can be replaced.

        Raises:
            ImportError: The limits library is not installed.
        """
        return self._limits()

    @limiter.setter
    def limiter(self, limiter: RateLimiter) -> None:
        self._limits.replace(limiter)

    def register_tool(self, tool: Declaration, *, replace: bool = False) -> None:
        """Add a tool.

        Args:
            tool: A ``Tool``, an instance of a ``BaseTool``, a ``ToolSpec``, or a function.
            replace: Whether it may take the place of another with its name.

        Raises:
            ValueError: Its name is empty, or another tool has it.
            TypeError: It is not a tool.
            ImportError: It has a ``rate_limit_key``, and the limits library is not installed.
        """
        self._register(as_tool(tool), tool, replace=replace)

    def _register(self, made: Tool, tool: Declaration, *, replace: bool) -> None:
        if made.rate_limit_key is not None:
            _ = self.limiter  # what cannot be enforced is not accepted
        with self._lock:
            is_same = self._tools.get(made.name, made) is made or self._declared.get(made.name) is tool
            if not (replace or is_same):
                raise ValueError(f"a tool is named {made.name} already; pass replace=True to replace it")
            self._declared[made.name] = tool
            self._tools[made.name] = made

    def get_tool(self, name: object) -> Declaration | None:
        """The tool with a name, as it was registered, or None."""
        return self._declared.get(name) if isinstance(name, str) else None

    def get_all_tools(self) -> dict[str, Declaration]:
        """All tools by name, as they were registered: a copy."""
        with self._lock:
            return dict(self._declared)

    def get_tool_spec(self, name: object) -> ToolSpec | None:
        """The declaration of a tool with query types, or None."""
        tool = self.find(name)
        spec = None if tool is None else tool.parameters
        return spec if isinstance(spec, ToolSpec) else None

    def get_tool_descriptions(self) -> list[dict[str, Any]]:
        """``{"name", "description", "requires_identifier"}`` of each tool, in the order of registration."""
        names = ("name", "description", "requires_identifier")
        return [{name: getattr(tool, name) for name in names} for tool in self]

    def find(self, name: object) -> Tool | None:
        """The tool with a name in its callable form, or None."""
        return self._tools.get(name) if isinstance(name, str) else None

    def validate_call(self, tool_name: str, query_type: str | None, params: Mapping[str, Any]) -> None:
        """Check a call before it is made.

        Args:
            tool_name: The tool's name.
            query_type: The type of query; None for a tool that has no query types.
            params: The parameters of the query.

        Raises:
            QueryTypeUnsupported: The tool has no such type of query.
            ParameterError: There is no such tool; or a parameter is missing, wrong or unknown.
                ``details["field"]`` names the first, ``details["errors"]`` lists every problem.
        """
        tool = self.find(tool_name)
        if tool is None:
            message = (
                f"Tool {show(tool_name)} not found in registry; {nearest_tool(tool_name, list(self._tools))}"
            )
            errors = [{"path": "tool_name", "message": message}]
            raise ParameterError(message, {"field": "tool_name", "errors": errors})
        if isinstance(tool.parameters, ToolSpec):
            tool.parameters.validate(query_type, params)
        elif query_type:
            raise unsupported(query_type, tool.name, [])
        else:
            check_parameters(tool.model, params)


_DEFAULT = ToolRegistry(limiter=DEFAULT_LIMITS)


def default_registry() -> ToolRegistry:
    """The registry that the functions of this module work on."""
    return _DEFAULT


def register_tool(tool: Declaration, *, replace: bool = False) -> None:
    """Add a tool to the default registry; see ``ToolRegistry.register_tool``."""
    _DEFAULT.register_tool(tool, replace=replace)


def get_tool(name: object) -> Declaration | None:
    """The tool of the default registry with a name, as it was registered, or None."""
    return _DEFAULT.get_tool(name)


def get_all_tools() -> dict[str, Declaration]:
    """All tools of the default registry by name: a copy."""
    return _DEFAULT.get_all_tools()


def get_tool_descriptions() -> list[dict[str, Any]]:
    """The descriptions of the default registry's tools for a planner; see ``ToolRegistry``."""
    return _DEFAULT.get_tool_descriptions()


def validate_call(tool_name: str, query_type: str | None, params: Mapping[str, Any]) -> None:
    """Check a call of the default registry's tools; see ``ToolRegistry.validate_call``."""
    _DEFAULT.validate_call(tool_name, query_type, params)


def initialize_tools(
    tools: Iterable[Declaration] | None = None, *, registry: ToolRegistry | None = None
) -> tuple[str, ...]:
    """Register tools at the start of an application; repeated calls change nothing.

    A tool whose name is already registered is skipped.

    Args:
        tools: The tools; if omitted, those that installed packages offer as entry points of the
            group ``planning.tools``.
        registry: Where to register; the default registry if omitted.

    Returns:
        The names that are new.

    Raises:
        ImportError: An installed package offers a tool that cannot be loaded: none is registered; or a tool
            needs an extra which is not installed.
    """
    target = _DEFAULT if registry is None else registry
    new = []
    for made, tool in _find_installed() if tools is None else [(as_tool(tool), tool) for tool in tools]:
        with target._lock:
            if target.find(made.name) is None:
                target._register(made, tool, replace=False)
                new.append(made.name)
    return tuple(new)


def _find_installed() -> list[tuple[Tool, Declaration]]:
    from importlib.metadata import entry_points  # noqa: PLC0415 - only this needs it

    found: list[tuple[Tool, Declaration]] = []
    for point in entry_points(group=ENTRY_POINTS):
        try:
            offered = point.load()
            if not isinstance(offered, _INSTANCES):  # a class, or a function that gives one or several
                offered = offered()
            tools = [offered] if isinstance(offered, _INSTANCES) else list(offered)
            found += [(as_tool(tool), tool) for tool in tools]
        except Exception as error:
            raise ImportError(f"the tools {point.value} cannot be loaded: {type(error).__name__}") from error
    return found
