"""What holds for a plan through every provider and framework: see the table of ``frameworks``."""

from __future__ import annotations

import asyncio
import sqlite3
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from contextvars import ContextVar
from hashlib import sha256
from itertools import chain, pairwise, repeat
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from frameworks import (
    HALF,
    OPEN,
    OTHER,
    OWN,
    PROMISES,
    READ,
    SHOP,
    TABLE,
    Answer,
    Call,
    Driver,
    EntryPoint,
    aplay,
    mark,
    plans_of,
    play,
    promise,
    rewinds,
    setup,
    text_of,
    toolbox,
)
from postgres_server import store_for

from planning import PlanningToolsSection, PlanPolicy, Toolbox, register_plan
from planning.plan.commands import MarkStep, NewPlanStep, SetupPlan
from planning.tools import Tool, ToolContext, pipeline, tool
from session import Session, StoreError, ToolFailed, ToolInvoked, VersionError
from session.stores import SqliteStore, Store

SET = "Plan set: S001 to S002. Next: S001 Rent a room"
DONE = "S001 done. Next: S002 Buy shelves"
NO_STEP = "Refused, nothing changed. step_id: the plan has no step S07; its steps are S001 to S002"
AWAY = "{} cannot reach its data now. Try again later, or continue without it."
NO_PLAN = "Refused, nothing changed. no plan yet; call planning_setup_plan first"
KEEPS = [each for each in TABLE if each.keeps_position]
keeping = pytest.mark.parametrize("entry", KEEPS, ids=[each.name for each in KEEPS])
current: ContextVar[Session | None] = ContextVar("current", default=None)


@pytest.fixture
def stored(opens: Callable[[], Session]) -> Session:
    """A session in a file, with a plan, as another process opens it."""
    steps = NewPlanStep("Rent a room"), NewPlanStep("Buy shelves")
    opens().dispatch(SetupPlan("Open the shop", steps))
    return opens()


# Requests


@promise("tools")
def test_the_tools_reach_the_model_with_their_descriptions_and_schemas(entry: EntryPoint) -> None:
    def read(tools: Mapping[str, tuple[str, Any]]) -> dict[str, Any]:
        """What a model reads of tools; the form of a type is the framework's."""
        fields = {name: schema["properties"] for name, (_, schema) in tools.items()}
        return {
            name: (text, {field: about["description"] for field, about in fields[name].items()})
            for name, (text, _) in tools.items()
        }

    session = Session()
    requests = entry.play(session, [[SHOP]]).requests
    own = PlanningToolsSection(session=session).tools()
    expected = read({each.name: (each.description, each.parameters_schema()) for each in own})
    assert [read(request.tools) for request in requests] == [expected, expected]


@promise("section")
def test_the_section_reaches_the_model_the_same_in_each_request(entry: EntryPoint) -> None:
    session = Session()
    first, *others = entry.play(session, [[SHOP], [mark("S07")], [mark("S001")]]).requests
    before = {"mcp": "", "planning": "## 1. Planning\n\n"}.get(entry.needs, f"{OWN}\n\n## Planning\n\n")
    assert first.system == before + PlanningToolsSection(session=session).body()
    assert [(each.system, each.tools) for each in others] == [(first.system, first.tools)] * 3


@promise("reminder")
def test_the_live_plan_is_the_last_message_behind_what_stays(entry: EntryPoint) -> None:
    agent = entry.agent(Session())
    talk = play(agent, [[SHOP], [mark("S001")]])
    requests = [*talk.requests[1:], *play(agent, [], talk.after).requests]
    assert [each.last for each in (talk.requests[0], *requests)] == ["", OPEN, HALF, HALF]
    for before, after in pairwise(requests):
        assert after.messages[: len(before.messages)] == before.messages
        assert [each for each in after.messages if " of 2 done" in each] == []  # it is not kept


