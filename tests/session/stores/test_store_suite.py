"""Every store passes the suite, and gives the same answers, to two processes as to one."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import pytest
from examples.folder_store import FolderStore
from hypothesis import given, settings
from hypothesis import strategies as st
from session_records import Count, Note, Ping, words_of
from store_places import (
    PLACES,
    PLAN,
    MemoryPlace,
    Place,
    PostgresPlace,
    SqlitePlace,
    call,
    numbered,
    open_session,
    refused,
    state_of,
)

from planning.testing import StoreSuite
from session import Session, SessionId, Snapshot, ToolInvoked, stored, stores
from session.stores import MemoryStore, Store, StoredSession, copy_session


class OfPlace(StoreSuite):
    kind: type[Place]

    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path) -> None:
        self.place = self.kind(tmp_path)

    @pytest.fixture(autouse=True)
    def _few(self) -> Iterator[None]:
        """Draw fewer examples where the rest draws few, as each takes longer."""
        name = settings.get_current_profile_name()
        settings.load_profile("few" if name == "quick" else name)
        yield
        settings.load_profile(name)

    def open(self) -> Store:
        return self.place.open()


class TestMemoryStore(OfPlace):
    kind = MemoryPlace


class TestSqliteStore(OfPlace):
    kind = SqlitePlace


@pytest.mark.postgres
class TestPostgresStore(OfPlace):
    kind = PostgresPlace


def test_without_psycopg_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "session.stores.postgres", None)
    assert words_of(ImportError, lambda: stores.PostgresStore) == (
        "PostgresStore needs psycopg, its pool and libpq: pip install 'session-planning[postgres]' "
        "'psycopg[binary]'"
    )


def hasty(self: Any, head: StoredSession, change: Any, *, expected: int, checkpoint: Any = None) -> None:
    found = self.head(head.session_id)
    there = 0 if found is None else found.version
    MemoryStore.append(self, head, change, expected=there, checkpoint=checkpoint)


def forgetful(self: Any, source: SessionId, fork: StoredSession) -> None:
    MemoryStore.copy(self, source, fork)
    self._claims[str(fork.session_id)].clear()


def backwards(self: Any, session_id: SessionId, last: int, limit: int) -> Sequence[Any]:
    return MemoryStore.checkpoints(self, session_id, last, 10**9)[::-1][:limit]


def oldest_first(self: Any, session_id: SessionId, key: str) -> Sequence[int]:
    return MemoryStore.with_key(self, session_id, key)[::-1]


def unsorted(self: Any, limit: int | None = None) -> Sequence[StoredSession]:
    return [kept.head for kept in self._kept.values()][:limit]


def torn(self: Any, head: StoredSession, changes: Any, checkpoints: Any, claims: Any) -> None:
    MemoryStore.restore(self, head, (), checkpoints, claims)
    self._kept[str(head.session_id)].changes.extend(changes)


def open_to_its_thread(self: Any, session_id: SessionId, timeout: float | None = None) -> Any:
    self._writer = None
    return MemoryStore.lock(self, session_id, timeout)


BROKEN: list[tuple[str, Callable[..., Any], str]] = [
    ("append", hasty, "test_a_change_for_another_version_is_refused_whole"),
    ("copy", forgetful, "test_a_copy_has_what_was_there_up_to_its_version_and_outlives_its_source"),
    ("checkpoints", backwards, "test_a_store_has_what_was_appended_and_nothing_else"),
    ("with_key", oldest_first, "test_a_key_finds_its_call_on_the_present_branch"),
    ("sessions", unsorted, "test_sessions_are_listed_newest_first"),
    ("restore", torn, "test_a_session_is_copied_to_another_store_and_back_with_its_hashes"),
    ("lock", open_to_its_thread, "test_a_lock_keeps_other_writers_away_and_is_not_taken_twice"),
]


@pytest.mark.parametrize(("method", "broken", "test"), BROKEN)
def test_the_suite_finds_a_broken_store(method: str, broken: Callable[..., Any], test: str) -> None:
    suite, place = TestMemoryStore(), MemoryPlace(Path())
    place.store = type("Broken", (MemoryStore,), {method: broken})(timeout=1)
    suite.place = place
    with pytest.raises(AssertionError):
        getattr(suite, test)()


def test_a_long_session_is_copied_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("session.stores.copying._BATCH", 2)
    here, there = MemoryStore(), MemoryStore()
    session = open_session(here)
    for number in range(5):
        session.publish(Ping(number))
    copy_session(here, there, "run-7")
    assert there.verify("run-7") == 5
    assert there.changes("run-7", 1, 9) == here.changes("run-7", 1, 9)


def test_a_store_that_there_is_not_has_no_name() -> None:
    assert words_of(AttributeError, getattr, stores, "FileStore") == (
        "module 'session.stores' has no attribute 'FileStore'"
    )


def test_a_store_that_cannot_be_copied_says_so(tmp_path: Path) -> None:
    here, there = MemoryStore(), FolderStore(tmp_path)
    for source, target, method in ((here, there, "restore"), (there, here, "claims")):
        session = Session(session_id="run-7", store=source)
        session.publish(ToolInvoked("tool", {}, None))
        assert refused(partial(copy_session, source, target, "run-7")) == (
            f"FolderStore does not implement {method}: its sessions cannot be copied to or from another store"
        )
        source.delete("run-7")
    assert refused(partial(copy_session, here, there, "run-7")) == "the store holds no session 'run-7'"


# Random work, side by side

EXAMPLES = settings().max_examples
NAMES = ("run-7", "run-8", "run-9")


class Failure(tuple[str, str]):
    """The type of an error, and its words."""


class Hands:
    """Two processes on one place, each with a store and the sessions that it has open."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.folder, place = folder, PLACES[kind](folder)
        place.timeout = 30  # whatever else this machine does
        self.stores = [place.open() for _ in range(2)]
        self.sessions: list[dict[str, Session]] = [{}, {}]
        self.snapshots: list[Snapshot] = []

    def do(self, hand: int, name: str, work: str, number: int) -> Any:
        """The answer, or the error in its words."""
        try:
            if name not in self.sessions[hand]:
                self.sessions[hand][name] = open_session(self.stores[hand], name)
            return WORK[work](self, self.sessions[hand][name], name, number)
        except Exception as error:  # noqa: BLE001 - all of them must be the same
            return Failure((type(error).__name__, str(error).replace(str(self.folder), "")))

    def close(self) -> None:
        for store in self.stores:
            for name in NAMES:
                store.delete(name)
            store.close()


