"""The bus: who is told, in which order, and what becomes of a subscriber that fails."""

from __future__ import annotations

import logging
import threading
from functools import partial
from typing import Any

import pytest
from session_records import LoudPing, Note, Ping, numbers, ping

from session import EventBus, HandlerFailure, InProcessEventBus, PublishResult, Session, SessionEvent


def test_subscribers_are_told_in_the_order_in_which_they_subscribed(bus: InProcessEventBus) -> None:
    heard: list[tuple[str, object]] = []

    def first(event: Note) -> None:
        heard.append(("first", event))

    def second(event: Note) -> None:
        heard.append(("second", event))

    bus.subscribe(Note, first)
    bus.subscribe(Note, second)
    result = bus.publish(Note("a"))
    assert heard == [("first", Note("a")), ("second", Note("a"))]
    assert result == PublishResult(Note("a"), (first, second), ())


def test_order_holds_across_the_types_that_subscribers_named(
    bus: InProcessEventBus, session: Session
) -> None:
    heard: list[str] = []

    def listen(kind: type, name: str) -> None:
        bus.subscribe(kind, lambda event: heard.append(name))

    listen(SessionEvent, "event")
    listen(Ping, "ping")
    listen(object, "object")
    listen(LoudPing, "loud")
    bus.publish(LoudPing(session_id=session.session_id))
    assert heard == ["event", "ping", "object", "loud"]


def test_a_subscriber_hears_its_type_and_subclasses_and_nothing_else(
    bus: InProcessEventBus, session: Session
) -> None:
    heard: list[Ping] = []
    bus.subscribe(Ping, heard.append)
    loud = LoudPing(session_id=session.session_id)
    plain = ping(session)
    for event in (loud, Note("other"), plain):
        bus.publish(event)
    assert heard == [loud, plain]


def test_a_subscriber_to_a_subclass_does_not_hear_its_base(bus: InProcessEventBus, session: Session) -> None:
    heard: list[LoudPing] = []
    bus.subscribe(LoudPing, heard.append)
    bus.publish(ping(session))
    assert heard == []


def test_a_value_that_nobody_hears_is_delivered_to_nobody(bus: InProcessEventBus) -> None:
    assert bus.publish(Note("a")) == PublishResult(Note("a"), (), ())


def test_one_failing_subscriber_does_not_stop_the_others(bus: InProcessEventBus) -> None:
    heard: list[Note] = []
    error = ValueError("no")

    def fail(event: Note) -> None:
        raise error

    bus.subscribe(Note, fail)
    bus.subscribe(Note, heard.append)
    bus.subscribe(Note, fail)
    result = bus.publish(Note("a"))
    assert heard == [Note("a")]
    assert result.failures == (HandlerFailure(fail, error), HandlerFailure(fail, error))
    assert result.handlers == (fail, heard.append, fail)
    assert not result.ok


def test_a_failure_is_raised_on_demand_with_all_causes(bus: InProcessEventBus) -> None:
    errors = [ValueError("one"), KeyError("two")]

    def fail(index: int, event: Note) -> None:
        raise errors[index]

    bus.subscribe(Note, partial(fail, 0))
    bus.subscribe(Note, lambda event: None)
    bus.subscribe(Note, partial(fail, 1))
    with pytest.raises(ExceptionGroup) as caught:
        bus.publish(Note("a")).raise_for_failures()
    name = f"{__name__}.test_a_failure_is_raised_on_demand_with_all_causes.<locals>.fail"
    assert caught.value.message == f"2 of 3 subscribers failed: {name}, {name}"
    assert list(caught.value.exceptions) == errors


def test_without_failures_the_result_is_ok_and_raises_nothing(bus: InProcessEventBus) -> None:
    heard: list[Note] = []
    bus.subscribe(Note, heard.append)
    result = bus.publish(Note("a"))
    result.raise_for_failures()
    assert result.ok
    assert heard == [Note("a")]