@promise("roles")
def test_the_live_plan_is_no_message_of_its_own(entry: EntryPoint) -> None:
    agent = entry.agent(Session())
    talk = play(agent, [[SHOP, mark("S01x")], [mark("S001")]])
    for request in (*talk.requests, *play(agent, [], talk.after).requests):
        assert request.roles[0] == "user"
        assert ("user", "user") not in pairwise(request.roles)
        assert ("tool", "user") not in pairwise(request.roles)


# Calls


@promise("refusal")
def test_a_refusal_is_our_text_and_the_model_repairs_it(entry: EntryPoint) -> None:
    session = Session()
    wrong: Call = ("planning_setup_plan", {"goal": 1})
    told = toolbox(Session(), ()).call(*wrong).message
    refused = [[mark("S07")]] * 5
    answers = entry.play(session, [[wrong, SHOP], *refused, [mark("S001")]]).answers
    assert [(each.success, each.text) for each in answers] == [
        (False, told),
        (True, SET),
        *[(False, NO_STEP)] * 5,
        (True, DONE),
    ]
    assert [each.call_id for each in session.select_all(ToolFailed)] == [
        each.call_id for each in answers if not each.success
    ]


@promise("unknown tool")
def test_a_call_of_an_unknown_tool_is_answered_with_the_names_of_the_tools(entry: EntryPoint) -> None:
    talk = entry.play(Session(), [[("finish", {}), SHOP], [mark("S001")]])
    unknown, *others = talk.answers
    assert (unknown.call_id, unknown.success) == ("call_1", False)
    assert [name for name in talk.requests[0].tools if name not in unknown.text] == []
    assert [each.text for each in others] == [SET, DONE]


@promise("not JSON")
def test_arguments_that_are_not_json_are_repaired_or_refused(entry: EntryPoint) -> None:
    sent = ('{"step_id": "S001", "sta', "[1]", '{"step_id": "S001", "status": "done",}')
    calls: list[Call] = [SHOP, *(("planning_mark_step", each) for each in sent)]
    box = toolbox(Session(), ())
    results = [box.call(*each) for each in calls]
    assert [each.success for each in results] == [True, False, False, True]
    answers = entry.play(Session(), [[each] for each in calls]).answers
    assert [(each.success, each.text) for each in answers] == [
        (each.success, each.message) for each in results
    ]


@promise("order")
def test_calls_of_one_turn_are_all_kept_in_order(entry: EntryPoint, stored: Session) -> None:
    def look(_arguments: object) -> str:
        """A later call that does not wait for this one changes what it reads."""
        sleep(0.005)
        return text_of(stored).splitlines()[-1]

    looking = Tool("look", "Look.", look, parameters={"type": "object"}, blocking=False)
    looks: list[Call] = [("look", {})] * (
        entry.needs not in {"agents", "mcp"}
    )  # there only planning calls wait
    steps = [f"S{number:03} pending: Step {number}" for number in range(1, 13)]
    calls: list[Call] = [setup("Many")]
    for each in steps:
        calls += [("planning_add_step", {"steps": [{"title": each.partition(": ")[2]}]}), *looks]
    marks = [mark(each[:4]) for each in steps[:-1]]
    answers = entry.play(stored, [calls, marks], [looking]).answers
    ids = [f"call_{number}" for number in range(1, len([*calls, *marks]) + 1)]
    assert [(each.call_id, each.success) for each in answers] == [(each, True) for each in ids]
    assert [each.text for each in answers if each.text in steps] == steps * len(looks)
    done = [each.replace("pending", "done") for each in steps[:-1]]
    assert text_of(stored).splitlines()[1:] == [*done, steps[-1]]


@promise("identity")
@pytest.mark.parametrize("call_id", ["x" * 500, "\xe4\n1"], ids=["long", "not printable"])
def test_an_id_that_no_event_can_hold_is_replaced_and_answered_as_is(entry: EntryPoint, call_id: str) -> None:
    session = Session()
    talk = play(entry.agent(session), [[SHOP]], ids=repeat(call_id))
    assert talk.answers == [Answer(call_id, True, SET)]
    digest = f"sha256:{sha256(call_id.encode()).hexdigest()}"
    assert [each.call_id for each in session.select_all(ToolInvoked)] == [digest]


