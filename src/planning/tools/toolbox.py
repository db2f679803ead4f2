"""The toolbox: the tools that one agent may call, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from planning.errors import ToolValidationError, show
from planning.tools.context import SessionOfCall, SessionSource, ToolContext
from planning.tools.contract import check_timeout, session_of
from planning.tools.errors import ContextInvalid, nearest_tool
from planning.tools.ledger import register_ledger
from planning.tools.pipeline import CallPipeline
from planning.tools.registry import ToolRegistry, default_registry
from planning.tools.result import ToolResult
from planning.tools.tool import Declaration, Tool, as_tool
from session import Session, StoreError

if TYPE_CHECKING:
    from planning.tools.rate_limit import RateLimiter


class Toolbox:
    """The tools that one agent may call.

    ``invoke`` and ``ainvoke`` are for Python callers and raise; ``call`` and ``acall`` are for a model's
    calls and always return a ``ToolResult`` with a message that the model can act on.
    """

    def __init__(
        self,
        tools: Iterable[Declaration] | ToolRegistry,
        *,
        session: SessionSource | None = None,
        timeout: float | None = None,
        limiter: RateLimiter | None = None,
    ) -> None:
        """Make a toolbox.

        Args:
            tools: In the order in which a model reads them; or a registry, whose limiter is then
                the toolbox's too.
            session: Where their calls are published; by default the session that tools are bound to, as the
                planning tools are, and nowhere without such tools. You may pass a function without arguments
                that returns the session: it is called once for each call, in the caller's context, so that
                one toolbox serves many sessions.
            timeout: The timeout, in seconds, of tools without their own; None for no limit.
            limiter: Counts the calls of tools with a ``rate_limit_key``; the default registry's if
                omitted.

        Raises:
            ValueError: Two tools have the same name, or are bound to different sessions; or the timeout is
                invalid.
            TypeError: An item is not a tool.
            ImportError: One has a ``rate_limit_key``, and the limits library is not installed.
        """
        check_timeout(timeout)
        by_name: dict[str, Tool] = {}
        for declaration in tools:
            tool = as_tool(declaration)
            if by_name.setdefault(tool.name, tool) is not tool:
                raise ValueError(f"two tools are named {tool.name}")
        self._tools = by_name
        self._limiter: Callable[[], RateLimiter] | None = None if limiter is None else lambda: limiter
        if limiter is None and any(tool.rate_limit_key is not None for tool in by_name.values()):
            registry = tools if isinstance(tools, ToolRegistry) else default_registry()
            self._limiter = lambda: registry.limiter
            self._limiter()  # what cannot be enforced is not accepted
        self._timeout = timeout
        source = session_of(by_name.values()) if session is None else session
        self._source = None if source is None else SessionOfCall(source, register_ledger)
        fixed = None if self._source is None else self._source.fixed
        if fixed is not None:
            register_ledger(fixed)
        self._agent = object()
        first = ToolContext(fixed, agent=self._agent)
        self._pipeline = CallPipeline(first, limiter=self._limiter, timeout=timeout, gated=True)
        self._is_fixed = self._source is None or fixed is not None

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools by name."""
        return MappingProxyType(self._tools)

    @property
    def session(self) -> Session | None:
        """The session that gets the calls; if a function was passed, that of the current call.

        Raises:
            ContextInvalid: The function returns no session.
            StoreError: The session cannot be opened.
        """
        return None if self._source is None else self._source.find()

    @property
    def limiter(self) -> Callable[[], RateLimiter] | None:
        """Returns the limiter for tools with a ``rate_limit_key``; None for the default registry's."""
        return self._limiter

    def invoke(
        self, name: str, params: object = None, *, context: Mapping[str, Any] | None = None
    ) -> ToolResult:
        """Call a tool from Python.

        Args:
            name: The tool's name.
            params: An instance of its parameter type, or a mapping to make one from.
            context: Values for the tool, such as ``trace_id``.

        Raises:
            ToolValidationError: No such tool, or the call is refused; nothing has changed.
            ToolError: The call was stopped: by a limit, a breaker, a timeout, a missing identifier.
            Exception: Whatever the tool itself raises.
        """
        pipeline = self._pipeline if context is None and self._is_fixed else self._on(context)
        return pipeline.invoke(self._find(name), params)

    async def ainvoke(
        self, name: str, params: object = None, *, context: Mapping[str, Any] | None = None
    ) -> ToolResult:
        """Call a tool from async code; see ``acall``."""
        pipeline = self._pipeline if context is None and self._is_fixed else self._on(context)
        return await pipeline.acall(self._find(name), params, raises=True)

    def call(
        self,
        name: str,
        arguments: str | bytes | Mapping[str, Any] | None = None,
        *,
        context: Mapping[str, Any] | None = None,
    ) -> ToolResult:
        """Make a model's call; never raises, except KeyboardInterrupt, SystemExit and GeneratorExit.

        Args:
            name: The tool's name.
            arguments: The JSON text that the provider handed over, or a mapping.
            context: Values for the tool, such as ``trace_id``.
        """
        tool = self._get(name)
        try:
            pipeline = self._pipeline if context is None and self._is_fixed else self._on(context)
        except (ContextInvalid, StoreError) as error:
            return self._pipeline.answer_bad_context(_show(name), error)
        if tool is None:
            return pipeline.answer_unfound(_show(name), self._unfound(name))
        return pipeline.call(tool, arguments)

    async def acall(
        self,
        name: str,
        arguments: str | bytes | Mapping[str, Any] | None = None,
        *,
        context: Mapping[str, Any] | None = None,
    ) -> ToolResult:
        """Make a model's call from async code; never raises, but cancelling passes.

        Async tools are awaited. Plain functions run in a thread, so that the event loop stays free, unless
        the tool is declared not to block, as the planning tools are: their transaction ends before any other
        task runs. In a stored session it runs in a thread, after earlier calls of the session.
        """
        tool = self._get(name)
        try:
            pipeline = self._pipeline if context is None and self._is_fixed else self._on(context)
        except (ContextInvalid, StoreError) as error:
            answer = partial(self._pipeline.answer_bad_context, _show(name), error)
            return await self._pipeline.in_worker(_show(name), self._pipeline.context.session, answer)
        if tool is None:
            answer = partial(pipeline.answer_unfound, _show(name), self._unfound(name))
            return await pipeline.in_worker(_show(name), pipeline.context.session, answer)
        return await pipeline.acall(tool, arguments)

    def _on(self, context: Mapping[str, Any] | None) -> CallPipeline:
        """The pipeline that makes one call."""
        made = ToolContext.of({} if context is None else context, self.session, self._agent)
        return CallPipeline(made, limiter=self._limiter, timeout=self._timeout, gated=True)

    def _find(self, name: object) -> Tool:
        tool = self._get(name)
        if tool is None:
            raise self._unfound(name)
        return tool

    def _get(self, name: object) -> Tool | None:
        return self._tools.get(name) if isinstance(name, str) else None

    def _unfound(self, name: object) -> ToolValidationError:
        return ToolValidationError(f"no tool is named {show(name)}; {nearest_tool(name, self._tools)}")


def _show(name: object) -> str:
    return show(name)[1:-1] if isinstance(name, str) else show(name)