def store_of(session: Session) -> Store:
    assert session.store is not None
    return session.store


def marked(session: Session, number: int, **context: str) -> tuple[bool, str]:
    given = {"step_id": number % 4 + 1, "status": ("done", "in_progress")[number % 2]}
    result = call(session, "planning_mark_step", given, **context)
    return result.success, result.message


def history_of(session: Session, after: int) -> list[Any]:
    return [
        (
            (change.version, change.changed, change.actor, change.call_id, change.idempotency_key),
            [(type(event).__name__, getattr(event, "name", "")) for event in change.events],
        )
        for change in session.history(after)
    ]


def failing(session: Session) -> None:
    with suppress(ZeroDivisionError), session.transaction() as transaction:
        transaction.dispatch(Note("never"))
        raise ZeroDivisionError


def snapshot(hands: Hands, session: Session) -> Snapshot:
    hands.snapshots.append(Snapshot.from_json(session.snapshot().to_json()))
    return hands.snapshots[-1]


def rolled_back(hands: Hands, session: Session, number: int) -> Any:
    taken = hands.snapshots or [snapshot(hands, session)]
    session.rollback(taken[number % len(taken)])
    return state_of(session), numbered(session)


def opened_again(hands: Hands) -> None:
    for sessions in hands.sessions:
        sessions.clear()
    gc.collect()  # a session that is held by nothing is forgotten now, and not some time


def copied(session: Session, name: str) -> tuple[int, bool]:
    elsewhere = MemoryStore()
    head = copy_session(store_of(session), elsewhere, name)
    return head.version, elsewhere.verify(name) == store_of(session).verify(name)


def forked(session: Session, at: int, number: int) -> tuple[Any, ...]:
    fork = session.fork(at, session_id=NAMES[2 - number % 3])
    return fork.version, fork.session_id, state_of(fork), numbered(fork)


def late(session: Session, number: int) -> int:
    """A version, often one that is there."""
    return number % (session.version + 2)


