"""Tools that are declared once and serve many sessions, and plans that hold them back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, Literal

import pytest
from tool_entries import through

from planning import Plan, PlanningToolsSection, PlanPolicy, Toolbox, ToolValidationError
from planning.plan.commands import ApprovePlan
from planning.suite.tools import planning_tools
from planning.tools import Tool, ToolError, ToolRegistry, execute_tools
from planning.tools.ledger import tool_calls
from session import Session
from session.stores import MemoryStore

current: ContextVar[Session | None] = ContextVar("current", default=None)
current_name: ContextVar[str] = ContextVar("current_name")
SETUP = {"objective": "Fix the login bug", "initial_steps": [{"title": "Reproduce it"}]}


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


@pytest.mark.parametrize("reason", SOURCES)
@pytest.mark.parametrize("index", [5, 6])  # reading the plan, and a tool of the host
def test_without_a_session_every_door_refuses_in_the_same_words(index: int, reason: str) -> None:
    source = SOURCES[reason]
    tool = [*PlanningToolsSection(session=source).tools(), Tool("slow", "Wait.", lambda: "Waited")][index]
    for entry in ("call", "acall"):
        result = through(entry, tool, {}, source)  # type: ignore[arg-type]  # some return no session
        assert (result.success, result.code) == (False, "bad_context")
        assert result.message == f"{tool.name} was not called: {reason}"
    for entry in ("invoke", "ainvoke"):
        with pytest.raises(ToolError) as caught:
            through(entry, tool, {}, source)  # type: ignore[arg-type]  # the same
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
@pytest.mark.parametrize("is_async", [True, False])
def test_a_toolbox_records_in_the_session_that_its_tools_are_bound_to(
    *, is_fixed: bool, is_async: bool
) -> None:
    def kept(*, is_named: bool) -> list[tuple[str, str, str | None]]:
        session = Session()
        current.set(session)
        source = session if is_fixed else current.get
        tools = [slow, *PlanningToolsSection(session=source).tools()]
        box = Toolbox(tools, session=source) if is_named else Toolbox(tools)
        assert box.session is session
        for number, (name, arguments) in enumerate(CALLS):
            context = {"call_id": f"c{number}"}
            if is_async:
                asyncio.run(box.acall(name, arguments, context=context))
            else:
                box.call(name, arguments, context=context)
        with pytest.raises(ToolValidationError):
            box.invoke("planning_mark_step", {"step_id": "S009", "status": "done"})
        return recorded(session)

    slow = Tool("slow", "Wait.", lambda: "Waited")
    expected = [
        ("planning_mark_step", "parameter", None),
        ("slow", "parameter", "c5"),
        ("slow", "success", "c4"),
        ("planning_finish", "unknown_tool", "c3"),
        ("planning_mark_step", "parameter", "c2"),
        ("planning_mark_step", "parameter", "c1"),
        ("planning_setup_plan", "success", "c0"),
    ]
    assert (kept(is_named=False), kept(is_named=True)) == (expected, expected)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("policy", [None, PlanPolicy(approval=True)])
@pytest.mark.parametrize(("name", "arguments"), [*CALLS[:3], ("slow", {}), ("no_tool", {})])
def test_the_session_of_a_call_is_asked_for_once_and_held(
    name: str, arguments: dict[str, Any], policy: PlanPolicy | None, *, is_async: bool
) -> None:
    given: list[Session] = []

    def another() -> Session:
        given.append(Session(session_id=current_name.get()))
        return given[-1]

    tools = PlanningToolsSection(session=another, policy=policy).tools()
    box = Toolbox([*tools, Tool("slow", "Wait.", lambda: "Waited")], session=another)
    current_name.set("caller")
    result = asyncio.run(box.acall(name, arguments)) if is_async else box.call(name, arguments)
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


@pytest.mark.parametrize("source", ["run-7", Session])
def test_what_cannot_return_the_session_of_a_call_is_refused_where_it_is_given(source: Any) -> None:
    for taking in (
        lambda: PlanningToolsSection(session=source),
        lambda: planning_tools(source),
        lambda: Toolbox([], session=source),
    ):
        with pytest.raises(TypeError) as caught:
            taking()
        assert str(caught.value) == f"session must be a Session or return one, got {source!r}"


def test_a_bound_tool_records_its_refusals_however_it_is_called(session: Session) -> None:
    section = PlanningToolsSection(session=session)
    section.tools()[3].execute(step_id="S001", status="done")
    state = {"tool_calls": [{"tool": "planning_mark_step", "args": {}}, {"tool": "other"}]}
    asyncio.run(execute_tools(state, registry=ToolRegistry(section.tools())))
    assert [(line.tool, line.outcome) for line in reversed(tool_calls(session))] == [
        ("planning_mark_step", "parameter"),
        ("planning_mark_step", "parameter"),
        ("other", "unknown_tool"),
    ]


# What a plan that waits for approval holds back: every tool of the toolbox that is not a planning tool

WAITS = "work was not called: the plan waits for approval; end your turn and ask the user to approve it"


def waiting(session: Session, work: Tool | None = None) -> Toolbox:
    section = PlanningToolsSection(session=session, policy=PlanPolicy(approval=True))
    return Toolbox([*section.tools(), work or Tool("work", "Work.", lambda: "worked")], session=session)


@pytest.mark.parametrize("publishes", ["call", "value", "own"])
def test_no_tool_runs_before_the_plan_is_approved_however_it_publishes(
    publishes: Literal["call", "value", "own"],
) -> None:
    made: list[str] = []

    def work(place: str) -> str:
        """Work."""
        made.append(place)
        return "worked"

    session = Session()
    toolbox = waiting(session, Tool(name="work", description="Work.", function=work, publishes=publishes))
    assert toolbox.call("planning_setup_plan", {"objective": "Goal", "initial_steps": ["A"]}).success
    assert toolbox.call("work", {"place": "here"}).message.endswith(WAITS)
    assert toolbox.call("planning_read_plan", {}).success
    session.dispatch(ApprovePlan())
    assert toolbox.call("work", {"place": "there"}).success
    assert made == ["there"]


@pytest.mark.parametrize("is_stored", [False, True])
def test_what_is_refused_inside_a_transaction_says_why(is_stored: bool) -> None:
    session = Session(session_id="run-7", store=MemoryStore() if is_stored else None)
    toolbox = waiting(session)
    assert toolbox.call("planning_setup_plan", {"objective": "Goal"}).success
    with session.transaction() as transaction:
        assert toolbox.call("work", {}).message == WAITS
        transaction.dispatch(ApprovePlan())
        assert toolbox.call("work", {}).message == "worked"
