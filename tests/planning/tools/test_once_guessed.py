"""Keys made of a provider's ids, which are guesses, and the order of the calls of a turn."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import count
from pathlib import Path
from threading import Barrier
from typing import Any
from unittest.mock import Mock

import pytest
from tool_entries import SCHEMA, counting, enter, in_threads, reopener

from planning import Plan, PlanningToolsSection, Toolbox
from planning.tools import Tool, ToolResult, once
from planning.tools.once import LastUsed, RepeatedIds, Turn, TurnOrder, guessed_key
from session import Session, SessionBusyError, SessionEvent, StoreError, ToolInvoked
from session.stores import SqliteStore

SETUP = {"objective": "Fix the login bug", "initial_steps": ["Reproduce it"]}


@pytest.fixture(params=["memory", "a memory store", "a file"])
def reopened(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], Session]:
    return reopener(request.param, tmp_path)


def guess(call_id: str = "call_0") -> dict[str, Any]:
    """The context of a call whose ids are those of every turn."""
    return {"call_id": call_id, "idempotency_key": guessed_key("the turn", call_id)}


def mark(status: str) -> tuple[str, dict[str, Any]]:
    return "planning_mark_step", {"step_id": "S001", "status": status}


def planned(session: Session, *tools: Tool) -> Toolbox:
    section = PlanningToolsSection(session=session)
    toolbox = Toolbox([*section.tools(), *tools], session=session)
    if session.select_latest(Plan) is None:
        toolbox.call("planning_setup_plan", SETUP)
    return toolbox


def call(
    box: Toolbox, name: str, arguments: Any, call_id: str = "call_0", *, is_async: bool = False
) -> ToolResult:
    return enter("acall" if is_async else "call", box, name, arguments, guess(call_id))


@pytest.mark.parametrize("is_async", [False, True])
def test_a_mark_made_again_after_another_is_made(reopened: Callable[[], Session], is_async: bool) -> None:
    for status in ("in_progress", "blocked", "in_progress", "in_progress", "blocked", "blocked"):
        session = reopened()
        assert call(planned(session), *mark(status), is_async=is_async).success
        plan = session.select_latest(Plan)
        assert plan is not None
        assert plan.steps[0].status == status
    assert len(reopened().select_all(RepeatedIds)) == 1


DIFFERENT: dict[str, Any] = {
    "other arguments": ("send", {"to": "Bob"}),
    "another tool": mark("blocked"),
    "arguments that do not decode": ("send", {"to": 5}),
    "a status that is refused": mark("bogus"),
    "an unknown tool": ("sned", {"to": "Ann"}),
}


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("different", DIFFERENT)
def test_any_different_call_shows_that_the_ids_are_repeated(
    reopened: Callable[[], Session], different: str, is_async: bool
) -> None:
    tool, made = counting()

    def said(name: str, arguments: Any, call_id: str = "call_0") -> str:
        return call(planned(reopened(), tool), name, arguments, call_id, is_async=is_async).message

    ann = ("send", {"to": "Ann"})
    assert [said(*ann), said(*ann), said(*ann, "call_1")] == ["Sent 1 to Ann"] * 2 + ["Sent 2 to Ann"]
    said(*DIFFERENT[different])
    count = 3 if different == "other arguments" else 2
    assert len(made) == count
    assert [said(*ann), said(*ann, "call_1")] == [f"Sent {count + 1} to Ann", f"Sent {count + 2} to Ann"]


def test_a_rewind_does_not_take_back_that_the_ids_are_repeated(reopened: Callable[[], Session]) -> None:
    tool, made = counting()
    session = reopened()
    box = planned(session, tool)
    call(box, "send", {"to": "Ann"})
    version = session.version
    call(box, "send", {"to": "Bob"})
    session.rewind(version)
    call(box, "send", {"to": "Ann"})
    assert made == ["Ann", "Bob", "Ann"]


def test_after_a_rewind_and_in_a_fork_guessed_keys_are_free_again(reopened: Callable[[], Session]) -> None:
    tool, made = counting()
    session = reopened()
    box = planned(session, tool)
    version = session.version
    box.call("send", {"to": "Ann"}, context=guess())
    fork, whole = session.fork(version), session.fork()
    session.rewind(version)
    for each in (session, session, fork, fork, whole, whole):
        call(Toolbox([tool], session=each), "send", {"to": "Bob"})
    assert made == ["Ann", "Bob", "Bob", "Bob", "Bob"]
    assert [len(each.select_all(RepeatedIds)) for each in (session, fork, whole)] == [0, 0, 1]


def test_a_key_of_the_host_stays_strict_beside_repeated_ids(reopened: Callable[[], Session]) -> None:
    tool, made = counting()
    session = reopened()
    box = planned(session, tool)
    for to in ("Ann", "Bob", "Ann"):
        box.call("send", {"to": to}, context=guess())
    own = {"idempotency_key": str(guessed_key("the turn", "a call of the host"))}
    answers = [box.call("send", {"to": to}, context=own) for to in ("Eve", "Eve", "Joe")]
    assert [each.message for each in answers] == [
        *["Sent 4 to Eve"] * 2,
        "send was not called: it has the key of an earlier call with other arguments. Send it as a new call.",
    ]
    assert made == ["Ann", "Bob", "Ann", "Eve"]


@pytest.mark.parametrize("is_private", [False, True])
def test_a_call_that_was_not_made_has_no_effect(reopened: Callable[[], Session], is_private: bool) -> None:
    send = Mock(side_effect=[ConnectionError, "Sent", ConnectionError])
    options: Any = {"parameters": SCHEMA, "idempotent": False, "returns_private_data": is_private}
    tool = Tool("send", "Send.", send, **options)
    names = ("Ann", "Ann", "Bob", "Ann")
    said = [call(planned(reopened(), tool), "send", {"to": name}).message for name in names]
    assert said[1:3] == [
        "send may have taken effect: this call was begun before, and its result is not known. Check what it "
        "did before you call it again.",
        "Sent",
    ]
    assert [each.args[0]["to"] for each in send.call_args_list] == ["Ann", "Bob", "Ann"]


def test_private_arguments_are_compared_not_kept(tmp_path: Path, opened: Callable[[], SqliteStore]) -> None:
    tool, made = counting(returns_private_data=True)

    def send(to: str) -> str:
        session = Session(session_id="run-7", store=opened())
        return call(Toolbox([tool], session=session), "send", {"to": to}).message

    refused = (
        "send was not called: it repeats an earlier call, whose private result is not kept. Make a new call "
        "if you need it."
    )
    answers = [send(to) for to in ("Zq4711", "Zq4711", "Bob", "Zq4711")]
    assert answers == ["Sent 1 to Zq4711", refused, "Sent 2 to Bob", "Sent 3 to Zq4711"]
    assert made == ["Zq4711", "Bob", "Zq4711"]
    assert all(b"Zq4711" not in each.read_bytes() for each in tmp_path.iterdir())


def test_the_events_of_a_guess_have_its_key_as_plain_text() -> None:
    session = Session()
    call(Toolbox([counting()[0]], session=session), "send", {"to": "Ann"})
    (event,) = session.select_all(ToolInvoked)
    assert (type(event.idempotency_key), len(str(event.idempotency_key))) == (str, 71)
    assert event.fingerprint == "DXBpR8qrQeqTXiBp"  # or a later release would not know the call


@pytest.mark.parametrize("error", [StoreError("gone"), SessionBusyError("held")])
def test_what_cannot_be_noted_changes_no_call(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    box, publish = Toolbox([counting()[0]], session=Session()), Session.publish

    def lose(session: Session, event: SessionEvent, **options: Any) -> None:
        if isinstance(event, RepeatedIds):
            raise error
        publish(session, event, **options)

    monkeypatch.setattr(Session, "publish", lose)
    said = [call(box, "send", {"to": to}).message for to in ("Ann", "Bob")]
    assert said == ["Sent 1 to Ann", "Sent 2 to Bob"]
    monkeypatch.setattr(Session, "find_call", Mock(side_effect=StoreError("gone")))
    assert call(box, "send", {"to": 5}).code == "parameter"


def test_stores_keep_the_name_that_the_event_had_first(path: Path, opened: Callable[[], SqliteStore]) -> None:
    for status in ("in_progress", "blocked"):
        planned(Session(session_id="run-7", store=opened())).call(*mark(status), context=guess())
    assert b"planning.tools.repeats:RepeatedIds" in Path(f"{path}-wal").read_bytes()
    session = Session(session_id="run-7", store=opened())
    planned(session)
    assert session.select_latest(RepeatedIds) is not None


# Calls of one turn: the key of each, and the order in which they run

IDS = [f"c{number}" for number in range(8)]


@pytest.mark.parametrize(
    ("name", "calls", "has_key"),
    [
        ("turn", ["a", "b"], True),
        ("turn", ["a", "b", "a"], False),
        ("turn", ["b"], False),
        (None, ["a"], False),
        ("", ["a"], False),
    ],
)
def test_a_call_has_a_key_if_its_ids_name_no_other(name: str | None, calls: list[str], has_key: bool) -> None:
    nameless: list[Any] = [None, "", 5]
    assert [guessed_key("turn", each) for each in nameless] == [None] * 3
    assert Turn(name, calls).key_of("a") == (guessed_key("turn", "a") if has_key else None)


def run_in(order: TurnOrder, call_id: str, earlier: list[str], done: list[str]) -> None:
    with order.place_of("turn", call_id, earlier) as pauses:
        for seconds in pauses:
            time.sleep(seconds)
        done.append(call_id)


def test_threads_run_in_order_of_their_calls() -> None:
    order, done, barrier = TurnOrder(), list[str](), Barrier(len(IDS))

    def run(place: int) -> None:
        barrier.wait()
        run_in(order, IDS[place], IDS[:place], done)

    in_threads([partial(run, place) for place in reversed(range(len(IDS)))])
    assert done == IDS


def test_a_call_that_fails_lets_the_next_one_begin() -> None:
    order, done = TurnOrder(), list[str]()
    with pytest.raises(KeyError), order.place_of("turn", "a", []):
        raise KeyError("a")
    run_in(order, "b", ["a"], done)
    assert done == ["b"]


def test_an_earlier_call_that_never_comes_is_waited_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(once, "_GRACE", 0.01)
    done = list[str]()
    run_in(TurnOrder(), "b", ["a"], done)
    assert done == ["b"]


def test_what_belongs_to_a_key_is_made_once_and_forgotten_when_others_were_used_since() -> None:
    last, numbers = LastUsed[int](2), count()
    assert [last.of(key, lambda: next(numbers)) for key in "abacaba"] == [0, 1, 0, 2, 0, 3, 0]
