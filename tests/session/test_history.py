"""Versions: a session at each of them after random changes; what forks, clones and short histories keep."""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from session_records import Count, Note, OnPurposeError, called, note_session

from session import Session, ToolInvoked, Transaction, append, replace_latest, select_all, stored
from session.stores import MemoryStore


def test_a_version_is_reduced_by_the_reducers_of_its_time() -> None:
    session = Session()
    session.publish(called(session, Note("nobody keeps it")))
    session.register_reducer(Note, append)
    session.dispatch(Note("a"))
    session.register_reducer(Note, lambda slice_, note: (*slice_, Count(len(note.text))), Count)
    session.dispatch(Note("bc"))
    assert [(session.at(v).select_all(Note), session.at(v).select_all(Count)) for v in range(4)] == [
        ((), ()),
        ((), ()),
        ((Note("a"),), ()),
        ((Note("a"), Note("bc")), (Count(2),)),
    ]


@pytest.mark.parametrize("version", [0, 1, 40, 42])
def test_a_fork_and_a_clone_have_private_slices_as_they_are_now_and_keep_them_private(version: int) -> None:
    session = note_session()
    session.register_reducer(Count, replace_latest, is_private=True)
    session.dispatch(Count(1))
    for number in range(41):
        session.dispatch(Note(str(number)))
    session.dispatch(Count(2))
    session.dispatch(Note("last"))
    for copy in (session.fork(version), session.clone()):
        assert copy.select_all(Count) == session.at(version).select_all(Count) == (Count(2),)
        before = copy.version
        copy.dispatch(Count(3))
        assert (copy.version, Count in copy.snapshot().slices) == (before, False)
    assert session.select_all(Count) == (Count(2),)


def test_a_session_that_keeps_few_changes_forgets_their_keys() -> None:
    session = Session(history=2)
    for number in range(100):
        session.publish(ToolInvoked("tool", {}, None, idempotency_key=f"{number % 50}"))
    assert [session.find_call(key) is None for key in ("49", "48", "0")] == [False, False, True]
    for _ in range(80):
        session.publish(ToolInvoked("tool", {}, None))
    assert [session.find_call(key) for key in ("49", "48", "0")] == [None, None, None]


State = tuple[tuple[Any, ...], ...]


def entail(note: Note, transaction: Transaction) -> tuple[Count, ...]:
    """A note entails a count, dispatches one, does neither, or is refused."""
    if note.text.endswith("refused"):
        raise OnPurposeError
    if note.text.endswith("dispatches"):
        transaction.dispatch(Count(-len(note.text)))
    return (Count(len(note.text)),) if note.text.endswith("entails") else ()


def note_call(event: ToolInvoked, transaction: Transaction) -> tuple[Note, ...]:
    if event.name.endswith("dispatches"):
        transaction.dispatch(Count(len(event.name)))
    return (Note(event.name),) if event.name.endswith("entails") else ()


def opened(store: MemoryStore | None) -> Session:
    session = Session(session_id="run-7", store=store)
    for kind in (Note, Count):
        session.register_reducer(kind, append)
    session.register_guard(Note, entail)
    session.register_guard(ToolInvoked, note_call)
    return session


def state(session: Any) -> State:
    return tuple(select_all(session, kind) for kind in (Note, Count))


class Changes:
    def __init__(self, session: Session, seed: int) -> None:
        self.session = session
        self._random = random.Random(seed)  # noqa: S311 - the same changes in each run
        self._notes = [Note("first")]
        self._snapshots = [session.snapshot()]

    def note(self) -> Note:
        """A new one, or one of the last ones."""
        if self._random.random() < 0.4:
            kind = self._random.choice(["plain", "entails", "dispatches", "refused"])
            self._notes.append(Note(f"{len(self._notes)} {kind}"))
        return self._random.choice(self._notes[-2:])

    def make(self, place: Session | Transaction, depth: int = 0) -> None:
        """One change, in the session or in an open transaction."""
        draw = self._random.random()
        if draw < 0.3:
            place.dispatch(self.note())
        elif draw < 0.65:
            name = self._random.choice(["plain", "entails", "dispatches"])
            event = ToolInvoked(name, {}, None, self._random.choice([None, self.note()]))
            how: Callable[[ToolInvoked], object] = self._random.choice([place.publish, place.dispatch])
            how(event)
        elif draw < 0.85 and depth < 3:
            with self.session.transaction() as inner:
                for _ in range(self._random.randint(0, 4)):
                    with suppress(OnPurposeError):
                        self.make(inner, depth + 1)
                if self._random.random() < 0.2:
                    raise OnPurposeError
        elif draw < 0.9:
            self.session.rewind(self._random.randint(0, self.session.version))
        elif draw < 0.95:
            self.session.rollback(self._random.choice(self._snapshots))
        else:
            self._snapshots.append(self.session.snapshot())


@pytest.mark.parametrize("is_stored", [False, True])
@pytest.mark.parametrize("seed", range(40))
def test_every_version_stays_what_it_was(is_stored: bool, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "CHECKPOINT", 4)
    store = MemoryStore() if is_stored else None
    session = opened(store)
    changes, known = Changes(session, seed), {0: state(session)}
    for _ in range(30):
        with suppress(OnPurposeError):
            changes.make(session)
        assert known.setdefault(session.version, state(session)) == state(session)
    copies = [session, session.fork()]
    if store is not None:
        twin = MemoryStore()
        twin._kept, twin._claims = store._kept, store._claims
        copies.append(opened(twin))
    for copy in copies:
        assert {version: state(copy.at(version)) for version in known} == known
        assert state(copy) == state(session)
        assert [change.events for change in copy.history()] == [each.events for each in session.history()]