@promise("repeated ids")
def test_a_provider_that_gives_all_calls_the_same_id_loses_none(entry: EntryPoint) -> None:
    session = Session()
    add: Call = ("planning_add_step", {"steps": ["Paint it"]})
    turns = [[SHOP], [add], [add], [mark("S001")], [mark("S002")]]
    answers = play(entry.agent(session), turns, ids=chain(["call_1"], repeat("call_0"))).answers
    assert [each.success for each in answers] == [True] * 5
    assert plans_of(session) == [(2, 4)]


@promise("same id in a turn")
def test_calls_of_one_turn_with_the_same_id_are_all_made(entry: EntryPoint) -> None:
    session = Session()
    play(entry.agent(session), [[SHOP], [mark("S001"), mark("S002")]], ids=repeat("call_0"))
    assert plans_of(session) == [(2, 2)]


@promise("numbered ids")
def test_a_second_conversation_whose_server_numbers_its_calls_alike_gets_its_own_answers(
    entry: EntryPoint, stored: Session
) -> None:
    runs: list[int] = []

    def run(_arguments: object) -> str:
        runs.append(0)
        return f"Run {len(runs)}"

    tools = [Tool("run_tests", "Run the tests.", run, parameters={"type": "object"})]
    turns: list[list[Call]] = [[READ], [("run_tests", {})], [mark("S001")]]
    first = entry.play(stored, turns, tools).texts
    stored.dispatch(MarkStep("S001", "in_progress"))
    second = entry.play(stored, turns, tools).texts
    assert first == [OPEN, "Run 1", DONE]
    assert second == [OPEN.replace("S001 pending", "S001 in_progress"), "Run 2", DONE]
    assert plans_of(stored) == [(1, 2)]


# Sessions


@promise("own tools")
def test_custom_tools_know_the_session_and_the_id_of_their_call(entry: EntryPoint) -> None:
    seen: list[Any] = []

    @tool
    def count(word: str, context: ToolContext) -> int:
        """Count the letters of a word."""
        seen.append((context.session, context.call_id))
        return len(word)

    session = Session()
    answers = entry.play(session, [[("count", {"word": "shop"}), SHOP]], [count]).answers
    assert answers == [Answer("call_1", True, "4"), Answer("call_2", True, SET)]
    assert seen == [(session, "call_1")]


@keeping
def test_a_toolbox_of_the_host_keeps_its_own_tools(entry: EntryPoint) -> None:
    session = Session()
    count = Tool("count", "Count.", lambda _: "4", parameters={"type": "object"})
    assert entry.play(session, [[("count", {}), SHOP]], Toolbox([count], session=session)).texts == ["4", SET]
    assert {each.name for each in session.select_all(ToolInvoked)} == {"count", "planning_setup_plan"}


@promise("users")
@pytest.mark.parametrize("find", [current.get, lambda default=None: default or current.get()])
def test_one_agent_serves_users_at_once(entry: EntryPoint, find: Callable[[], Session | None]) -> None:
    agent, sessions = entry.agent(find), {user: Session() for user in "ABCDEF"}

    async def serve(user: str) -> None:
        current.set(sessions[user])
        await aplay(agent, [[setup(f"Plan of {user}", "One", "Two")], [mark("S001")]])

    async def main() -> None:
        await asyncio.gather(*map(serve, sessions))

    asyncio.run(main())
    assert [text_of(each) for each in sessions.values()] == [
        f"Plan of {user} (active, 1 of 2 done)\nS001 done: One\nS002 pending: Two" for user in sessions
    ]