def test_the_log_of_a_failure_names_types_and_carries_no_text_of_the_exception(
    bus: InProcessEventBus, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(event: Note) -> None:
        raise ValueError("the secret")

    bus.subscribe(Note, fail)
    with caplog.at_level(logging.DEBUG):
        bus.publish(Note("another secret"))
    assert caplog.record_tuples == [("session.bus", logging.ERROR, "subscriber_failed")]
    record: Any = caplog.records[0]
    where = f"{__name__}.test_the_log_of_a_failure_names_types_and_carries_no_text_of_the_exception"
    assert (record.event, record.error, record.handler) == ("Note", "ValueError", f"{where}.<locals>.fail")
    assert (record.exc_info, record.exc_text, record.stack_info) == (None, None, None)
    assert "secret" not in repr(vars(record))


class Caller:
    """Fails as a method, as an object, and as a nested partial."""

    def method(self, _event: Note) -> None:
        raise ValueError

    def __call__(self, _event: Note) -> None:
        raise ValueError


class Nameless(Caller):
    """Has no answer to what it is called."""

    def __getattribute__(self, name: str) -> Any:
        if name == "__qualname__":
            raise RuntimeError
        return super().__getattribute__(name)


@pytest.mark.parametrize(
    ("subscriber", "name"),
    [
        (Caller().method, "Caller.method"),
        (Caller(), "Caller"),
        (partial(partial(Caller.method, Caller())), "Caller.method"),
        (Nameless(), "Nameless"),
    ],
    ids=["method", "object", "partial", "nameless"],
)
def test_a_subscriber_that_fails_is_named_in_the_log_the_result_and_the_group(
    subscriber: Any, name: str, bus: InProcessEventBus, caplog: pytest.LogCaptureFixture
) -> None:
    bus.subscribe(Note, subscriber)
    result = bus.publish(Note("a"))
    assert [failure.name for failure in result.failures] == [f"{__name__}.{name}"]
    assert [vars(record)["handler"] for record in caplog.records] == [f"{__name__}.{name}"]
    with pytest.raises(ExceptionGroup) as caught:
        result.raise_for_failures()
    assert caught.value.message == f"1 of 1 subscribers failed: {__name__}.{name}"


def test_an_exit_of_the_program_passes_through_publish(bus: InProcessEventBus) -> None:
    heard: list[Note] = []

    def stop(event: Note) -> None:
        raise KeyboardInterrupt

    bus.subscribe(Note, stop)
    bus.subscribe(Note, heard.append)
    with pytest.raises(KeyboardInterrupt):
        bus.publish(Note("a"))
    assert heard == []


def test_unsubscribe_takes_one_subscription_back_at_a_time(bus: InProcessEventBus) -> None:
    heard: list[Note] = []
    bus.subscribe(Note, heard.append)
    bus.subscribe(Note, heard.append)
    bus.publish(Note("twice"))
    assert bus.unsubscribe(Note, heard.append)
    bus.publish(Note("once"))
    assert bus.unsubscribe(Note, heard.append)
    bus.publish(Note("never"))
    assert heard == [Note("twice"), Note("twice"), Note("once")]


def test_unsubscribe_says_when_there_was_nothing_to_take_back(bus: InProcessEventBus) -> None:
    heard: list[object] = []
    bus.subscribe(Note, heard.append)
    assert not bus.unsubscribe(Ping, heard.append)
    assert not bus.unsubscribe(Note, print)
    bus.publish(Note("a"))
    assert heard == [Note("a")]


def test_a_late_subscriber_to_a_type_that_was_published_before_is_told(bus: InProcessEventBus) -> None:
    heard: list[Note] = []
    bus.publish(Note("early"))
    bus.subscribe(Note, heard.append)
    bus.publish(Note("late"))
    assert heard == [Note("late")]


def test_who_subscribes_or_leaves_during_a_delivery_takes_part_from_the_next_event(
    bus: InProcessEventBus,
) -> None:
    heard: list[tuple[str, str]] = []

    def newcomer(event: Note) -> None:
        heard.append(("newcomer", event.text))

    def leaver(event: Note) -> None:
        heard.append(("leaver", event.text))

    def change(event: Note) -> None:
        bus.unsubscribe(Note, change)
        bus.unsubscribe(Note, leaver)
        bus.subscribe(Note, newcomer)

    bus.subscribe(Note, change)
    bus.subscribe(Note, leaver)
    bus.publish(Note("a"))
    bus.publish(Note("b"))
    assert heard == [("leaver", "a"), ("newcomer", "b")]


def test_a_coroutine_function_is_refused_as_a_subscriber(bus: InProcessEventBus) -> None:
    async def later(event: Note) -> None: ...

    class Later:
        async def __call__(self, event: Note) -> None: ...

    for subscriber in (later, Later(), partial(later)):
        with pytest.raises(TypeError) as caught:
            bus.subscribe(Note, subscriber)
        assert str(caught.value) == "a subscriber must be a plain function: delivery is synchronous"
    assert bus.publish(Note("a")).handlers == ()


def test_a_subscriber_that_cannot_be_called_is_refused(bus: InProcessEventBus) -> None:
    wrong: Any = "print"
    with pytest.raises(TypeError) as caught:
        bus.subscribe(Note, wrong)
    assert str(caught.value) == "a subscriber must be callable, got 'print'"


def test_an_event_type_that_is_no_class_is_refused(bus: InProcessEventBus) -> None:
    wrong: Any = "Note"
    with pytest.raises(TypeError) as caught:
        bus.subscribe(wrong, print)
    assert str(caught.value) == "event_type must be a class, got 'Note'"


def test_subscribing_from_many_threads_loses_nobody(bus: InProcessEventBus) -> None:
    barrier = threading.Barrier(8)
    heard: list[int] = []

    def work(number: int) -> None:
        barrier.wait()
        for _ in range(25):
            bus.subscribe(Note, lambda _event: heard.append(number))
            bus.publish(Ping)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(bus.publish(Note("a")).handlers) == 200
    assert sorted(heard) == [number for number in range(8) for _ in range(25)]


def test_the_bus_in_memory_is_a_bus_and_a_session_makes_one_of_its_own() -> None:
    one: EventBus = InProcessEventBus()
    session, other = Session(), Session()
    assert session.bus is not other.bus
    assert Session(bus=one).bus is one
    heard: list[Ping] = []
    session.bus.subscribe(Ping, heard.append)
    other.publish(ping(session, 1))
    session.publish(ping(session, 2))
    assert numbers(tuple(heard)) == [2]
