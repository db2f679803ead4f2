"""Events: what they carry, and that each can be told from all others."""

from __future__ import annotations

import copy
import pickle
from datetime import UTC, datetime
from uuid import UUID, uuid4

import attrs
import pytest
from session_records import printed

from session import PromptExecuted, PromptRendered, SessionEvent, ToolFailed, ToolInvoked

SESSION = UUID("00000000-0000-4000-8000-000000000001")
EVENT = UUID("00000000-0000-4000-8000-000000000002")
WHEN = datetime(2024, 5, 6, 7, 8, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("event", "content"),
    [
        (SessionEvent(session_id=SESSION, event_id=EVENT, created_at=WHEN), ""),
        (ToolInvoked("search", {"q": 1}, "found", 7, session_id=SESSION, event_id=EVENT, created_at=WHEN),
         ", name='search', params={'q': 1}, result='found', value=7"),
        (ToolInvoked("search", {}, None, session_id=SESSION, event_id=EVENT, created_at=WHEN),
         ", name='search', params={}, result=None, value=None"),
        (ToolFailed("search", "refused", session_id=SESSION, event_id=EVENT, created_at=WHEN),
         ", name='search', result='refused'"),
        (PromptRendered("ns", "key", "text", session_id=SESSION, event_id=EVENT, created_at=WHEN),
         ", ns='ns', key='key', text='text'"),
        (PromptExecuted("ns", "key", {"a": 42}, session_id=SESSION, event_id=EVENT, created_at=WHEN),
         ", ns='ns', key='key', result={'a': 42}, value=None"),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, SessionEvent) else None,
)  # fmt: skip
def test_an_event_shows_what_it_carries_but_its_identity_and_is_frozen(
    event: SessionEvent, content: str
) -> None:
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


def test_no_two_events_have_one_id_in_a_seeded_program_and_its_forked_child() -> None:
    program = """
import os, random
from session import SessionEvent

def draw():
    random.seed(7)
    return SessionEvent().event_id

ids = {draw(), draw()}
read, write = os.pipe()
pid = os.fork()
if not pid:
    os.write(write, draw().bytes)
    os._exit(0)
ids |= {draw(), type(draw())(bytes=os.read(read, 16))}
os.waitpid(pid, 0)
print(len(ids), {each.version for each in ids})
"""
    assert printed(program) == "4 {4}\n"
