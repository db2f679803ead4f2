"""What holds for a plan through every provider and framework."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest
from frameworks import (
    READ,
    SHOP,
    Answer,
    Call,
    Converse,
    langchain,
    mark,
    plans_of,
    pydantic_ai,
    through_each,
)

from planning import PlanningToolsSection, Toolbox, register_plan
from planning.commands import MarkStep, NewPlanStep, SetupPlan
from planning.integrations.mcp import build_server
from planning.tools import Tool, ToolContext, tool
from session import Session, ToolFailed, ToolInvoked
from session.stores import SqliteStore

SET = "Plan set: S001 to S002. Next: S001 Rent a room"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "plans.db"


@pytest.fixture
def stored(path: Path) -> Iterator[Session]:
    """A session in a file, with a plan, as another process opens it."""
    with closing(SqliteStore(path)) as store:
        session = Session(session_id="run-7", store=store)
        register_plan(session)
        session.dispatch(SetupPlan("Fix the login", (NewPlanStep("Reproduce it"), NewPlanStep("Fix it"))))
    with closing(SqliteStore(path, timeout=0.05)) as store:
        yield Session(session_id="run-7", store=store)


@through_each
def test_calls_of_one_turn_are_all_kept_in_order_with_their_ids_and_the_agents_name(
    converse: Converse,
) -> None:
    session = Session()
    steps = [{"title": f"Step {number}"} for number in range(1, 13)]
    setup: Call = ("planning_setup_plan", {"objective": "Many", "initial_steps": steps})
    answers = converse(session, [[setup, *(mark(f"S{number:03}") for number in range(1, 12))]])
    assert [(each.call_id, each.success) for each in answers] == [
        (f"call_{number}", True) for number in range(1, 13)
    ]
    assert [(each.call_id, each.actor) for each in session.select_all(ToolInvoked)] == [
        (each.call_id, "clerk") for each in answers
    ]
    assert plans_of(session) == [(11, 12)]


@through_each
def test_a_refusal_is_our_text_and_the_model_repairs_it(converse: Converse) -> None:
    session = Session()
    wrong: Call = ("planning_setup_plan", {"goal": 1})
    answers = converse(session, [[("planning_setup", {}), wrong, SHOP], [mark("S07")], [mark("S001")]])
    unknown = answers.pop(0)
    assert (unknown.call_id, unknown.success) == ("call_1", False)
    assert answers == [
        Answer(
            "call_2", False, Toolbox(PlanningToolsSection(session=Session()).tools()).call(*wrong).message
        ),
        Answer("call_3", True, SET),
        Answer(
            "call_4",
            False,
            "Refused, nothing changed. step_id: the plan has no step S07; its steps are S001 to S002",
        ),
        Answer("call_5", True, "S001 done. Next: S002 Buy shelves"),
    ]
    assert [each.call_id for each in session.select_all(ToolFailed)][-1] == "call_4"


@through_each
def test_without_a_session_for_the_call_the_model_reads_so(converse: Converse) -> None:
    (answer,) = converse(lambda: None, [[SHOP]])
    assert not answer.success
    assert answer.text.removeprefix("planning_setup_plan was not called: ") == "no session for this call"


@through_each
def test_custom_tools_know_the_session_and_the_id_of_their_call(converse: Converse) -> None:
    seen: list[Any] = []

    @tool
    def count(word: str, context: ToolContext) -> int:
        """Count the letters of a word."""
        seen.append((context.session, context.call_id))
        return len(word)

    session = Session()
    assert converse(session, [[("count", {"word": "shop"}), SHOP]], [count]) == [
        Answer("call_1", True, "4"),
        Answer("call_2", True, SET),
    ]
    assert seen == [(session, "call_1")]


@pytest.mark.parametrize("converse", [langchain, pydantic_ai])
def test_a_toolbox_of_the_host_keeps_its_own_tools(converse: Converse) -> None:
    @tool
    def count(word: str) -> int:
        """Count the letters of a word."""
        return len(word)

    session = Session()
    answers = converse(session, [[("count", {"word": "shop"}), SHOP]], Toolbox([count], session=session))
    assert answers == [Answer("call_1", True, "4"), Answer("call_2", True, SET)]
    assert {each.name for each in session.select_all(ToolInvoked)} == {"count", "planning_setup_plan"}


current: ContextVar[Session | None] = ContextVar("current", default=None)


@through_each
@pytest.mark.parametrize("find", [current.get, lambda default=None: default or current.get()])
def test_each_call_is_made_in_the_session_that_the_host_returns_for_it(
    converse: Converse, find: Callable[[], Session | None]
) -> None:
    one, other = Session(), Session()
    for session, calls in ((one, [SHOP, mark("S001")]), (other, [SHOP]), (one, [mark("S002")])):
        token = current.set(session)
        converse(find, [calls])
        current.reset(token)
    assert plans_of(one, other) == [(2, 2), (0, 2)]


@through_each
def test_a_second_conversation_whose_server_numbers_its_calls_alike_gets_its_own_answers(
    converse: Converse, stored: Session
) -> None:
    runs: list[int] = []

    def run(_arguments: object) -> str:
        runs.append(0)
        return f"Run {len(runs)}"

    tools = [Tool("run_tests", "Run the tests.", run, parameters={"type": "object"})]
    turns = [[READ], [("run_tests", {})], [mark("S001")]]
    first = [each.text for each in converse(stored, turns, tools)]
    stored.dispatch(MarkStep("S001", "in_progress"))
    second = [each.text for each in converse(stored, turns, tools)]
    plan = "Fix the login (active, 0 of 2 done)\nS001 {}: Reproduce it\nS002 pending: Fix it"
    done = "S001 done. Next: S002 Fix it"
    assert [first, second] == [
        [plan.format("pending"), "Run 1", done],
        [plan.format("in_progress"), "Run 2", done],
    ]
    assert plans_of(stored) == [(1, 2)]


@through_each
def test_a_store_that_is_busy_or_gone_is_a_failed_call(
    converse: Converse, stored: Session, path: Path
) -> None:
    register_plan(stored)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        (busy,) = converse(stored, [[mark("S001")]])
    assert busy == Answer(
        "call_1",
        False,
        "planning_mark_step could not write: another program is writing to the store. Call it again.",
    )
    assert [each.success for each in converse(stored, [[mark("S001")]])] == [True]
    assert plans_of(stored) == [(1, 2)]
    assert stored.store is not None
    stored.store.close()
    path.unlink()
    (gone,) = converse(stored, [[mark("S002")]])
    assert gone.text.startswith("planning_mark_step cannot reach its data now. ")
    assert plans_of(stored) == [(1, 2)]


def by_middleware(session: Session) -> object:
    langchain = pytest.importorskip("planning.integrations.langchain", exc_type=ImportError)
    return langchain.PlanningMiddleware(session)


def by_capability(session: Session) -> object:
    return pytest.importorskip("planning.integrations.pydantic_ai", exc_type=ImportError).Planning(session)


@pytest.mark.parametrize(
    "give",
    [by_middleware, by_capability, lambda session: build_server(session=session)],
    ids=["langchain", "pydantic_ai", "mcp"],
)
def test_a_stored_session_that_is_given_is_readable_at_once(give: Any, stored: Session) -> None:
    give(stored)
    assert plans_of(stored) == [(0, 2)]
