"""A server of the planning tools and of the plan, spoken to by the official client in both protocol eras."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

import mcp_types as types
import pytest
from frameworks import refusals, setup
from mcp import Client, MCPDeprecationWarning, MCPError
from mcp.client.session import IncomingMessage
from mcp_served import connecting, in_both_eras, over_both, over_http, said
from syrupy.assertion import SnapshotAssertion

from planning import PlanningToolsSection, PlanPolicy, SetupPlan, Toolbox, register_plan
from planning.integrations.mcp import build_server
from planning.integrations.mcp.server import PLAN_TOOLS
from planning.prompt.planning_section import PlanningStrategy, section_body
from planning.suite.tools import planning_tools
from planning.tools import Tool, ToolResult, tool, tool_from_schema
from session import Session
from session.stores import SqliteStore, StoreError

READ = "planning_read_plan"


@in_both_eras
async def test_a_definition_is_stored_whole(mode: str, snapshot: SnapshotAssertion) -> None:
    async with Client(build_server([add]), mode=mode) as client:
        tools = (await client.list_tools()).tools
    shown = [tool.model_dump(by_alias=True, mode="json", exclude_none=True) for tool in tools]
    assert json.dumps(shown, indent=2) + "\n" == snapshot


@over_both
@in_both_eras
async def test_a_result_is_the_message_and_the_plan_as_it_is_then(way: str, mode: str) -> None:
    async with connecting(way, mode) as connect, connect() as client:
        await client.call_tool(*setup("Fix the login", "Reproduce it", "Mend it"))
        marked = await client.call_tool("planning_mark_step", {"step_id": "S001", "status": "done"})
        read = await client.call_tool(READ)
    now = {"objective": "Fix the login", "status": "active", "done": 1, "total": 2, "next_step": "S002"}
    assert said(marked) == "S001 done. Next: S002 Mend it"
    assert marked.structured_content == {"message": said(marked), "plan": now}
    plan = "Fix the login (active, 1 of 2 done)\nS001 done: Reproduce it\nS002 pending: Mend it"
    rows: list[list[Any]] = [
        ["S001", "Reproduce it", None, "done", []],
        ["S002", "Mend it", None, "pending", []],
    ]
    fields = ("step_id", "title", "details", "status", "notes")
    steps = [dict(zip(fields, row, strict=True)) for row in rows]
    assert read.structured_content == {"message": plan, "plan": now | {"steps": steps}}


def shout(word: str) -> dict[str, str]:
    """Shouts."""
    return {"shouted": word.upper()}


@in_both_eras
async def test_without_structured_results_the_model_has_the_text_alone(mode: str) -> None:
    server = build_server([Tool("shout", "Shouts.", shout)], structured=False, always_load=True)
    async with Client(server, mode=mode) as client:
        listed = (await client.list_tools()).tools
        results = [
            await client.call_tool(*setup("Fix the login", "Reproduce it")),
            await client.call_tool("planning_mark_step", {"step_id": "S002", "status": "done"}),
            await client.call_tool("shout", {"word": "help"}),
        ]
    assert [(each.output_schema, each.meta) for each in listed] == [
        (None, {"anthropic/alwaysLoad": True})
    ] * 7
    assert [each.structured_content for each in results] == [None] * 3
    assert [said(each) for each in results] == [
        "Plan set: S001. Next: S001 Reproduce it",
        "error: Refused, nothing changed. step_id: the plan has no step S002; its only step is S001",
        '{"shouted":"HELP"}',
    ]


@in_both_eras
async def test_the_id_of_a_call_is_ours_or_that_of_claude_code_and_makes_no_repeat(mode: str) -> None:
    session, ours, theirs = Session(), "planning/call_id", "claudecode/toolUseId"
    sent: list[Any] = [*({ours: each} for each in (7, "", ["a"])), *[{theirs: "toolu_1"}] * 2, None]
    async with Client(build_server(session=session), mode=mode) as client:
        for meta in (*sent, {ours: "ours", theirs: "toolu_2"}):
            await client.call_tool(*setup("Named"), meta=meta)
    ids = [change.call_id for change in session.history()]
    assert ids == [None, None, None, "toolu_1", "toolu_1", None, "ours"]


@in_both_eras
async def test_a_client_that_sends_an_idempotency_key_again_gets_its_first_answer(mode: str) -> None:
    async with Client(build_server(session=Session()), mode=mode) as client:
        await client.call_tool(*setup("Named"))
        answers = []
        for key in ("a", "a", "b", 7, "", "x" * 201):
            meta: Any = {"planning/idempotency_key": key}
            step = {"steps": [{"title": "Reproduce it"}]}
            answers.append(said(await client.call_tool("planning_add_step", step, meta=meta)))
    told = "the idempotency_key in its context must be text of 1 to 200 printable characters, or None"
    refused = f"error: planning_add_step was not called: {told}"
    assert answers == ["Added S001.", "Added S001.", "Added S002.", *[refused] * 3]


# The strategies as prompts


@in_both_eras
async def test_the_strategies_are_prompts_and_the_first_is_the_instructions(
    mode: str, snapshot: SnapshotAssertion
) -> None:
    async with Client(build_server(), mode=mode) as client:
        prompts, listed = {}, (await client.list_prompts()).prompts
        for prompt in listed:
            content: Any = (await client.get_prompt(prompt.name)).messages[0].content
            prompts[prompt.name] = content.text
        with pytest.raises(MCPError, match=r"^no prompt is named 'other'; list them$"):
            await client.get_prompt("other")
        assert client.instructions == prompts["react"]
        told: Any = client.server_info
        assert (told.name, told.version) == ("planning", version("session-planning"))
    assert "".join(f"{each.name}: {each.description}\n" for each in listed) == snapshot
    assert [*prompts.values()] == [section_body(each) for each in PlanningStrategy]
    for name, text in prompts.items():
        async with Client(build_server(strategy=name), mode=mode) as client:
            assert client.instructions == text


@pytest.mark.parametrize("names", [("mark", "read"), ("setup", "add", "clear")], ids="-".join)
async def test_the_instructions_name_no_tool_that_is_not_offered(
    names: tuple[str, ...], snapshot: SnapshotAssertion
) -> None:
    tools = [tool for tool in PLAN_TOOLS if tool.split("_")[1] in names]
    async with Client(build_server(plan_tools=tools)) as client:
        offered, instructions = [tool.name for tool in (await client.list_tools()).tools], client.instructions
    assert offered == tools
    assert f"{instructions}\n" == snapshot


# Other tools


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def long() -> list[str]:
    """Return much."""
    return ["x" * 1_000] * 100


def deep() -> ToolResult:
    """Return what has no JSON form, with a message."""
    value: list[Any] = []
    value.append(value)
    return ToolResult(True, "Look around.", value)


@in_both_eras
async def test_other_tools_are_served_beside_the_planning_tools(mode: str) -> None:
    async with Client(build_server([add, long, deep]), mode=mode) as client:
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == [*PLAN_TOOLS, "add", "long", "deep"]
        calls: list[tuple[str, dict[str, Any]]] = [("add", {"a": 1, "b": 2}), ("long", {}), ("deep", {})]
        added, much, endless = [await client.call_tool(*each) for each in calls]
    assert (said(added), added.structured_content) == ("3", {"message": "3", "value": 3})
    assert much.structured_content == {"message": said(much)}
    assert len(said(much)) <= 50_000
    assert endless.structured_content == {"message": "Look around."}


@pytest.mark.parametrize("kind", ["toolbox", "section", "other tools"])
async def test_a_toolbox_or_a_section_is_served_as_it_is_with_its_session(kind: str) -> None:
    session = Session(session_id="boxed")
    section = PlanningToolsSection(session=session)
    box = Toolbox(section.tools(), session=session)
    given: Any = {"toolbox": box, "section": section, "other tools": Toolbox([add])}[kind]

    async with Client(build_server(given)) as client:
        name = (await client.list_tools()).tools[0].name
        arguments = {"a": 1, "b": 1} if name == "add" else {"objective": "Boxed", "initial_steps": []}
        uris = [resource.uri for resource in (await client.list_resources()).resources]
        prompts = (await client.list_prompts()).prompts
        found = [said(await client.call_tool(name, arguments)), uris, prompts, client.instructions]
    text = "Plan set, no steps yet. Add them with planning_add_step."
    assert found == (["2", [], [], None] if kind == "other tools" else [text, ["plan://boxed"], [], None])


async def test_a_toolbox_may_ask_for_the_session_of_each_call() -> None:
    sessions: list[Session | None] = [Session(session_id="a"), Session(session_id="b"), None]

    def find() -> Session | None:
        return sessions[0]

    async with Client(build_server(Toolbox(planning_tools(find), session=find))) as client:
        seen = []
        while sessions:
            uris = [resource.uri for resource in (await client.list_resources()).resources]
            seen.append((uris, said(await client.call_tool(READ))))
            sessions.pop(0)
    no_plan = "error: Refused, nothing changed. no plan yet; call planning_setup_plan first"
    no_session = "error: planning_read_plan was not called: no session for this call"
    assert seen == [(["plan://a"], no_plan), (["plan://b"], no_plan), ([], no_session)]


def test_what_cannot_be_served_is_refused_at_once(snapshot: SnapshotAssertion) -> None:
    section = PlanningToolsSection(session=Session())
    refused = refusals(
        lambda: build_server(Toolbox([add]), session=Session()),
        lambda: build_server(section, policy=PlanPolicy(approval=True)),
        lambda: build_server(plan_tools=["planning_move_step"]),
        lambda: build_server([Tool(READ, "", add)]),
        lambda: build_server(ignore="trace"),
    )
    assert refused == snapshot


@in_both_eras
async def test_a_defect_is_answered_without_its_text(mode: str, caplog: pytest.LogCaptureFixture) -> None:
    def broken() -> Session:
        raise OSError("password=hunter2")

    async with Client(build_server(session=broken), mode=mode) as client:
        with pytest.raises(MCPError) as failed:
            await client.call_tool(READ)
    assert failed.value.error.message == "tools/call failed"
    assert [(each.name, each.getMessage()) for each in caplog.records] == [
        ("planning.mcp", "tools/call failed with OSError")
    ]


# Arguments of clients

FIELDS = ("toolCallId", "sessionId", "action", "chatInput", "wait_for_previous", "random_string")
BUILT_IN = dict.fromkeys(FIELDS, "call_made_up_1")


@tool
def order(action: str, rows: list[dict[str, Any]] | None = None, **rest: str) -> str:
    """Order something."""
    return json.dumps([action, rows, rest])


@over_both
@in_both_eras
async def test_arguments_that_clients_add_are_dropped(way: str, mode: str) -> None:
    session = Session(session_id="shared")
    async with connecting(way, mode, session=session) as connect, connect() as client:
        setup_call = await client.call_tool(
            "planning_setup_plan", {"objective": "A", "initial_steps": ["B"]} | BUILT_IN
        )
        read = await client.call_tool(READ, BUILT_IN)
        wrong = await client.call_tool("planning_mark_step", BUILT_IN | {"step_id": "S001", "state": "done"})
    assert [said(each) for each in (setup_call, read, wrong)] == [
        "Plan set: S001. Next: S001 B",
        "A (active, 0 of 1 done)\nS001 pending: B",
        "error: Refused, nothing changed. 2 problems:\n"
        "- status: missing; send one of pending, in_progress, blocked, done\n"
        "- state: unknown field; the fields are step_id, status, note",
    ]
    assert BUILT_IN["action"] not in repr(list(session.history()))


@in_both_eras
async def test_a_tool_has_an_argument_that_it_declares_by_name(mode: str) -> None:
    named = {"properties": {"sessionId": {"type": "string"}}}
    of_schema = tool_from_schema("of_schema", "Any.", {"type": "object", "allOf": [named]}, dict)
    free = Tool("free", "Any.", json.dumps, parameters={"type": "object"})
    async with Client(build_server([order, of_schema, free]), mode=mode) as client:
        results = [
            said(
                await client.call_tool(
                    "order", {"action": "buy", "rows": [BUILT_IN], "chatInput": "x", "a": "b"}
                )
            ),
            said(await client.call_tool("of_schema", BUILT_IN | {"other": 1})),
            said(await client.call_tool("free", BUILT_IN | {"other": 1})),
        ]
    assert [json.loads(each) for each in results] == [
        ["buy", [BUILT_IN], {"a": "b"}],
        {"sessionId": "call_made_up_1", "other": 1},
        {"other": 1},
    ]


@over_both
@in_both_eras
async def test_the_plan_is_a_resource_and_that_of_others_is_not(way: str, mode: str) -> None:
    async with connecting(way, mode) as connect, connect() as one, connect() as other:
        (resource,) = (await one.list_resources()).resources
        before = await one.read_resource(resource.uri)
        await one.call_tool(*setup("Mine"))
        after = await one.read_resource(resource.uri)
        with pytest.raises(MCPError) as refused:
            await other.read_resource(resource.uri)
        assert resource.uri not in {each.uri for each in (await other.list_resources()).resources}
        kinds = {resource.mime_type, before.contents[0].mime_type, after.contents[0].mime_type}
        assert (kinds, resource.name) == ({"application/json"}, "plan")
        assert resource.description == "The plan, as JSON."
        texts = [each.contents[0].text for each in (before, after)]  # type: ignore[union-attr]  # text alone
    plan = {"objective": "Mine", "status": "active", "done": 0, "total": 0, "steps": []}
    assert [*map(json.loads, texts)] == [None, plan]
    assert refused.value.error.message == f"no resource is {resource.uri}; list them"


async def test_a_client_that_listens_hears_of_every_change_of_the_plan(opens: Callable[[], Session]) -> None:
    elsewhere, served = opens(), opens()  # with a store each, as two processes have it
    async with Client(build_server(session=served)) as client:
        async with client.listen(resource_subscriptions=["plan://shop"]) as changes:

            async def heard() -> str:
                return (await anext(changes)).uri  # type: ignore[union-attr]  # it asked for no other

            await client.call_tool(*setup("Seen", "One"))
            uris = [await heard()]
            await client.call_tool(READ)  # no change
            for session in (served, elsewhere):
                await asyncio.to_thread(session.dispatch, SetupPlan(f"Of version {session.version}"))
                uris.append(await heard())
            refused = {"step_id": "S009", "status": "done"}
            box = Toolbox(planning_tools(elsewhere))
            assert not (await asyncio.to_thread(box.call, "planning_mark_step", refused)).success
            waiting = asyncio.ensure_future(heard())
            while served.version != elsewhere.version:  # until it has taken the refusal over
                await asyncio.sleep(0.01)
            assert await asyncio.wait([waiting], timeout=0.1) == (set(), {waiting})
            waiting.cancel()
        await asyncio.to_thread(elsewhere.dispatch, SetupPlan("Once more"))
        read = await client.read_resource("plan://shop")
    assert uris == ["plan://shop"] * 3
    assert json.loads(read.contents[0].text)["objective"] == "Once more"  # type: ignore[union-attr]  # text alone


async def test_a_store_that_cannot_be_watched_is_noted_in_the_log(
    opens: Callable[[], Session], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise StoreError("the disk is gone")

    monkeypatch.setattr(SqliteStore, "awatch", fail)
    async with (
        Client(build_server(session=opens())) as client,
        client.listen(resource_subscriptions=["plan://shop"]),
    ):
        while not caplog.records:
            await asyncio.sleep(0.01)
    assert [(each.name, each.getMessage()) for each in caplog.records] == [
        ("planning.mcp", "changes by other processes are not announced any more: the disk is gone")
    ]


async def test_a_store_that_refuses_is_an_error_of_the_resource_in_its_words(
    stored: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise StoreError("the disk is full: free some space")

    async with Client(build_server(session=stored)) as client:
        await client.call_tool(*setup("Kept", "One"))
        monkeypatch.setattr(SqliteStore, "head", refuse)
        with pytest.raises(MCPError) as failed:
            await client.read_resource("plan://shop")
    assert failed.value.error.message == "the disk is full: free some space"


@over_both
async def test_a_client_of_the_older_era_subscribes_and_unsubscribes(way: str) -> None:
    session = Session(session_id="watched")
    register_plan(session)
    heard: asyncio.Queue[str] = asyncio.Queue()

    async def hear(message: IncomingMessage) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            await heard.put(message.params.uri)

    server = build_server(session=session)
    async with (
        over_http(server) as url,
        Client(server if way == "memory" else url, mode="legacy", message_handler=hear) as client,
    ):
        with pytest.warns(MCPDeprecationWarning):
            await client.subscribe_resource("plan://watched")
        session.dispatch(SetupPlan("Begun"))
        session.dispatch(SetupPlan("Seen"))  # both are there when it is told
        uris = [await heard.get()]
        with pytest.warns(MCPDeprecationWarning):
            await client.unsubscribe_resource("plan://watched")
        session.dispatch(SetupPlan("Unseen"))
        await client.call_tool(READ)
        result = [*uris, str(heard.qsize())]
    assert result == ["plan://watched", "0"]