WORK: dict[str, Callable[[Hands, Session, str, int], Any]] = {
    "set up": lambda _h, session, _n, _: call(session, *PLAN).message,
    "mark": lambda _h, session, _n, number: marked(session, number, call_id=f"c{number}", actor="clerk"),
    "mark once": lambda _h, session, _n, number: marked(session, number, idempotency_key=f"k{number % 3}"),
    "read": lambda _h, session, _n, _: call(session, "planning_read_plan", {}).message,
    "note": lambda _h, session, _n, number: session.dispatch(Note(str(number))),
    "count": lambda _h, session, _n, number: session.dispatch(Count(number % 4 - 1)),
    "ping": lambda _h, session, _n, number: session.publish(Ping(number)).ok,
    "fail": lambda _h, session, _n, _: failing(session),
    "rewind": lambda _h, session, _n, number: session.rewind(late(session, number), actor="host"),
    "at": lambda _h, session, _n, number: state_of(session.at(late(session, number))),
    "rewind too far": lambda _h, session, _n, _: session.rewind(session.version + 1),
    "look too far": lambda _h, session, _n, _: session.at(session.version + 1),
    "fork": lambda _h, session, _n, number: forked(session, late(session, number), number),
    "refresh": lambda _h, session, _n, _: (session.refresh(), state_of(session), numbered(session)),
    "claim": lambda _h, session, _n, number: session.claim(f"mail {number % 2}"),
    "delete": lambda _h, session, name, _: store_of(session).delete(name),
    "snapshot": lambda hands, session, _n, _: len(snapshot(hands, session).slices),
    "roll back": lambda hands, session, _n, number: rolled_back(hands, session, number),
    "reset": lambda _h, session, _n, _: session.reset(),
    "history": lambda _h, session, _n, number: history_of(session, late(session, number)),
    "find": lambda _h, session, _n, number: getattr(session.find_call(f"k{number % 3}"), "params", None),
    "checkpoints": lambda _h, session, name, number: [
        each.version for each in store_of(session).checkpoints(name, number, 3)
    ],
    "drop checkpoints": lambda _h, session, name, _: store_of(session).drop_checkpoints(name),
    "watch": lambda _h, session, name, number: [
        each.version for each in store_of(session).watch(name, late(session, number), timeout=0)
    ],
    "verify": lambda _h, session, name, _: store_of(session).verify(name),
    "sessions": lambda _h, session, _n, _: [
        (each.session_id, each.version, each.forked_from) for each in store_of(session).sessions()
    ],
    "copy": lambda _h, session, name, _: copied(session, name),
    "open again": lambda hands, _s, _n, _: opened_again(hands),
}


LAST = [(0, NAMES[0], "note", 0), (1, NAMES[0], "delete", 0), (0, NAMES[0], "note", 0)]
"""A session that is deleted by the other hand refuses, in each example."""


@pytest.mark.parametrize(
    ("kind", "cannot"),
    [("sqlite", ()), ("folder", ("copy",)), pytest.param("postgres", (), marks=pytest.mark.postgres)],
)
def test_stores_answer_as_the_one_in_memory(kind: str, cannot: tuple[str, ...], tmp_path: Path) -> None:
    reached = Counter[str]()
    often = ["set up", "mark", "mark", "mark once", "mark once", "note", "rewind", "fork", "refresh"]
    works = st.permutations([each for each in [*WORK, *often] if each not in cannot])
    places = st.tuples(st.integers(0, 1), st.sampled_from([NAMES[0], *NAMES[:2]]), st.integers(0, 20))

    @settings(max_examples=max(20, EXAMPLES // 2))
    @given(works, st.lists(places, min_size=len(WORK) + len(often), max_size=len(WORK) + len(often)))
    def check(work: list[str], places: list[tuple[int, str, int]]) -> None:
        with TemporaryDirectory() as folder, patch.object(stored, "CHECKPOINT", 3):
            path = tmp_path if kind == "postgres" else Path(folder)
            with closing(Hands("memory", Path(folder))) as others, closing(Hands(kind, path)) as hands:
                drawn = [(hand, name, each, at) for each, (hand, name, at) in zip(work, places, strict=False)]
                for order in [(0, NAMES[0], "set up", 0), *drawn, *LAST]:
                    answer, each = hands.do(*order), order[2]
                    assert (order, answer) == (order, others.do(*order))
                    reached[f"{each} {answer[0]}" if isinstance(answer, Failure) else each] += 1

    check()
    expected = [each for each in WORK if not each.endswith("too far") and each not in cannot]
    expected += ["rewind too far VersionError", "look too far VersionError"]
    expected += ["fork StoreError", "note StoreError", "count ValueError"]
    assert [each for each in expected if not reached[each]] == []
