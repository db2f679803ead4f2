"""Identities: which session ids there are, whom an event is addressed to, and who may be whose parent."""

from __future__ import annotations

from uuid import UUID

import pytest
from session_records import Note, Ping, called, note_session, numbers, ping, words_of

from session import (
    IdentityError,
    InProcessEventBus,
    Session,
    SessionError,
    Snapshot,
    ToolInvoked,
    append,
)

IDENTITY = UUID("00000000-0000-4000-8000-00000000abcd")
NAMES = ["run-7", "a", "A.b_c:d-9", "7", "x" * 128, str(IDENTITY).upper(), IDENTITY.hex, "-", "None"]
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
    session.publish(Ping(session_id=str(IDENTITY)))
    assert len(session.select_all(Ping)) == 2
    with pytest.raises(IdentityError, match="a copy cannot have this session's id: omit session_id"):
        session.clone(session_id=str(IDENTITY))


@pytest.mark.parametrize(
    "wrong",
    ["", " ", "a b", "run 7", "a/b", "a\n", "\u00e9", "\u0663", "x" * 129, "\ud800", "{a}", ".", "...."],
)
def test_a_text_that_is_not_a_name_is_refused_when_the_session_is_made(wrong: str) -> None:
    quoted = repr(wrong) if len(wrong) < 100 else f"'{wrong[:119]}..."
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
    assert result.event == heard[0]
    assert (heard[0].session_id, heard[0].event_id, heard[0].created_at) == (
        identity,
        event.event_id,
        event.created_at,
    )
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
    with pytest.raises(IdentityError) as caught:
        session.bus.publish(ToolInvoked("tool", {}, None))
    assert str(caught.value) == (
        "the ToolInvoked has no session_id: publish it with session.publish(event), "
        "or pass session_id=session.session_id when you make it"
    )
    assert isinstance(caught.value, SessionError)
    assert heard == []
    assert session.bus.publish(Note("not an event")).ok


OWN_PARENT = "a session cannot be its own parent: give the child another session_id"


def test_a_session_that_would_be_its_own_parent_is_refused() -> None:
    parent = Session(session_id="run-7")
    child = Session(parent=parent)
    for make in (
        lambda: Session(session_id="run-7", parent=parent),
        lambda: Session(session_id="run-7", parent=child),
        lambda: child.clone(session_id="run-7", parent=child),
        lambda: parent.__init__(parent=parent),  # type: ignore[misc]  # what nobody should do
    ):
        assert words_of(IdentityError, make) == OWN_PARENT
    assert (parent.children, child.children) == ((child,), ())
