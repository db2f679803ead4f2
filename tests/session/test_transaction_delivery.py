"""Telling the bus of a commit: when, in which order, and what a failure can no longer undo."""

from __future__ import annotations

import logging

import pytest
from session_records import LoudPing, Note, OnPurposeError, Ping, note_session, numbers, ping, texts

from session import InProcessEventBus, PublishResult, Session, SessionEvent, SubscriberFailure


def test_a_subscriber_may_write_back_into_the_session() -> None:
    session = note_session()
    heard: list[int] = []

    def answer(event: Ping) -> None:
        heard.append(event.number)
        session.dispatch(Note(f"heard {event.number}"))
        if event.number < 3:
            with session.transaction() as transaction:
                transaction.publish(ping(session, event.number + 1))

    session.bus.subscribe(Ping, answer)
    with session.transaction() as transaction:
        transaction.publish(ping(session, 1))
    assert heard == numbers(session.select_all(Ping)) == [1, 2, 3]
    assert texts(session) == ["heard 1", "heard 2", "heard 3"]


class BrokenBus(InProcessEventBus):
    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error

    def publish(self, event: object) -> PublishResult:
        raise self.error


def test_a_bus_with_a_publish_of_its_own_that_raises_undoes_nothing_and_is_logged_without_its_text(
    caplog: pytest.LogCaptureFixture,
) -> None:
    error = OnPurposeError("the secret")
    session = Session(bus=BrokenBus(error))
    with caplog.at_level(logging.DEBUG), session.transaction() as transaction:
        transaction.publish(ping(session, 1))
        transaction.publish(ping(session, 2))
    event, publish = ping(session, 3), session.bus.publish
    with caplog.at_level(logging.CRITICAL):
        assert session.publish(event) == PublishResult(
            event, (publish,), (SubscriberFailure(publish, error),)
        )
    assert numbers(session.select_all(Ping)) == [1, 2, 3]
    assert caplog.record_tuples == [("session.session", logging.ERROR, "bus_failed")] * 2
    for record in caplog.records:
        assert (vars(record)["event"], vars(record)["error"]) == ("Ping", "OnPurposeError")
        assert vars(record)["handler"] == f"{__name__}.BrokenBus.publish"
        assert (record.exc_info, record.exc_text, record.stack_info) == (None, None, None)
        assert "secret" not in repr(vars(record))


def test_an_event_that_the_session_publishes_inside_is_told_with_the_commit() -> None:
    session = note_session()
    heard: list[Ping] = []
    session.bus.subscribe(Ping, heard.append)
    with session.transaction() as transaction:
        transaction.publish(ping(session, 1))
        with session.transaction():
            event = ping(session, 2)
            assert session.publish(event) == PublishResult(event)
        assert numbers(session.select_all(Ping)) == [1, 2]
        transaction.publish(ping(session, 3))
        assert heard == []
    assert numbers(tuple(heard)) == numbers(session.select_all(Ping)) == [1, 2, 3]


@pytest.mark.parametrize("inside", [True, False], ids=["in a transaction", "by the session"])
def test_every_subscriber_hears_events_in_the_order_of_commits_also_of_those_a_subscriber_makes(
    inside: bool,
) -> None:
    session = note_session()
    told: list[tuple[str, int]] = []
    results: list[PublishResult] = []

    def publish(number: int) -> None:
        if inside:
            with session.transaction() as transaction:
                transaction.publish(ping(session, number))
        else:
            results.append(session.publish(ping(session, number)))

    def answer(event: Ping) -> None:
        told.append(("first", event.number))
        if event.number < 3:
            publish(2 * event.number)
            publish(2 * event.number + 1)
        assert event.number in numbers(session.select_all(Ping))

    session.bus.subscribe(Ping, answer)
    session.bus.subscribe(Ping, lambda event: told.append(("second", event.number)))
    publish(1)
    assert numbers(session.select_all(Ping)) == [1, 2, 3, 4, 5]
    assert told == [(name, number) for number in range(1, 6) for name in ("first", "second")]
    if not inside:
        assert [(result.ok, len(result.subscribers)) for result in results] == [(True, 0)] * 4 + [(True, 3)]


def test_an_event_is_delivered_to_who_subscribes_before_its_turn_and_to_no_one_who_has_left() -> None:
    session = note_session()
    heard: list[SessionEvent] = []

    def follow(event: Ping) -> None:
        session.bus.subscribe(LoudPing, heard.append)
        session.publish(LoudPing(event.number))
        session.bus.unsubscribe(Ping, follow)

    assert session.publish(ping(session)) == PublishResult(session.select_all(Ping)[0])
    session.bus.subscribe(Ping, follow)
    for number in (1, 2):
        session.publish(ping(session, number))
    session.bus.unsubscribe(LoudPing, heard.append)
    session.publish(LoudPing(3))
    assert heard == list(session.select_all(LoudPing))[:1]
    assert numbers(session.select_all(Ping)) == [0, 1, 2]
