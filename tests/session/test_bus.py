"""Events, the bus and identities: what an event carries, who is told, and who is addressed."""

from __future__ import annotations

import copy
import gc
import logging
import os
import pickle
import random
from datetime import UTC, datetime
from functools import partial, reduce
from operator import and_, or_
from types import SimpleNamespace
from typing import Any
from uuid import UUID, uuid4

import attrs
import pytest
from session_records import LoudPing, Note, Ping, called, note_session, numbers, ping, words_of

from session import (
    IdentityError,
    InProcessEventBus,
    PromptExecuted,
    PromptRendered,
    PublishResult,
    Session,
    SessionError,
    SessionEvent,
    Snapshot,
    SubscriberFailure,
    ToolFailed,
    ToolInvoked,
    append,
)

SESSION = UUID("00000000-0000-4000-8000-000000000001")
EVENT = UUID("00000000-0000-4000-8000-000000000002")
WHEN = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("event", "content"),
    [
        (SessionEvent(), ""),
        (ToolInvoked("a", {"q": 1}, "found", 7), ", name='a', params={'q': 1}, result='found', value=7"),
        (ToolInvoked("search", {}, None), ", name='search', params={}, result=None, value=None"),
        (ToolFailed("search", "refused"), ", name='search', result='refused'"),
        (PromptRendered("ns", "key", "text"), ", ns='ns', key='key', text='text'"),
        (PromptExecuted("ns", "key", {"a": 42}), ", ns='ns', key='key', result={'a': 42}, value=None"),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, SessionEvent) else None,
)
def test_an_event_shows_its_content_but_no_identity_and_is_frozen(event: SessionEvent, content: str) -> None:
    assert event.created_at.tzinfo is UTC
    event = attrs.evolve(event, session_id=SESSION, event_id=EVENT, created_at=WHEN)
    assert repr(event) == f"{type(event).__name__}(session_id={SESSION!r}, created_at={WHEN!r}{content})"
    assert (event.session_id, event.event_id, event.created_at) == (SESSION, EVENT, WHEN)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        event.session_id = uuid4()  # type: ignore[misc]  # the point of the test


def test_a_copy_is_equal_and_another_event_is_not() -> None:
    event = SessionEvent(session_id=SESSION, created_at=WHEN)
    pickled = pickle.loads(pickle.dumps(event))  # noqa: S301 - made here
    for twin in (copy.copy(event), copy.deepcopy(event), attrs.evolve(event), pickled):
        assert (twin, hash(twin), twin.event_id) == (event, hash(event), event.event_id)
    assert event != SessionEvent(session_id=SESSION, created_at=WHEN)
    assert event != attrs.evolve(event, session_id="another")


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # other tests have left threads
def test_no_two_events_have_one_id_in_a_seeded_program_and_its_forked_child() -> None:
    read, write = os.pipe()
    if not (child := os.fork()):
        os.write(write, SessionEvent().event_id.bytes)
        os._exit(0)
    os.waitpid(child, 0)
    drawn = [UUID(bytes=os.read(read, 16))]
    for _ in range(300):
        random.seed(7)
        drawn.append(SessionEvent().event_id)
    assert len({*drawn}) == 301
    ever, always = (UUID(int=reduce(both, (each.int for each in drawn))) for both in (or_, and_))
    assert str(ever) == "ffffffff-ffff-4fff-bfff-ffffffffffff"
    assert str(always) == "00000000-0000-4000-8000-000000000000"


# The bus


def test_subscribers_of_a_type_or_its_base_are_told_in_the_order_in_which_they_subscribed(
    bus: InProcessEventBus, session: Session
) -> None:
    heard: list[tuple[str, object]] = []

    def hear(name: str, event: object) -> None:
        heard.append((name, event))

    plain, loud = ping(session), LoudPing(session_id=session.session_id)
    assert bus.publish(Note("early")) == PublishResult(Note("early"), (), ())
    for kind, name in ((SessionEvent, "event"), (Ping, "ping"), (object, "object"), (LoudPing, "loud")):
        bus.subscribe(kind, partial(hear, name))
    result = bus.publish(loud)
    bus.publish(plain)
    bus.publish(Note("a"))
    assert heard == [
        *((name, loud) for name in ("event", "ping", "object", "loud")),
        *((name, plain) for name in ("event", "ping", "object")),
        ("object", Note("a")),
    ]
    result.raise_for_failures()
    assert (result.ok, len(result.subscribers)) == (True, 5)  # the session is one


