"""A toolbox and its plan as an MCP server, whatever carries its messages."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

import attrs
import mcp_types as types
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS
from pydantic import ValidationError

from planning.errors import cut, printable, show
from planning.integrations._calls import out_of_reach, toolbox_of
from planning.integrations._sessions import SessionsOfStates
from planning.integrations.mcp.approval import after_call, before_call
from planning.integrations.mcp.changes import PlanEvents, uri_of, watching
from planning.integrations.mcp.results import (
    CLIENT_FIELDS,
    called,
    connection_of,
    context_of,
    declared,
    definition,
    is_single,
    refused,
)
from planning.plan.render import plan_to_dict
from planning.policy.policy import PlanPolicy
from planning.prompt.definitions import ToolSource, tools_of
from planning.prompt.planning_section import PlanningStrategy, section_body, strategy_of
from planning.prompt.section import Section
from planning.suite.tools import planning_tools, register_plan
from planning.tools import Toolbox
from planning.tools.errors import ContextInvalid
from session import Session, StoreError

if TYPE_CHECKING:
    from planning.workflow.capabilities import Capabilities

SessionOf = Callable[[], Session | None]
_Context = ServerRequestContext[Any]
PLAN_TOOLS: Final = tuple(tool.name for tool in planning_tools(lambda: None))
_PROMPTS: Final = {
    "react": (PlanningStrategy.REACT, "Keep a plan: reason, act, observe, repeat."),
    "plan-act-reflect": (PlanningStrategy.PLAN_ACT_REFLECT, "Keep a plan: outline, act, reflect."),
    "goal-decompose-route-synthesise": (
        PlanningStrategy.GOAL_DECOMPOSE_ROUTE_SYNTHESISE,
        "Keep a plan: restate the goal, split it, choose tools, combine the results.",
    ),
}
_RESUMED: Final = "Planning-Session"
_MOST_CHANGES: Final = 1_000  # that a session keeps in memory when it lives as long as a connection
_NO_SESSION: Final = "no session for this call"
_NO_CONNECTION: Final = (
    f"{_NO_SESSION}: it belongs to no connection. Connect with the initialize handshake, or start the server"
    " with one session for all"
)
_logger = logging.getLogger("planning.mcp")


def build_server(
    tools: ToolSource = (),
    *,
    session: Session | SessionOf | None = None,
    new_session: Callable[[], Session] | None = None,
    resume: Callable[[str], Session | None] | None = None,
    plan_tools: Iterable[str] | None = None,
    strategy: PlanningStrategy | str = PlanningStrategy.REACT,
    policy: PlanPolicy | None = None,
    workflows: Capabilities | None = None,
    always_load: bool = False,
    structured: bool = True,
    ignore: Iterable[str] = CLIENT_FIELDS,
    name: str = "planning",
) -> Server[Any]:
    """Make a server of the planning tools, and of other tools.

    Besides the tools it offers the plan as the resource ``plan://SESSION``, with notifications when it
    changes, and the strategies as prompts. A refusal is a failed result with our message, so that the
    model can repair its call.

    Args:
        tools: Tools beside the planning tools. Or a ``Toolbox`` or a section, which is served as it is, with
            its own session and nothing added.
        session: The session of all clients, or a callable that returns the session of the current call.
            When omitted, each MCP connection has its own, which ends with the connection.
        new_session: Opens the session of a new connection; a session in memory by default.
        resume: Opens the session that a connection over HTTP names in the header ``Planning-Session``, which
            is the one that it had before; None if there is none of that id. An id is known only to the client
            that got it: open only sessions with random ids.
        plan_tools: The names of the planning tools to offer; all that the policy gives when omitted.
        strategy: The strategy, or its name, whose text is the server's instructions.
        policy: What the host demands of the plan. With ``approval``, a client that can ask its user does
            so when a plan was set up or changed, and when a tool is blocked; without that, the call is
            refused. A toolbox or a section brings its own.
        workflows: What workflow documents may call. With it, the tool ``planning_run_workflow`` runs them.
        always_load: Whether Claude Code has the tools in every request. By default it keeps the tools of all
            MCP servers behind a search, and a model that does not search never reads them.
        structured: Whether results have the plan, or a tool's value, as data beside their text. Claude Code
            gives its model the data in place of the text: pass False for it.
        ignore: The names of arguments that clients add by themselves, in place of ``CLIENT_FIELDS``. They are
            dropped from the calls of tools that do not declare a parameter of that name.
        name: The server's name.

    Raises:
        ValueError: A planning tool or a strategy is unknown, two tools have the same name, or a session or a
            policy is given beside a toolbox.
        TypeError: ``tools`` is not a toolbox, a section or a collection of tools, or ``ignore`` is a string.
    """
    if isinstance(ignore, str):
        raise TypeError(f"ignore must be a collection of names, got {show(ignore)}")
    known = tuple(tool.name for tool in planning_tools(lambda: None, policy))
    names = known if plan_tools is None else tuple(plan_tools)
    if unknown := [each for each in names if each not in known]:
        raise ValueError(f"{show(unknown[0])} is not a planning tool; they are {', '.join(known)}")
    box = toolbox_of(tools) if isinstance(tools, (Toolbox, Section)) else None
    if box is not None and (session is not None or policy is not None):
        given = "session" if session is not None else "policy"
        raise ValueError(f"the toolbox has its own {given}: omit {given}=")
    sessions = SessionsOfStates(session, policy)
    progress_of: Callable[[ServerSession], AbstractContextManager[object]] = nullcontext
    others = list(() if box is not None else tools_of(tools))
    if workflows is not None:
        from planning.integrations.mcp import workflows as runs  # noqa: PLC0415 - only servers that run them

        progress_of = runs.progress_of
        others.append(runs.workflow_tool(workflows))
    own = [each for each in planning_tools(sessions.current, policy) if each.name in names]
    service = _Service(
        Toolbox([*own, *others], session=sessions.current) if box is None else box,
        None if box is not None else sessions,
        attrs.evolve(policy or PlanPolicy(), tools=names) if names and box is None else None,
        new_session or (lambda: Session(history=_MOST_CHANGES)),
        resume,
        progress_of,
        frozenset(ignore),
        structured,
    )
    service.definitions = [
        definition(tool, always_load=always_load, structured=structured)
        for tool in service.toolbox.tools.values()
    ]
    server: Server[Any] = Server(
        name,
        version=version("session-planning"),
        instructions=service.text(strategy_of(strategy)),
        lifespan=_lifespan,
        get_tool_input_schema=service.input_schema,
        on_list_tools=service.list_tools,
        on_call_tool=service.call_tool,
        on_list_resources=service.list_resources,
        on_read_resource=service.read_resource,
        on_subscribe_resource=service.subscribe,
        on_unsubscribe_resource=service.unsubscribe,
        on_subscriptions_listen=service.listen,
        on_list_prompts=service.list_prompts,
        on_get_prompt=service.get_prompt,
    )
    discover = server.get_request_handler("server/discover")

    async def discovered(ctx: _Context, params: types.RequestParams) -> Any:
        result = await discover.handler(ctx, params) if discover is not None else None
        if service.needs_connection(ctx) and isinstance(result, types.DiscoverResult):
            # Without a connection there is nothing that a session or an agent could be: the client falls
            # back to the handshake, whose connections have an id.
            return result.model_copy(update={"supported_versions": list(HANDSHAKE_PROTOCOL_VERSIONS)})
        return result

    server.add_request_handler("server/discover", types.RequestParams, discovered)
    server.middleware.append(_contain)
    return server


@attrs.frozen
class _Stream:
    """An object that lasts as long as a client that has a stream to itself, as an ``mcp`` connection does."""

    exit_stack: AsyncExitStack
    state: dict[str, Any] = attrs.field(factory=dict)


@asynccontextmanager
async def _lifespan(_server: Server[Any]) -> AsyncIterator[_Stream]:
    async with AsyncExitStack() as stack:
        yield _Stream(stack)


@attrs.define(eq=False)
class _Service:
    """Answers the requests of all clients of one server.

    Attributes:
        toolbox: Its tools.
        sessions: Where the sessions come from; None for a toolbox with its own.
        offered: The policy of the planning tools that it offers; None if it offers none.
    """

    toolbox: Toolbox
    sessions: SessionsOfStates | None
    offered: PlanPolicy | None
    new_session: Callable[[], Session]
    resume: Callable[[str], Session | None] | None
    progress_of: Callable[[ServerSession], AbstractContextManager[object]]
    ignored: frozenset[str]
    structured: bool
    definitions: list[types.Tool] = attrs.field(factory=list)

    def has_no_connection(self, ctx: _Context) -> bool:
        """True if a session for each connection is asked for, and the request belongs to none."""
        return is_single(ctx) and self.sessions is not None and not self.sessions.are_given

    def needs_connection(self, ctx: _Context) -> bool:
        """True if the request belongs to no connection, but needs one: for a plan, or for news of it."""
        sessions = self.sessions
        has_no_news = sessions is not None and sessions.are_given and sessions.policy is None
        return is_single(ctx) and not has_no_news

    def session_of(self, ctx: _Context) -> Session | None:
        """The session that a request is for."""
        if self.sessions is None:
            try:
                session = self.toolbox.session
            except ContextInvalid:  # its callable finds none: the call is refused with the reason
                return None
            if session is not None:
                register_plan(session)
            return session
        if self.sessions.are_given:
            return self.sessions.given()
        return None if self.has_no_connection(ctx) else self.sessions.prepare(self._of_connection(ctx))

    def _of_connection(self, ctx: _Context) -> Session:
        connection = connection_of(ctx)
        session: Session | None = connection.state.get("planning")
        if session is None:
            named = None if ctx.request is None else ctx.request.headers.get(_RESUMED)
            session = self.new_session() if named is None or self.resume is None else self.resume(named)
            if session is None:
                problem = f"no session {show(named)} is here; omit the header {_RESUMED} to begin a new one"
                raise MCPError(types.INVALID_PARAMS, problem)
            connection.state["planning"] = session
            connection.exit_stack.callback(session.close)
        return session

    # Tools

    def input_schema(self, name: str) -> dict[str, Any] | None:
        """The schema of a tool's arguments."""
        return next((each.input_schema for each in self.definitions if each.name == name), None)

    async def list_tools(self, _ctx: _Context, _params: object) -> types.ListToolsResult:
        """All tools."""
        return types.ListToolsResult(tools=self.definitions)

    async def call_tool(
        self, ctx: _Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Call a tool; a failure is a result, so that the model reads it."""
        name, tool = params.name, self.toolbox.tools.get(params.name)
        try:
            session = self.session_of(ctx)
            if session is None and self.sessions is not None:
                return refused(_NO_CONNECTION if self.has_no_connection(ctx) else _NO_SESSION)
            answer = None if session is None else await before_call(ctx, params, session, tool)
        except StoreError as error:
            return refused(out_of_reach(name, error).message)
        if answer is None:
            arguments = declared(params.arguments or {}, self.input_schema(name) or {}, self.ignored)
            within = nullcontext() if self.sessions is None else self.sessions.within(session)
            with within, self.progress_of(ctx.session):
                answer = await self.toolbox.acall(name, arguments, context=context_of(ctx))
            if session is not None:
                answer = await after_call(ctx, session, tool, answer)
        if isinstance(answer, types.InputRequiredResult):
            return answer
        return called(tool, answer, session, structured=self.structured)

    # The plan as a resource

    async def list_resources(self, ctx: _Context, _params: object) -> types.ListResourcesResult:
        """The plan of the client's session, and no other."""
        session = self.session_of(ctx)
        if session is None:
            return types.ListResourcesResult(resources=[])
        plan = types.Resource(
            name="plan", uri=uri_of(session), description="The plan, as JSON.", mime_type="application/json"
        )
        return types.ListResourcesResult(resources=[plan])

    async def read_resource(
        self, ctx: _Context, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """The plan as JSON; null when there is none."""
        session = self._own(ctx, params.uri)
        if session.store is not None:
            await session.run_in_worker(session.refresh)  # other processes may have changed it
        text = json.dumps(plan_to_dict(session))
        contents = types.TextResourceContents(uri=params.uri, mime_type="application/json", text=text)
        return types.ReadResourceResult(contents=[contents])

    async def subscribe(self, ctx: _Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
        """Notify a client of changes, until it unsubscribes or leaves."""
        session = self._own(ctx, params.uri)
        connection = ctx.session._connection  # as in _of_connection
        if "planning/watch" not in connection.state:
            stop = connection.state["planning/watch"] = watching(session, ctx.session)
            connection.exit_stack.callback(stop)
        return types.EmptyResult()

    async def unsubscribe(self, ctx: _Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        """Stop that."""
        self._own(ctx, params.uri)
        stop = ctx.session._connection.state.pop("planning/watch", None)  # as in _of_connection
        if stop is not None:
            stop()
        return types.EmptyResult()

    async def listen(
        self, ctx: _Context, params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """The same in the newer protocol: a stream of changes, until the client closes it."""
        return await ListenHandler(PlanEvents(self.session_of(ctx)))(ctx, params)

    def _own(self, ctx: _Context, uri: str) -> Session:
        session = self.session_of(ctx)
        if session is None or uri != uri_of(session):
            raise MCPError(types.INVALID_PARAMS, f"no resource is {cut(printable(uri), 200)}; list them")
        return session

    # The strategies as prompts

    def text(self, strategy: PlanningStrategy) -> str | None:
        """The text of a strategy, which names only the tools that are offered."""
        return None if self.offered is None else section_body(strategy, self.offered)

    async def list_prompts(self, _ctx: _Context, _params: object) -> types.ListPromptsResult:
        """The strategies, when the planning tools are offered."""
        offered = {} if self.offered is None else _PROMPTS
        prompts = [types.Prompt(name=name, description=each[1]) for name, each in offered.items()]
        return types.ListPromptsResult(prompts=prompts)

    async def get_prompt(self, _ctx: _Context, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        """A strategy's text."""
        strategy, description = _PROMPTS.get(params.name, (None, None))
        text = None if strategy is None else self.text(strategy)
        if text is None:
            raise MCPError(types.INVALID_PARAMS, f"no prompt is named {show(params.name)}; list them")
        message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
        return types.GetPromptResult(description=description, messages=[message])


async def _contain(ctx: _Context, call_next: CallNext) -> HandlerResult:
    """Answer what no handler expects without its text, which may hold anything."""
    try:
        return await call_next(ctx)
    except (MCPError, ValidationError):
        raise
    except StoreError as error:  # its text is meant for the client
        raise MCPError(types.INTERNAL_ERROR, str(error)) from None
    except Exception as error:  # noqa: BLE001 - what comes here is a defect, and may be of any kind
        _logger.warning("%s failed with %s", ctx.method, type(error).__name__)
        raise MCPError(types.INTERNAL_ERROR, f"{ctx.method} failed") from None
