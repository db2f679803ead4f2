"""The plan as a resource of an MCP server, with notifications of changes, whoever makes them."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path

import mcp_types as types
import pytest
from frameworks import setup
from mcp import Client, MCPDeprecationWarning, MCPError
from mcp.client.session import IncomingMessage
from mcp_served import connecting, in_both_eras, over_both, over_http, said

from planning import MarkStep, SetupPlan, Toolbox, register_plan
from planning.integrations.mcp import build_server
from planning.suite.tools import planning_tools
from session import Session
from session.stores import SqliteStore, StoreError

READ = "planning_read_plan"


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
        assert kinds == {"application/json"}
        texts = [each.contents[0].text for each in (before, after)]  # type: ignore[union-attr]  # text alone
    plan = {"objective": "Mine", "status": "active", "done": 0, "total": 0, "steps": []}
    assert [*map(json.loads, texts)] == [None, plan]
    assert refused.value.error.message == f"no resource is {resource.uri}; list them"


async def test_the_plan_of_a_stored_session_that_is_found_for_each_request_can_be_read_at_once(
    stored: Session, path: Path
) -> None:
    stored.dispatch(SetupPlan("From last time"))
    session = Session(session_id="shop", store=SqliteStore(path))
    async with Client(build_server(session=lambda: session)) as client:
        read = await client.read_resource("plan://shop")
        result = json.loads(read.contents[0].text)  # type: ignore[union-attr]  # text alone
    assert result["objective"] == "From last time"


async def test_a_client_that_listens_hears_of_every_change_whoever_makes_it() -> None:
    session = Session(session_id="watched")
    async with Client(build_server(session=session)) as client:
        async with client.listen(resource_subscriptions=["plan://watched"]) as changes:
            await client.call_tool(*setup("Seen", "One"))
            heard = [await anext(changes)]
            await client.call_tool(READ)  # no change
            mark = MarkStep("S001", "done")
            thread = threading.Thread(target=session.dispatch, args=(mark,))
            thread.start()
            heard.append(await anext(changes))
            thread.join()
        result = [event.uri for event in heard]  # type: ignore[union-attr]  # it asked for no other
    assert result == ["plan://watched"] * 2


async def test_a_client_hears_of_the_changes_that_another_process_makes(opens: Callable[[], Session]) -> None:
    elsewhere = opens()  # with a store of its own, as another process has it
    async with Client(build_server(session=opens())) as client:
        async with client.listen(resource_subscriptions=["plan://shop"]) as changes:
            await asyncio.to_thread(elsewhere.dispatch, SetupPlan("From elsewhere"))
            event = await anext(changes)
        await asyncio.to_thread(elsewhere.dispatch, SetupPlan("Once more"))
        read = await client.read_resource("plan://shop")
        result = [event.uri, json.loads(read.contents[0].text)["objective"]]  # type: ignore[union-attr]  # as above
    assert result == ["plan://shop", "Once more"]


async def test_a_change_of_the_store_that_is_not_one_of_the_plan_is_announced_to_nobody(
    opens: Callable[[], Session],
) -> None:
    elsewhere, served = opens(), opens()
    toolbox = Toolbox(planning_tools(elsewhere))
    toolbox.call(*setup("Seen", "One"))
    served.refresh()
    async with (
        Client(build_server(session=served)) as client,
        client.listen(resource_subscriptions=["plan://shop"]) as changes,
    ):
        refused = {"step_id": "S009", "status": "done"}
        assert not (await asyncio.to_thread(toolbox.call, "planning_mark_step", refused)).success
        heard = asyncio.ensure_future(anext(changes))
        while served.version != elsewhere.version:  # until it has taken the change over
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        assert not heard.done()
        heard.cancel()


async def test_a_store_that_refuses_is_a_failed_call_and_the_server_goes_on(
    stored: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise StoreError("the disk is full: free some space")

    async with Client(build_server(session=stored)) as client:
        await client.call_tool(*setup("Kept", "One"))
        with monkeypatch.context() as patched:
            for name in ("lock", "head"):
                patched.setattr(SqliteStore, name, refuse)
            refused = await client.call_tool("planning_mark_step", {"step_id": "S001", "status": "done"})
            with pytest.raises(MCPError) as failed:
                await client.read_resource("plan://shop")
        marked = await client.call_tool("planning_mark_step", {"step_id": "S001", "status": "done"})
        result = [refused.is_error, failed.value.error.message, said(marked)]
    assert result == [True, "the disk is full: free some space", "S001 done. Plan completed."]


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
        session.dispatch(SetupPlan("Seen"))
        uris = [await heard.get()]
        with pytest.warns(MCPDeprecationWarning):
            await client.unsubscribe_resource("plan://watched")
        session.dispatch(SetupPlan("Unseen"))
        await client.call_tool(READ)
        result = [*uris, str(heard.qsize())]
    assert result == ["plan://watched", "0"]
