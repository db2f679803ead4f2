"""A call that must not be made twice: its repeat is refused when its result is not known."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from repeat_calls import SCHEMA, by, counting

from planning import Toolbox
from planning.tools import Tool
from planning.tools.rate_limit import RateLimiter
from session import Session
from session.stores import SqliteStore, Store, StoreError

REFUSED = (
    "send may have taken effect: this call was begun before, and its result is not known. Check what it did "
    "before you call it again."
)


def killed(store: Store, **options: Any) -> Iterator[Toolbox]:
    """The toolbox of a process that is killed while it sends, and that of the next one."""
    session = Session(session_id="run-7", store=store)

    def send(_arguments: dict[str, str]) -> str:
        raise KeyboardInterrupt

    yield Toolbox([Tool("send", "Send.", send, parameters=SCHEMA, **options)], session=session)
    tool, _ = counting(**options)
    yield Toolbox([tool], session=Session(session_id="run-7", store=store))


def test_a_call_whose_result_was_lost_is_made_again(tmp_path: Path) -> None:
    first, second = killed(SqliteStore(tmp_path / "plans.db"))
    with pytest.raises(KeyboardInterrupt):
        first.call("send", {"to": "Ann"}, context=by("1"))
    assert second.call("send", {"to": "Ann"}, context=by("1")).message == "Sent 1 to Ann"


@pytest.mark.parametrize("private", [False, True])
def test_but_not_where_it_must_not_be_made_twice(tmp_path: Path, private: bool) -> None:
    options = {"idempotent": False, "returns_private_data": private}
    first, second = killed(SqliteStore(tmp_path / "plans.db"), **options)
    with pytest.raises(KeyboardInterrupt):
        first.call("send", {"to": "Ann"}, context=by("1"))
    again = second.call("send", {"to": "Ann"}, context=by("1"))
    assert (again.success, again.message) == (False, REFUSED)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("is_private", [False, True])
def test_a_call_that_was_stopped_before_it_began_can_be_made_later(
    tmp_path: Path, is_async: bool, is_private: bool
) -> None:
    session = Session(session_id="run-7", store=SqliteStore(tmp_path / "plans.db"))
    limiter = RateLimiter(default="1/hour")
    tool, made = counting(idempotent=False, rate_limit_key="mail", returns_private_data=is_private)

    def call(call_id: str, limiter: RateLimiter) -> Any:
        toolbox = Toolbox([tool], session=session, limiter=limiter)
        if is_async:
            return asyncio.run(toolbox.acall("send", {"to": "Ann"}, context=by(call_id))).code
        return toolbox.call("send", {"to": "Ann"}, context=by(call_id)).code

    assert [call("1", limiter), call("2", limiter)] == [None, "rate_limit"]
    assert [call("2", RateLimiter(default="1/hour")), made] == [None, ["Ann", "Ann"]]


def test_a_call_whose_begin_could_not_be_recorded_was_not_made_and_can_be_made_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = Session(session_id="run-7", store=SqliteStore(tmp_path / "plans.db"))
    tool, made = counting(idempotent=False)
    toolbox = Toolbox([tool], session=session)
    commit, lost_once = SqliteStore._commit, [True]

    def lose(store: SqliteStore, connection: Any, *rest: Any) -> None:
        commit(store, connection, *rest)
        if lost_once:
            lost_once.clear()
            raise StoreError("the store is gone", outcome="unknown")

    monkeypatch.setattr(SqliteStore, "_commit", lose)
    lost = toolbox.call("send", {"to": "Ann"}, context=by("1"))
    assert (lost.success, made) == (False, [])
    assert lost.message == "send cannot reach its data now. Try again later, or go on without it."
    again = toolbox.call("send", {"to": "Ann"}, context=by("1"))
    assert (again.message, made) == ("Sent 1 to Ann", ["Ann"])


def test_a_call_that_must_not_be_made_twice_is_refused_inside_a_transaction(tmp_path: Path) -> None:
    session = Session(session_id="run-7", store=SqliteStore(tmp_path / "plans.db"))
    tool, made = counting(idempotent=False)
    toolbox = Toolbox([tool], session=session)
    with session.transaction():
        refused = toolbox.call("send", {"to": "Ann"}, context=by("1"))
    assert (refused.code, refused.message, made) == (
        "bad_context",
        "send was not called: it must not be made twice, which cannot be recorded inside a transaction; call "
        "it outside of one",
        [],
    )


@pytest.mark.parametrize("is_stored", [False, True])
def test_it_is_refused_where_the_first_raised_or_a_rewind_took_it_back(
    tmp_path: Path, is_stored: bool
) -> None:
    store = SqliteStore(tmp_path / "plans.db") if is_stored else None
    session = Session(session_id="run-7", store=store)
    made: list[str] = []

    def send(arguments: dict[str, str]) -> str:
        made.append(arguments["to"])
        if arguments["to"] == "Bob":
            raise ConnectionError
        return "Sent"

    toolbox = Toolbox([Tool("send", "Send.", send, parameters=SCHEMA, idempotent=False)], session=session)
    for name in ("Ann", "Bob"):
        toolbox.call("send", {"to": name}, context=by(name))
    session.rewind(0)
    for name in ("Ann", "Bob"):
        assert toolbox.call("send", {"to": name}, context=by(name)).message == REFUSED
    assert made == ["Ann", "Bob"]