@promise("no session")
def test_without_a_session_for_the_call_the_model_reads_so(entry: EntryPoint) -> None:
    (answer,) = entry.play(lambda: None, [[SHOP]]).answers
    assert not answer.success
    assert answer.text.removeprefix("planning_setup_plan was not called: ") == "no session for this call"


@promise("news")
def test_two_runs_of_one_name_hear_of_each_other(entry: EntryPoint) -> None:
    session, policy = Session(), PlanPolicy(dependencies=True)
    texts: list[str] = []

    @tool
    def meet() -> str:
        """Let the other agent work, in a thread, where it is not a part of this run."""
        with ThreadPoolExecutor() as pool:
            talk = pool.submit(play, other, [[setup("Open the bar", "Rent a cellar")], [READ]])
            texts.extend(talk.result().texts)
        return "met"

    first = entry.agent(session, [meet], policy)
    has_own_loop = entry.needs == "planning"  # there a toolbox is an agent
    other = entry.agent(session, policy=policy) if has_own_loop else first
    texts.extend(play(first, [[SHOP], [("meet", {})], [mark("S001")], [READ]]).texts)
    bar = "Open the bar (active, 0 of 1 done)\nS001 pending: Rent a cellar"
    assert texts == [
        "Plan set: S001. It replaced a plan with 0 steps done, 2 not done. Next: S001 Rent a cellar",
        bar,
        SET,
        "met",
        "Since you last looked: New plan: Open the bar. Added S001. S001 done. Plan completed.",
        bar.replace("pending", "done").replace("0 of 1", "1 of 1").replace("active", "completed"),
    ]


# Stores


@promise("restart")
def test_another_process_resumes_the_conversation_with_the_plan_of_the_store(
    entry: EntryPoint, opens: Callable[[], Session], path: Path
) -> None:
    after = play(entry.agent(opens()), [[SHOP, mark("S001", "in_progress")]]).after
    with closing(SqliteStore(path)) as store:
        session = Session(session_id="shop", store=store)
        agent = entry.agent(session)
        assert plans_of(session) == [(0, 2)]  # it can be read at once
        talk = play(agent, [[mark("S001")], [READ]], after)
        assert talk.texts == [DONE, HALF]
        assert plans_of(session) == [(1, 2)]


@promise("opened per call")
@pytest.mark.parametrize(
    "kind", ["one file", "opened files", pytest.param("server", marks=pytest.mark.postgres)]
)
def test_a_session_opened_for_each_call_keeps_its_plan(entry: EntryPoint, path: Path, kind: str) -> None:
    with ExitStack() as stack:

        def store() -> Store:
            made = store_for(path.parent) if kind == "server" else SqliteStore(path)
            return stack.enter_context(closing(made))

        shared = None if kind == "opened files" else store()
        agent = entry.agent(lambda: Session(session_id="shop", store=shared or store()))
        first = play(agent, [[READ], [SHOP, mark("S001", "in_progress")], [mark("S001")]])
        assert [each.success for each in first.answers] == [False, True, True, True]
        second = play(agent, [[READ]], first.after)
        assert second.texts == [HALF]
        if "reminder" not in entry.cannot:
            assert [each.last for each in second.requests] == [HALF, HALF]
        session = Session(session_id="shop", store=store())
        register_plan(session)
        assert (text_of(session), rewinds(session)) == (HALF, 0)


@promise("early restart")
@pytest.mark.parametrize("turns", [[], [[SHOP]]], ids=["no call", "a call that could not write"])
def test_a_restart_before_the_plans_first_change_ends_no_conversation(
    entry: EntryPoint, opens: Callable[[], Session], path: Path, turns: list[list[Call]]
) -> None:
    session = opens()
    agent = entry.agent(session)
    with ExitStack() as stack:
        busy(session, path, stack)
        before = play(agent, turns)
    assert [each.success for each in before.answers] == [False] * len(turns)
    assert session.version == 0
    session = opens()
    talk = play(entry.agent(session), [[SHOP], [mark("S001")]], before.after)
    assert (talk.texts, text_of(session), rewinds(session)) == ([SET, DONE], HALF, 0)


