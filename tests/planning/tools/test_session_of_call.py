"""The session of a call: whose it is, when a plan holds calls back, and in which thread its store is used."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from contextvars import ContextVar
from itertools import product
from pathlib import Path
from typing import Any, Literal
from unittest.mock import Mock, call

import pytest
from tool_entries import enter, in_async, through

from planning import Plan, PlanningToolsSection, PlanPolicy, Toolbox, ToolValidationError
from planning.plan.commands import ApprovePlan
from planning.suite.tools import planning_tools
from planning.tools import Tool, ToolError, ToolRegistry, execute_tools, tool
from planning.tools.ledger import tool_calls
from session import Session, StoreError
from session.pool import Pool
from session.stored import Stored
from session.stores import MemoryStore, SqliteStore

current: ContextVar[Session | None] = ContextVar("current", default=None)
current_name: ContextVar[str] = ContextVar("current_name")
SETUP = {"objective": "Fix the login bug", "initial_steps": [{"title": "Reproduce it"}]}
SLOW = Tool("slow", "Wait.", lambda: "Waited")


@pytest.fixture(autouse=True)
def _no_session() -> Iterator[None]:
    token = current.set(None)
    yield
    current.reset(token)


SOURCES: dict[str, Callable[[], Any]] = {
    "no session for this call": current.get,
    "the session of this call was not found: KeyError": lambda: dict[str, Any]()["session"],
    "the session of this call must be a Session, got int": lambda: 5,
}


POLICIES = [None, PlanPolicy(dependencies=True), PlanPolicy(evidence="required", verify=lambda *_: True)]


@pytest.mark.parametrize("reason", SOURCES)
@pytest.mark.parametrize("policy", POLICIES, ids=["none", "dependencies", "verify"])
@pytest.mark.parametrize("index", [3, 5, 6])  # marking a step, reading the plan, and a tool of the host
def test_without_a_session_every_door_refuses(index: int, policy: PlanPolicy | None, reason: str) -> None:
    source: Any = SOURCES[reason]
    tool = [*PlanningToolsSection(session=source, policy=policy).tools(), SLOW][index]
    arguments = {"step_id": "S001", "status": "done"} if index == 3 else {}
    for entry in ("call", "acall"):
        result = through(entry, tool, arguments, source)
        message = f"{tool.name} was not called: {reason}"
        assert (result.success, result.code, result.message) == (False, "bad_context", message)
    for entry in ("invoke", "ainvoke"):
        with pytest.raises(ToolError) as caught:
            through(entry, tool, arguments, source)
        assert str(caught.value) == reason


def test_a_session_is_not_prepared_within_its_own_transaction() -> None:
    current.set(session := Session())
    section = PlanningToolsSection(session=current.get, policy=PlanPolicy(evidence="required"))
    toolbox = Toolbox(section.tools(), session=current.get)
    with session.transaction():
        assert toolbox.call("planning_setup_plan", SETUP).message == (
            "planning_setup_plan was not called: the session of this call has an open transaction; make its "
            "first call outside of one"
        )
    assert toolbox.call("planning_setup_plan", SETUP).success


def recorded(session: Session) -> list[tuple[str, str, str | None]]:
    """What the session has of each call: the tool, how it ended, and its id."""
    return [(call.tool, call.outcome, call.call_id) for call in tool_calls(session)]


CALLS: list[tuple[str, dict[str, Any]]] = [
    ("planning_setup_plan", SETUP),
    ("planning_mark_step", {"step_id": "S009", "status": "done"}),
    ("planning_mark_step", {"step_id": "S001", "status": "dun"}),
    ("planning_finish", {}),
    ("slow", {}),
    ("slow", {"sec": 1}),
]


@pytest.mark.parametrize("is_fixed", [True, False])
@pytest.mark.parametrize("entry", ["call", "acall"])
def test_a_toolbox_records_in_the_session_that_its_tools_are_bound_to(entry: str, *, is_fixed: bool) -> None:
    def kept(*, is_named: bool) -> list[tuple[str, str, str | None]]:
        session = Session()
        current.set(session)
        source = session if is_fixed else current.get
        tools = [SLOW, *PlanningToolsSection(session=source).tools()]
        box = Toolbox(tools, session=source) if is_named else Toolbox(tools)
        assert box.session is session
        for number, (name, arguments) in enumerate(CALLS):
            enter(entry, box, name, arguments, {"call_id": f"c{number}"})
        with pytest.raises(ToolValidationError):
            box.invoke("planning_mark_step", {"step_id": "S009", "status": "done"})
        return recorded(session)

    outcomes = ["success", "parameter", "parameter", "unknown_tool", "success", "parameter"]
    expected = [("planning_mark_step", "parameter", None)] + [
        (CALLS[number][0], outcomes[number], f"c{number}") for number in reversed(range(6))
    ]
    assert (kept(is_named=False), kept(is_named=True)) == (expected, expected)


@pytest.mark.parametrize("entry", ["call", "acall"])
@pytest.mark.parametrize("policy", [None, PlanPolicy(approval=True)])
@pytest.mark.parametrize(("name", "arguments"), [*CALLS[:3], ("slow", {}), ("no_tool", {})])
def test_the_session_of_a_call_is_asked_for_once_and_held(
    name: str, arguments: dict[str, Any], policy: PlanPolicy | None, entry: str
) -> None:
    given: list[Session] = []

    def another() -> Session:
        given.append(Session(session_id=current_name.get()))
        return given[-1]

    tools = PlanningToolsSection(session=another, policy=policy).tools()
    box = Toolbox([*tools, SLOW], session=another)
    current_name.set("caller")
    result = enter(entry, box, name, arguments)
    assert [(each.session_id, recorded(each)) for each in given] == [
        ("caller", [(name, result.code or "success", None)])
    ]
    assert (given[0].select_latest(Plan) is not None) == (name == "planning_setup_plan")


def test_a_toolbox_of_two_sessions_is_refused() -> None:
    first, second = Session(), Session()
    sections = [PlanningToolsSection(session=each) for each in (first, first, second, current.get)]
    of_first, again, of_second, of_call = [section.tools() for section in sections]
    assert Toolbox([*of_first[:3], *again[3:]]).session is first
    for others in (of_second, of_call):
        with pytest.raises(
            ValueError,
            match=r"^planning_setup_plan and planning_mark_step are bound to different sessions; "
            r"make one Toolbox for each session$",
        ):
            Toolbox([*of_first[:3], *others[3:]])
        registry, state = ToolRegistry([*of_first[:3], *others[3:]]), {"tool_calls": [{"tool": "other"}]}
        (told,) = asyncio.run(execute_tools(state, registry=registry))["tool_results"].values()
        assert told["error"] == "Unknown tool: other"


def test_what_cannot_return_the_session_of_a_call_is_refused_where_it_is_given() -> None:
    section = lambda source: PlanningToolsSection(session=source)  # noqa: E731 - as the two others
    takers: list[Any] = [lambda source: Toolbox([], session=source), planning_tools, section]
    for take, source in [*product(takers, ("x" * 300, Session)), (section, None)]:
        with pytest.raises(TypeError) as caught:
            take(source)
        assert str(caught.value) == f"session must be a Session or return one, got {source!r}"[:200]


def test_a_bound_tool_records_its_refusals_however_it_is_called(session: Session) -> None:
    section = PlanningToolsSection(session=session)
    section.tools()[3].execute(step_id="S001", status="done")
    state = {"tool_calls": [{"tool": "planning_mark_step", "args": {}}, {"tool": "other"}]}
    asyncio.run(execute_tools(state, registry=ToolRegistry(section.tools())))
    lines = [("other", "unknown_tool"), *[("planning_mark_step", "parameter")] * 2]
    assert [(line.tool, line.outcome) for line in tool_calls(session)] == lines
    gone = PlanningToolsSection(session=Mock(side_effect=StoreError("gone")))
    assert gone.tools()[3].execute(step_id="S001", status="done")["error"] == "gone"


# What a plan that waits for approval holds back: every tool of the toolbox that is not a planning tool

WAITS = "work was not called: the plan waits for approval; end your turn and ask the user to approve it"


@pytest.mark.parametrize("is_stored", [False, True])
@pytest.mark.parametrize("publishes", ["call", "value", "own"])
def test_no_tool_runs_before_approval(publishes: Literal["call", "value", "own"], is_stored: bool) -> None:
    act = Mock(return_value="worked")
    work = Tool("work", "Work.", act, publishes=publishes)
    parent = PlanningToolsSection(session=Session(), policy=PlanPolicy(approval=True)).session
    session = Session(session_id="run-7", store=MemoryStore() if is_stored else None, parent=parent)
    section = PlanningToolsSection(session=session, policy=PlanPolicy(approval=True))
    toolbox = Toolbox([*section.tools(), work], session=session)
    assert toolbox.call("planning_setup_plan", {"objective": "Goal", "initial_steps": ["A"]}).success
    assert toolbox.call("work", {"place": "here"}, context={}).message == WAITS
    assert toolbox.call("planning_read_plan", {}).success
    with session.transaction() as transaction:
        assert toolbox.call("work", {"place": "here"}).message == WAITS
        transaction.dispatch(ApprovePlan())
        assert toolbox.call("work", {"place": "there"}).message == "worked"
    assert act.call_args_list == [call(place="there")]


# In async code nothing that a call does with a store happens in the thread of the event loop

MARK = {"step_id": "S001", "status": "done"}
ANN = {"to": "Ann"}
EVERY_CALL: list[tuple[str, object, object]] = [  # with the key of each
    ("planning_setup_plan", SETUP, None), ("planning_read_plan", {}, None), ("nobody", {}, "0"),
    *[("planning_mark_step", MARK, "1")] * 2,
    *(("planning_mark_step", wrong, None) for wrong in ({**MARK, "status": "ended"}, "{no json")),
    *[("send", ANN, "2")] * 2, ("send", {}, None), ("send", ANN, ["no key"]),
    ("asend", ANN, "3"), ("once", ANN, "4"), *[("private", ANN, "5")] * 2, ("fail", {}, None),
]  # fmt: skip


class Watched(SqliteStore):
    """Knows in which threads it was used."""

    threads: set[int]

    def _explaining(self, timeout: float | None = None) -> Any:
        vars(self).setdefault("threads", set()).add(threading.get_ident())
        return super()._explaining(timeout)


def send(to: str) -> str:
    return f"Sent to {to}"


asend = in_async(send)


@pytest.mark.parametrize("policy", [None, PlanPolicy(approval=True, evidence="required")])
@pytest.mark.parametrize("is_fixed", [True, False])
def test_no_call_uses_a_store_in_the_loop(tmp_path: Path, is_fixed: bool, policy: PlanPolicy | None) -> None:
    store = Watched(tmp_path / "plans.db")
    session = Session(session_id="run-7", store=store)
    source = session if is_fixed else lambda: session
    tools = [
        *PlanningToolsSection(session=source, policy=policy).tools(),
        Tool("send", "Send.", send),
        Tool("asend", "Send.", asend),
        Tool("once", "Send.", send, idempotent=False),
        Tool("private", "Send.", send, returns_private_data=True),
        Tool("fail", "Fail.", lambda: 1 // 0),
    ]
    toolbox = Toolbox(tools, session=source)

    async def scene() -> list[bool]:
        found = []
        for name, arguments, key in EVERY_CALL:
            store.threads.clear()
            given: Any = arguments
            await toolbox.acall(name, given, context={"idempotency_key": key})
            found.append(threading.get_ident() not in store.threads)
        with pytest.raises(ToolValidationError):
            await toolbox.ainvoke("planning_mark_step", {})
        return found

    assert asyncio.run(scene()) == [True] * len(EVERY_CALL)
    assert session.version > 10


def test_a_call_inside_the_callers_own_transaction_is_a_part_of_it(tmp_path: Path) -> None:
    session = Session(session_id="run-7", store=SqliteStore(tmp_path / "plans.db"))
    toolbox = Toolbox([*PlanningToolsSection(session=session).tools(), Tool("asend", "Send.", asend)])
    calls: list[Any] = [("planning_setup_plan", SETUP), ("asend", ANN), ("planning_mark_step", {})]

    async def scene() -> list[str]:
        with session.transaction():
            return [(await toolbox.acall(*each)).message for each in calls]

    said = asyncio.run(asyncio.wait_for(scene(), 60))
    assert said[:2] == ["Plan set: S001. Next: S001 Reproduce it", "Sent to Ann"]
    assert said[2].startswith("Refused, nothing changed. 2 problems:")
    assert (session.version, [type(event).__name__ for event in session.history()[0].events]) == (
        1,
        ["ToolInvoked", "ToolInvoked", "ToolFailed"],
    )


@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize("key", [None, "k"])
def test_a_call_that_is_begun_and_closed_ends_quietly_and_leaves_nothing_locked(
    opened: Callable[..., SqliteStore], steps: int, key: str | None
) -> None:
    async def work(a: int) -> int:
        await asyncio.sleep(0)
        return a

    async def main() -> None:
        session = Session(session_id="run", store=opened())
        box = Toolbox([*PlanningToolsSection(session=session).tools(), tool(work)], session=session)
        await box.acall("planning_setup_plan", {"objective": "o", "initial_steps": ["x"]})
        mark = ("planning_mark_step", {"step_id": "S001", "status": "done"})
        for name, arguments in (mark, ("work", {"a": 1}), ("nothing", {})):
            context = None if key is None else {"idempotency_key": f"{key} {name}"}
            begun = box.acall(name, arguments, context=context)
            with suppress(StopIteration):
                for _ in range(steps):
                    waited: Any = begun.send(None)
                    while waited is not None and not waited.done():
                        await asyncio.sleep(0.001)
            begun.close()
            again = await box.acall(name, arguments, context=context)
            assert again.success is (name != "nothing")
        assert session.refresh() == session.version

    asyncio.run(main())


@pytest.mark.parametrize("name", ["send", "asend"])
def test_a_call_that_was_carried_out_and_not_recorded_says_so(
    opened: Callable[..., SqliteStore], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    session = Session(session_id="run-7", store=opened())
    tools = [Tool("send", "Send.", send, blocking=False), Tool("asend", "Send.", asend)]
    toolbox = Toolbox(tools, session=session)

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("session.pool.POOL", Pool())  # one without threads
    monkeypatch.setattr("threading.Thread.start", refuse)
    assert asyncio.run(toolbox.acall(name, {"to": "Ann"})).message == (
        f"{name} ran, but the session could not store its result. Check what it did before you call it again."
    )
    monkeypatch.undo()
    assert session.version == 0


@pytest.mark.parametrize("entry", ["acall", "ainvoke"])
def test_calls_at_once_on_one_session_are_made_in_order_whichever_store_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    begun = list[str]()
    slow = threading.Event()

    async def made(name: str, arguments: Mapping[str, object]) -> str:
        session = Session(session_id="shop", store=SqliteStore(tmp_path / "plans.db"))
        toolbox = Toolbox(PlanningToolsSection(session=session).tools())
        return str((await getattr(toolbox, entry)(name, arguments)).message)

    def begin(stored: Any, timeout: float | None) -> None:
        begun.append("begun")
        if len(begun) == 1:
            slow.wait(0.1)  # another thread could go ahead of the first call
        whole(stored, timeout)

    whole = Stored.begin
    monkeypatch.setattr(Stored, "begin", begin)

    async def main() -> list[str]:
        return [*await asyncio.gather(made("planning_setup_plan", SETUP), made("planning_mark_step", MARK))]

    assert asyncio.run(main()) == ["Plan set: S001. Next: S001 Reproduce it", "S001 done. Plan completed."]
