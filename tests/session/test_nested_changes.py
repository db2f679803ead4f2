"""Changes within one transaction share a copy of the slices, and nobody sees them before their time."""

from __future__ import annotations

from uuid import UUID

import pytest

from session import Session, ToolInvoked, append
from session.transaction import Transaction


def session_of_texts() -> Session:
    session = Session()
    session.register_reducer(str, append)
    session.register_reducer(int, append)
    return session


def test_what_an_inner_transaction_takes_back_leaves_the_outer_one_as_it_was() -> None:
    session = session_of_texts()
    session.dispatch("a")

    def fail(inner: Transaction) -> None:
        inner.dispatch("c")
        inner.dispatch(1)
        raise KeyError

    with session.transaction() as transaction:
        transaction.dispatch("b")
        with pytest.raises(KeyError), session.transaction() as inner:
            fail(inner)
        assert session.select_all(str) == ("a", "b")
        with session.transaction() as inner:
            inner.dispatch("d")
        transaction.dispatch("e")
    assert (session.select_all(str), session.select_all(int)) == (("a", "b", "d", "e"), ())


def test_a_snapshot_within_a_transaction_does_not_change_with_it() -> None:
    session = session_of_texts()
    with session.transaction() as transaction:
        transaction.dispatch("a")
        snapshot = session.snapshot()
        transaction.dispatch("b")
    assert snapshot.select_all(str) == ("a",)


def test_an_event_whose_own_reducer_fails_takes_its_value_back() -> None:
    session = session_of_texts()

    def refuse(_slice: tuple[object, ...], _event: object) -> tuple[object, ...]:
        raise ValueError("refused")

    session.register_reducer(ToolInvoked, refuse, UUID)
    with session.transaction() as transaction:
        transaction.dispatch("a")
        with pytest.raises(ValueError, match="refused"):
            transaction.publish(ToolInvoked("x", None, None, "b", session_id=session.session_id))
        transaction.dispatch("c")
    assert session.select_all(str) == ("a", "c")


def test_what_follows_an_event_that_failed_is_taken_back_with_its_transaction() -> None:
    session = session_of_texts()
    session.dispatch("a")

    def refuse(_slice: tuple[object, ...], _event: object) -> tuple[object, ...]:
        raise ValueError("refused")

    session.register_reducer(ToolInvoked, refuse, UUID)
    with pytest.raises(KeyError), session.transaction() as transaction:
        with pytest.raises(ValueError, match="refused"):
            transaction.publish(ToolInvoked("x", None, None, "b", session_id=session.session_id))
        transaction.dispatch("c")
        raise KeyError
    assert session.select_all(str) == ("a",)