@promise("two workers")
def test_two_processes_serve_a_conversation_in_turn(entry: EntryPoint, opens: Callable[[], Session]) -> None:
    here, there = opens(), opens()
    one, other = entry.agent(here), entry.agent(there)
    begun = play(one, []).after
    planned = play(other, [[SHOP]], begun)
    marked = play(one, [[mark("S001")]], planned.after)
    read = play(other, [[READ]], marked.after)
    assert [planned.texts, marked.texts, read.texts] == [[SET], [DONE], [HALF]]
    if entry.needs not in {"planning", "mcp"}:  # there the host refreshes the session
        assert [talk.requests[0].last for talk in (marked, read)] == [OPEN, HALF]
    assert (text_of(there), rewinds(there)) == (HALF, 0)


def busy(_stored: Session, path: Path, stack: ExitStack) -> str:
    stack.enter_context(pytest.MonkeyPatch.context()).setattr(pipeline, "PATIENCE", 0.02)
    other = stack.enter_context(closing(sqlite3.connect(path, isolation_level=None)))
    other.execute("BEGIN IMMEDIATE")
    return (
        "planning_add_step could not write: another worker or program is writing to the store. Call it again."
    )


def full(stored: Session, _path: Path, _stack: ExitStack) -> str:
    assert isinstance(stored.store, SqliteStore)
    connection = stored.store._writer.connected()  # the limit of a connection stands in for a full disk
    connection.execute(f"PRAGMA max_page_count = {connection.execute('PRAGMA page_count').fetchone()[0]}")
    return AWAY.format("planning_add_step")


def gone(stored: Session, path: Path, _stack: ExitStack) -> str:
    assert stored.store is not None
    stored.store.close()
    path.unlink()
    return AWAY.format("planning_add_step")


@promise("store")
@pytest.mark.parametrize("fails", [busy, full, gone])
def test_a_store_that_is_out_of_reach_is_a_failed_call(
    entry: EntryPoint, fails: Callable[[Session, Path, ExitStack], str], stored: Session, path: Path
) -> None:
    agent = entry.agent(stored)
    after = play(agent, [[mark("S001")]]).after
    large: Call = ("planning_add_step", {"steps": [{"title": "Paint it", "details": "x" * 512}] * 50})
    with ExitStack() as stack:
        told = fails(stored, path, stack)
        assert play(agent, [[large]], after).answers == [Answer("call_1", False, told)]
    assert text_of(stored) == HALF


@promise("store")
def test_a_session_that_cannot_be_opened_is_a_failed_call(entry: EntryPoint) -> None:
    def find() -> Session:
        raise StoreError("plans.db is locked")

    talk = entry.play(find, [[SHOP]])
    assert talk.answers == [Answer("call_1", False, AWAY.format("planning_setup_plan"))]
    is_by_hand = entry.needs == "planning"  # there the host is told, by an exception of reminder()
    is_shown = not is_by_hand and "reminder" not in entry.cannot
    assert talk.requests[0].last == ("The plan cannot be read now: plans.db is locked" if is_shown else "")


# Conversations that are not what they were


@promise("truncated")
def test_a_conversation_that_lost_its_beginning_keeps_the_plan(entry: EntryPoint, stored: Session) -> None:
    agent = entry.agent(stored)
    play(agent, [[mark("S001")]])
    talk = play(agent, [[READ]])  # a new conversation is one that lost everything
    assert talk.texts == [HALF]
    assert plans_of(stored) == [(1, 2)]