def test_one_failing_subscriber_does_not_stop_the_others(bus: InProcessEventBus) -> None:
    heard: list[Note] = []
    errors = [ValueError("one"), KeyError("two")]

    def fail(event: Note) -> None:
        raise errors[len(heard)]

    for handler in (fail, heard.append, fail):
        bus.subscribe(Note, handler)
    result = bus.publish(Note("a"))
    failures = (SubscriberFailure(fail, errors[0]), SubscriberFailure(fail, errors[1]))
    assert result == PublishResult(Note("a"), (fail, heard.append, fail), failures)
    assert (heard, result.ok) == ([Note("a")], False)
    with pytest.raises(ExceptionGroup) as caught:
        result.raise_for_failures()
    name = f"{__name__}.test_one_failing_subscriber_does_not_stop_the_others.<locals>.fail"
    assert caught.value.message == f"2 of 3 subscribers failed: {name}, {name}"
    assert list(caught.value.exceptions) == errors


class Caller:
    """Fails as a method, as an object, and as a nested partial."""

    def method(self, _event: Note) -> None:
        raise ValueError("the secret")

    def __call__(self, _event: Note) -> None:
        raise ValueError("the secret")


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
def test_a_subscriber_that_fails_is_named_in_the_result_and_in_the_log_without_any_text(
    subscriber: Any, name: str, bus: InProcessEventBus, caplog: pytest.LogCaptureFixture
) -> None:
    bus.subscribe(Note, subscriber)
    with caplog.at_level(logging.DEBUG):
        result = bus.publish(Note("another secret"))
    assert [failure.name for failure in result.failures] == [f"{__name__}.{name}"]
    assert caplog.record_tuples == [("session.bus", logging.ERROR, "subscriber_failed")]
    record: Any = caplog.records[0]
    assert (record.event, record.error, record.handler) == ("Note", "ValueError", f"{__name__}.{name}")
    assert (record.exc_info, record.exc_text, record.stack_info) == (None, None, None)
    assert "secret" not in repr(vars(record))


def test_unsubscribe_takes_one_subscription_back_at_a_time(bus: InProcessEventBus) -> None:
    heard: list[Note] = []
    for _ in range(2):
        bus.subscribe(Note, heard.append)
    for text, is_there in (("twice", True), ("once", True), ("never", False)):
        bus.publish(Note(text))
        assert bus.hears(Note) is bus.unsubscribe(Note, heard.append) is is_there
    assert heard == [Note("twice"), Note("twice"), Note("once")]


def test_who_subscribes_or_leaves_in_a_delivery_does_so_from_the_next_event(bus: InProcessEventBus) -> None:
    leaver, newcomer = list[Note](), list[Note]()

    def change(_event: Note) -> None:
        bus.unsubscribe(Note, change)
        bus.unsubscribe(Note, leaver.append)
        bus.subscribe(Note, newcomer.append)

    for handler in (change, leaver.append):
        bus.subscribe(Note, handler)
    for text in "ab":
        bus.publish(Note(text))
    assert (leaver, newcomer) == ([Note("a")], [Note("b")])


def test_an_event_is_handed_to_its_own_of_a_thousand_sessions(bus: InProcessEventBus) -> None:
    sessions = [Session(bus=bus) for _ in range(1_000)]
    heard = list[Ping]()
    bus.subscribe(Ping, heard.append, sessions[500].session_id)
    events = Ping(session_id="nobody"), ping(sessions[500], 1), ping(sessions[502], 1)
    assert [len(bus.publish(each).subscribers) for each in events] == [0, 2, 1]
    assert [each.session_id for each in heard] == [sessions[500].session_id]
    assert [numbers(each.select_all(Ping)) for each in sessions[499:502]] == [[], [1], []]


def test_a_session_takes_its_own_events_of_a_bus_that_hands_it_all() -> None:
    own = InProcessEventBus()  # the bus around it knows no sessions
    bus: Any = SimpleNamespace(subscribe=lambda kind, handler: own.subscribe(kind, handler, None))
    bus.unsubscribe, bus.publish = own.unsubscribe, own.publish
    sessions = [Session(bus=bus), Session(bus=bus)]
    for number, session in enumerate(sessions):
        assert bus.publish(ping(session, number)).ok
        session.publish(ping(session, number + 10))
    sessions[0].close()
    for session in sessions:
        bus.publish(ping(session, 20))
    assert [numbers(each.select_all(Ping)) for each in sessions] == [[0, 10], [1, 11, 20]]
    event = ping(sessions[1])
    del session, sessions
    gc.collect()
    assert [len(bus.publish(event).subscribers) for _ in range(2)] == [1, 0]


# Identities

IDENTITY = UUID("00000000-0000-4000-8000-00000000abcd")
NAMES = ["run-7", "a", "A.b_c:d-9", "7", "x" * 128, str(IDENTITY).upper(), IDENTITY.hex, "-", "X.", "None"]
RULE = "a session id must be a UUID or 1 to 128 ASCII letters, digits and the characters . _ - :, got "
DOTS = "a session id must not be only dots, got "


