"""Views: slices that are made of others each time that they are read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from session import Session, ToolInvoked, append, select_all, select_latest

Select = Callable[[type[Any]], tuple[Any, ...]]


@dataclass(frozen=True)
class Number:
    value: int


@dataclass(frozen=True)
class Double:
    value: int


def doubles(select: Select) -> tuple[Double, ...]:
    return tuple(Double(2 * number.value) for number in select(Number))


@pytest.fixture
def session() -> Session:
    session = Session()
    session.register_reducer(Number, append)
    session.register_view(Double, doubles)
    return session


def test_a_view_of_events_sees_those_of_an_open_transaction(session: Session) -> None:
    session.register_view(
        Double, lambda select: tuple(Double(len(event.name)) for event in select(ToolInvoked))
    )
    with session.transaction() as transaction:
        transaction.publish(ToolInvoked("abc", None, None, session_id=session.session_id))
        assert select_all(session, Double) == (Double(3),)
    assert select_all(session, Double) == (Double(3),)


def test_a_slice_that_a_reducer_makes_goes_before_a_view(session: Session) -> None:
    session.register_reducer(Double, append)
    session.dispatch(Number(1))
    assert select_all(session, Double) == (Double(2),)
    session.dispatch(Double(7))
    assert select_all(session, Double) == (Double(7),)
    assert select_latest(session, Double) == Double(7)


def test_a_view_is_in_no_snapshot_and_follows_a_rollback(session: Session) -> None:
    session.dispatch(Number(1))
    before = session.snapshot()
    session.dispatch(Number(2))
    assert list(before.slices) == [Number]
    session.rollback(before)
    assert select_all(session, Double) == (Double(2),)


def test_what_a_view_raises_the_reader_hears_and_the_session_stays(session: Session) -> None:
    def broken(_select: Select) -> tuple[Any, ...]:
        raise RuntimeError("no view")

    session.register_view(Double, broken)
    session.dispatch(Number(1))
    with pytest.raises(RuntimeError, match=r"^no view$"):
        select_all(session, Double)
    assert select_all(session, Number) == (Number(1),)