@promise("foreign")
def test_a_conversation_of_another_session_changes_nothing(entry: EntryPoint, stored: Session) -> None:
    other = Session(session_id="other")
    after = play(entry.agent(other), [[setup("Another")]]).after
    agent = entry.agent(stored)
    if not entry.keeps_position:
        assert play(agent, [[READ]], after).texts == [OPEN]
    else:
        with pytest.raises(VersionError) as caught:
            play(agent, [[READ]], after)
        assert str(caught.value).splitlines()[0] == (
            "the agent's state is of session other, and the session of this call is shop: "
            "let each thread keep its session"
        )
    assert (text_of(stored), text_of(other)) == (OPEN, "Another (active, 0 of 0 done)")


# Conversations that go back


@promise("rewind")
def test_before_the_first_change_there_is_no_plan(entry: EntryPoint, session: Session) -> None:
    agent = entry.agent(session)
    start = play(agent, []).after
    play(agent, [[SHOP]], start)
    assert play(agent, [[READ]], start).texts == [NO_PLAN]
    assert (text_of(session), rewinds(session)) == ("", 1)


@promise("rewind")
@pytest.mark.parametrize("kept", ["in a file", "in memory", "by the conversation"])
def test_another_process_goes_back(entry: EntryPoint, opens: Callable[[], Session], kept: str) -> None:
    def agent() -> Driver:
        return entry.agent(opens() if kept == "in a file" else Session() if kept == "in memory" else None)

    start = play(agent(), [[SHOP]]).after
    ends = [play(agent(), [[mark(each)]], start).after for each in ("S001", "S002")]
    again = agent()
    for after, plan in ((ends[0], HALF), (ends[1], OTHER), (start, OPEN)):
        talk = play(again, [[READ]], after)
        assert (talk.texts, [each.last for each in talk.requests]) == ([plan], [plan, plan])
    assert play(agent(), [[READ]]).texts == [OPEN if kept == "in a file" else NO_PLAN]


@promise("rewind")
@pytest.mark.parametrize("by", ["the host", "another conversation"])
def test_what_others_changed_stays_and_is_read(entry: EntryPoint, session: Session, by: str) -> None:
    agent = entry.agent(session)
    start = play(agent, [[SHOP]]).after
    play(agent, [[mark("S001")]], start)
    if by == "the host":
        session.dispatch(MarkStep("S002", "in_progress"))
    else:
        play(agent, [[mark("S002", "in_progress")]])
    talk = play(agent, [[READ]], start)
    plan = "Open the shop (active, 1 of 2 done)\nS001 done: Rent a room\nS002 in_progress: Buy shelves"
    news = "The plan has changed since your last turn: S001 done. S002 in_progress."
    assert (talk.texts, text_of(session), rewinds(session)) == ([plan], plan, 0)
    assert [each.last for each in talk.requests] == [f"{plan}\n\n{news}", plan]


@promise("rewind")
def test_history_that_is_not_kept_is_no_proof(entry: EntryPoint) -> None:
    session = Session(history=1)
    agent = entry.agent(session)
    start = play(agent, [[SHOP]]).after
    play(agent, [[mark("S001", "in_progress")], [mark("S001")]], start)
    assert play(agent, [[READ]], start).texts == [HALF]


@keeping
@pytest.mark.parametrize("turns", [[[READ]], []], ids=["a call", "no call"])
def test_what_the_host_changed_between_two_runs_is_read_once(
    entry: EntryPoint, session: Session, turns: list[list[Call]]
) -> None:
    agent = entry.agent(session, policy=PlanPolicy())  # ADK keeps what was read only with its plugin
    after = play(agent, [[SHOP]]).after
    session.dispatch(MarkStep("S001", "done"))
    talk = play(agent, turns, after)
    news = "The plan has changed since your last turn: S001 done."
    assert [each.last for each in talk.requests] == [f"{HALF}\n\n{news}", *[HALF] * len(turns)]
    assert [each.last for each in play(agent, [], talk.after).requests] == [HALF]


def test_each_promise_has_a_test() -> None:
    tests = vars(sys.modules[__name__]).values()
    assert {each.promise for each in tests if hasattr(each, "promise")} == {*PROMISES}
