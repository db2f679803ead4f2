"""When a conversation goes back, so does the plan, unless that would lose the work of others.

The table's frameworks whose conversations can go back; what only one of them has is in its own tests.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from frameworks import (
    HALF,
    OPEN,
    OTHER,
    READ,
    SHOP,
    TABLE,
    Call,
    Driver,
    EntryPoint,
    mark,
    play,
    rewinds,
    text_of,
)

from planning import PlanPolicy
from planning.plan.commands import MarkStep
from session import Session

BACK = [each for each in TABLE if "rewind" not in each.cannot]
through = pytest.mark.parametrize("entry", BACK, ids=[each.name for each in BACK])
NO_PLAN = "Refused, nothing changed. no plan yet; call planning_setup_plan first"


@through
def test_before_the_first_change_there_is_no_plan(entry: EntryPoint, session: Session) -> None:
    agent = entry.agent(session)
    start = play(agent, []).after
    play(agent, [[SHOP]], start)
    assert play(agent, [[READ]], start).texts == [NO_PLAN]
    assert (text_of(session), rewinds(session)) == ("", 1)


@through
@pytest.mark.parametrize("kept", ["in a file", "by the conversation"])
def test_another_process_goes_back(entry: EntryPoint, opens: Callable[[], Session], kept: str) -> None:
    def agent() -> Driver:
        return entry.agent(opens() if kept == "in a file" else None)

    start = play(agent(), [[SHOP]]).after
    ends = [play(agent(), [[mark(each)]], start).after for each in ("S001", "S002")]
    for after, plan in ((ends[0], HALF), (ends[1], OTHER), (start, OPEN)):
        assert play(agent(), [[READ]], after).texts == [plan]
    assert play(agent(), [[READ]]).texts == [OPEN if kept == "in a file" else NO_PLAN]


@through
@pytest.mark.parametrize("by", ["the host", "another conversation"])
def test_what_others_changed_since_stays_and_the_model_reads_so(
    entry: EntryPoint, session: Session, by: str
) -> None:
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


@through
def test_history_that_is_not_kept_is_no_proof(entry: EntryPoint) -> None:
    session = Session(history=1)
    agent = entry.agent(session)
    start = play(agent, [[SHOP]]).after
    play(agent, [[mark("S001", "in_progress")], [mark("S001")]], start)
    assert play(agent, [[READ]], start).texts == [HALF]


KEEPS = [each for each in TABLE if each.keeps_position]


@pytest.mark.parametrize("entry", KEEPS, ids=[each.name for each in KEEPS])
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
