"""Events: what they carry, and that each can be told from all others."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import attrs
import pytest

from session import PromptExecuted, PromptRendered, SessionEvent, ToolInvoked

SESSION = UUID("00000000-0000-4000-8000-000000000001")
EVENT = UUID("00000000-0000-4000-8000-000000000002")
WHEN = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)


def test_a_tool_call_carries_its_name_arguments_result_and_value() -> None:
    event = ToolInvoked("search", {"q": "x"}, "found", 7, session_id=SESSION, event_id=EVENT, created_at=WHEN)
    assert (event.name, event.params, event.result, event.value) == ("search", {"q": "x"}, "found", 7)
    assert (event.session_id, event.event_id, event.created_at) == (SESSION, EVENT, WHEN)


def test_a_tool_call_has_no_value_unless_given_one() -> None:
    assert ToolInvoked("search", {}, None, session_id=SESSION).value is None


def test_a_rendered_prompt_carries_its_address_and_text() -> None:
    event = PromptRendered("ns", "key", "text", session_id=SESSION)
    assert (event.ns, event.key, event.text, event.session_id) == ("ns", "key", "text", SESSION)


def test_an_executed_prompt_carries_its_address_and_answer() -> None:
    event = PromptExecuted("ns", "key", {"answer": 42}, session_id=SESSION)
    assert (event.ns, event.key, event.result, event.session_id) == ("ns", "key", {"answer": 42}, SESSION)


@pytest.mark.parametrize(
    "event",
    [
        SessionEvent(session_id=SESSION),
        ToolInvoked("t", None, None, session_id=SESSION),
        PromptRendered("n", "k", "t", session_id=SESSION),
        PromptExecuted("n", "k", None, session_id=SESSION),
    ],
    ids=lambda event: type(event).__name__,
)
def test_every_event_is_a_session_event_that_is_frozen_and_picklable(event: SessionEvent) -> None:
    assert isinstance(event, SessionEvent)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        event.session_id = uuid4()  # type: ignore[misc]  # the point of the test
    copied = pickle.loads(pickle.dumps(event))  # noqa: S301 - made one line above
    assert copied == event
    assert copied.event_id == event.event_id


def test_every_event_has_an_identity_of_its_own_that_never_changes() -> None:
    events = [SessionEvent(session_id=SESSION) for _ in range(100)]
    first = [event.event_id for event in events]
    assert len(set(first)) == 100
    assert {identity.version for identity in first} == {4}
    assert [event.event_id for event in events] == first


def test_all_threads_see_one_identity() -> None:
    for _ in range(50):
        event = SessionEvent(session_id=SESSION)
        barrier = threading.Barrier(4)
        seen: list[UUID] = []

        def look(event: SessionEvent = event, barrier: threading.Barrier = barrier) -> None:
            barrier.wait()
            seen.append(event.event_id)  # noqa: B023 - the threads end before the next turn

        threads = [threading.Thread(target=look) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert seen == [event.event_id] * 4


@pytest.mark.parametrize("copy_of", [copy.copy, copy.deepcopy, attrs.evolve])
def test_a_copy_that_is_made_before_anybody_looked_has_the_same_identity(
    copy_of: Callable[[SessionEvent], SessionEvent],
) -> None:
    event = SessionEvent(session_id=SESSION)
    assert copy_of(event).event_id == event.event_id


def test_two_events_with_equal_content_differ() -> None:
    assert SessionEvent(session_id=SESSION, created_at=WHEN) != SessionEvent(
        session_id=SESSION, created_at=WHEN
    )


def test_an_event_that_is_made_again_from_what_it_shows_is_equal() -> None:
    event = SessionEvent(session_id=SESSION)
    again = SessionEvent(session_id=SESSION, event_id=event.event_id, created_at=event.created_at)
    assert again == event
    assert hash(again) == hash(event)


def test_a_copy_with_another_field_keeps_the_identity() -> None:
    event = ToolInvoked("t", None, None, session_id=SESSION)
    renamed = attrs.evolve(event, name="u")
    assert (renamed.name, renamed.event_id, renamed.created_at) == ("u", event.event_id, event.created_at)


def test_an_event_is_dated_in_utc() -> None:
    before = datetime.now(UTC)
    made = SessionEvent(session_id=SESSION).created_at
    assert before <= made <= datetime.now(UTC)
    assert made.utcoffset() == timedelta(0)
