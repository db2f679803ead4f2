"""A plan goes back with Google ADK's sessions."""

from __future__ import annotations

import asyncio
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("google.adk", reason="needs Google ADK: pip install '.[google-adk]'")

from adk_models import ADA, ScriptedLlm, adk_of, back, go, run_with, said, tail, turn
from frameworks import HALF, OPEN, SHOP, mark, text_of
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.apps import App, ResumabilityConfig
from google.adk.runners import Runner
from google.adk.sessions import DatabaseSessionService, InMemorySessionService
from google.adk.sessions.base_session_service import GetSessionConfig

from planning.integrations.google_adk import PlanningToolset
from planning.plan.commands import MarkStep
from session import Session, SnapshotError, VersionError
from session.stores import SqliteStore


def database(folder: Path) -> DatabaseSessionService:
    return DatabaseSessionService(f"sqlite+aiosqlite:///{folder / 'adk.db'}")


def of_two_runs(session: Session, *more: Any) -> Any:
    """A runner whose first run sets a plan up, and whose second one marks its first step."""
    runs = [turn(SHOP), said(), turn(mark("S001")), said(), *more]
    return run_with(PlanningToolset(session), InMemorySessionService(), *runs)


async def test_runs_are_taken_back_one_after_the_other(stored: Session) -> None:
    last = [turn(mark("S002")), said()]
    runner, model = of_two_runs(stored, *last, said(), said(), *last, said())
    await go(runner)
    second, third = await go(runner), await go(runner)
    for invocation, plan in ((third, HALF), (second, OPEN)):
        await back(runner, invocation)
        await go(runner)
        assert (tail(model.requests[-1]), text_of(stored)) == (plan, plan)
    fourth = await go(runner)
    await back(runner, fourth)
    await go(runner)
    assert text_of(stored) == OPEN


def test_it_goes_back_after_a_restart_with_a_database(tmp_path: Path, path: Path) -> None:
    async def process(*script: Any, taken_back: str | None = None) -> tuple[str, str, str]:
        async with database(tmp_path) as service:
            with closing(SqliteStore(path)) as store:
                session = Session(session_id="run-7", store=store)
                runner, model = run_with(PlanningToolset(session), service, *script)
                if taken_back:
                    await back(runner, taken_back)
                invocation = await go(runner)
                return invocation, tail(model.requests[0]), text_of(session)

    asyncio.run(process(turn(SHOP), said()))
    second, *_ = asyncio.run(process(turn(mark("S001")), said()))
    assert asyncio.run(process(said()))[1:] == (HALF, HALF)
    assert asyncio.run(process(said(), taken_back=second))[1:] == (OPEN, OPEN)


async def test_what_the_host_changed_before_a_run_that_is_taken_back_stays(stored: Session) -> None:
    runner, _ = of_two_runs(stored, said())
    await go(runner)
    stored.dispatch(MarkStep("S002", "in_progress"))
    second = await go(runner)
    await back(runner, second)
    await go(runner)
    assert text_of(stored) == (
        "Open the shop (active, 0 of 2 done)\nS001 pending: Rent a room\nS002 in_progress: Buy shelves"
    )


async def test_what_was_changed_between_runs_that_are_taken_back_stays_with_them(stored: Session) -> None:
    runner, _ = of_two_runs(stored, turn(mark("S002", "blocked")), said(), said())
    await go(runner)
    second = await go(runner)
    stored.dispatch(MarkStep("S002", "in_progress"))
    await go(runner)
    before = text_of(stored)
    await back(runner, second)
    await go(runner)
    assert text_of(stored) == before


async def test_history_that_was_cut_is_no_proof_that_a_run_was_taken_back(stored: Session) -> None:
    runner, model = of_two_runs(stored, said())
    await go(runner)
    second = await go(runner)
    await back(runner, second)
    cut = RunConfig(get_session_config=GetSessionConfig(num_recent_events=1))
    await go(runner, run_config=cut)
    assert text_of(stored) == HALF
    assert tail(model.requests[-1]) == f"{HALF}\n\nThe plan has changed since your last turn: S001 done."


class Failing(InMemorySessionService):
    """Does not take the first answers to calls."""

    fails = True

    async def append_event(self, session: Any, event: Any) -> Any:
        if self.fails and event.get_function_responses():
            self.fails = False
            raise ConnectionError
        return await super().append_event(session, event)


@pytest.mark.filterwarnings("ignore:.EXPERIMENTAL. ResumabilityConfig")
async def test_a_run_that_was_cut_short_is_resumed_and_makes_no_call_twice(stored: Session) -> None:
    model = ScriptedLlm(script=[turn(SHOP, mark("S001")), said()])
    app = App(
        name="shop",
        root_agent=LlmAgent(name="clerk", model=model, tools=[PlanningToolset(stored)]),
        resumability_config=ResumabilityConfig(is_resumable=True),
    )
    runner = Runner(app=app, session_service=Failing())
    with pytest.raises(ConnectionError):
        await go(runner)
    version = stored.version
    events = (await adk_of(runner)).events
    ran = runner.run_async(**ADA, invocation_id=events[0].invocation_id)
    answers = [each.response async for event in ran for each in event.get_function_responses()]
    assert answers == [
        {"result": "Plan set: S001 to S002. Next: S001 Rent a room"},
        {"result": "S001 done. Next: S002 Buy shelves"},
    ]
    assert (stored.version, text_of(stored)) == (version, HALF)


async def test_what_a_run_that_was_cut_short_did_stays_when_a_later_one_is_taken_back(
    stored: Session,
) -> None:
    script = [turn(mark("S001")), turn(mark("S002")), said(), said()]
    service = Failing()
    runner, _ = run_with(PlanningToolset(stored), service, turn(SHOP), said(), *script)
    service.fails = False
    await go(runner)
    service.fails = True
    with pytest.raises(ConnectionError):
        await go(runner)
    await back(runner, await go(runner))
    await go(runner)
    assert text_of(stored) == HALF


async def test_runs_that_a_rewind_of_a_rewind_brings_back_keep_their_changes(stored: Session) -> None:
    runner, model = of_two_runs(stored, turn(mark("S002")), said(), said(), said())
    await go(runner)
    second, third = await go(runner), await go(runner)
    await back(runner, second)
    await go(runner)
    assert text_of(stored) == OPEN
    await back(runner, third)
    await go(runner)
    assert (text_of(stored), tail(model.requests[-1])) == (HALF, HALF)


@pytest.mark.parametrize(
    ("position", "error", "message"),
    [
        (
            "S001",
            SnapshotError,
            "planning in the agent's state is not a position of a session, but 'S001': remove it, or go back "
            "to an earlier checkpoint",
        ),
        (
            {"session_id": "other", "since": "2026-11-24", "version": 1},
            VersionError,
            "the agent's state is of session other, and the session of this call is shop: let each thread "
            "keep its session",
        ),
    ],
)
async def test_a_position_of_something_else_ends_the_run_before_the_model_is_asked(
    position: Any, error: type[Exception], message: str, stored: Session
) -> None:
    service = InMemorySessionService()
    await service.create_session(app_name="shop", **ADA, state={"planning:position": position})
    runner, model = run_with(PlanningToolset(stored), service, turn(SHOP), said())
    with pytest.raises(error) as raised:
        await go(runner)
    assert (str(raised.value), model.requests, stored.version) == (message, [], 0)