@pytest.mark.parametrize("name", NAMES)
def test_a_session_with_a_name_works_everywhere(name: str, bus: InProcessEventBus) -> None:
    session, other = note_session(name), Session(bus=bus)
    assert session.session_id == name
    event = called(session, Note("a"))
    assert event.session_id == name
    assert session.publish(event).ok
    assert session.bus.publish(ping(session, 1)).ok
    other.bus.publish(ping(session, 2))
    assert (session.select_all(Note), numbers(session.select_all(Ping))) == ((Note("a"),), [1])
    assert other.select_all(Ping) == ()
    read = Snapshot.from_json(session.snapshot().to_json())
    assert (read, read.session_id) == (session.snapshot(), name)
    clone = session.clone(session_id=f"{name[:127]}2", parent=session)
    assert (clone.select_all(Note), session.children) == ((Note("a"),), (clone,))
    assert repr(session) == f"Session({name!r}, tags={{}})"


def test_a_uuid_and_its_lower_case_text_are_one_identity() -> None:
    session = Session(session_id=str(IDENTITY))
    assert session.session_id == IDENTITY
    assert Ping(session_id=str(IDENTITY)).session_id == IDENTITY
    session.bus.publish(Ping(session_id=str(IDENTITY)))
    assert session.publish(Ping(session_id=str(IDENTITY))).subscribers == ()
    assert len(session.select_all(Ping)) == 2
    with pytest.raises(IdentityError, match="a copy cannot have this session's id: omit session_id"):
        session.clone(session_id=str(IDENTITY))


@pytest.mark.parametrize(
    "wrong",
    [
        *("", " ", "a b", "run 7", "a/b", "a\n", "\u00e9", "\u0663", "\ud800", "{a}", ".", "...."),
        *("x" * 129, "/" + "x" * 117, "/" + "x" * 118),
    ],
)
def test_a_text_that_is_not_a_name_is_refused_when_the_session_is_made(wrong: str) -> None:
    quoted = repr(wrong) if len(wrong) < 119 else f"'{wrong[:119]}..."
    for make in (
        lambda: Session(session_id=wrong),
        lambda: Session().clone(session_id=wrong),
        lambda: Ping(session_id=wrong),
        lambda: Snapshot(slices={}, session_id=wrong),
    ):
        assert words_of(IdentityError, make) == (DOTS if set(wrong) == {"."} else RULE) + quoted


@pytest.mark.parametrize("identity", [IDENTITY, "run-7"])
def test_an_event_without_an_address_is_addressed_to_the_session_that_publishes_it(
    identity: UUID | str, bus: InProcessEventBus
) -> None:
    session, other = Session(bus=bus, session_id=identity), Session(bus=bus)
    for each in (session, other):
        each.register_reducer(Note, append)
    heard: list[ToolInvoked] = []
    bus.subscribe(ToolInvoked, heard.append)
    event = ToolInvoked("tool", {}, None, Note("by the session"))
    result = session.publish(event)
    assert result.event == heard[0] == attrs.evolve(event, session_id=identity)
    with session.transaction() as transaction:
        transaction.publish(ToolInvoked("tool", {}, None, Note("in a transaction")))
        transaction.dispatch(ToolInvoked("tool", {}, None))
    session.dispatch(Ping(5))
    assert session.select_all(Note) == (Note("by the session"), Note("in a transaction"))
    assert [each.session_id for each in session.select_all(ToolInvoked)] == [identity] * 3
    assert [each.session_id for each in session.select_all(Ping)] == [identity]
    assert (other.select_all(Note), other.select_all(ToolInvoked), len(heard)) == ((), (), 2)
    assert event.session_id is None


def test_an_event_without_an_address_is_refused_on_a_bus() -> None:
    session = Session()
    heard: list[object] = []
    session.bus.subscribe(object, heard.append)
    event = ToolInvoked("tool", {}, None)
    assert words_of(IdentityError, session.bus.publish, event) == (
        "the ToolInvoked has no session_id: publish it with session.publish(event), "
        "or pass session_id=session.session_id when you make it"
    )
    assert issubclass(IdentityError, SessionError)
    assert heard == []
    assert session.bus.publish(Note("not an event")).ok


def test_a_session_that_would_be_its_own_parent_is_refused() -> None:
    parent = Session(session_id="run-7")
    child = Session(parent=parent)
    for make in (
        lambda: Session(session_id="run-7", parent=parent),
        lambda: Session(session_id="run-7", parent=child),
        lambda: child.clone(session_id="run-7", parent=child),
        lambda: parent.__init__(parent=parent),  # type: ignore[misc]  # what nobody should do
    ):
        assert words_of(IdentityError, make) == (
            "a session cannot be its own parent: give the child another session_id"
        )
    assert (parent.children, child.children) == ((child,), ())
