"""The suite that every store must pass: on the stores that are here, and on some that break it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from examples.folder_store import FolderStore
from hypothesis import settings
from store_places import MemoryPlace, Place, PostgresPlace, SqlitePlace

from planning.testing import StoreSuite
from session import Session, SessionId, ToolInvoked
from session.stores import MemoryStore, Store, StoredSession, StoreError, copy_session


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


def hasty(self: Any, head: StoredSession, change: Any, *, expected: int, checkpoint: Any = None) -> None:
    found = self.head(head.session_id)
    there = 0 if found is None else found.version
    MemoryStore.append(self, head, change, expected=there, checkpoint=checkpoint)


def halved(self: Any, head: StoredSession, change: Any, *, expected: int, checkpoint: Any = None) -> None:
    if checkpoint is not None and str(head.session_id) in self._kept:
        self._kept[str(head.session_id)].checkpoints.append(checkpoint)
        checkpoint = None
    MemoryStore.append(self, head, change, expected=expected, checkpoint=checkpoint)


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
    ("append", halved, "test_a_change_for_another_version_is_refused_whole"),
    ("copy", forgetful, "test_a_copy_has_what_was_there_up_to_its_version_and_outlives_its_source"),
    ("checkpoints", backwards, "test_a_store_has_what_was_appended_and_nothing_else"),
    ("with_key", oldest_first, "test_a_key_finds_its_call_on_the_present_branch"),
    ("sessions", unsorted, "test_sessions_are_listed_newest_first"),
    ("restore", torn, "test_a_session_is_copied_to_another_store_and_back_with_its_hashes"),
    ("lock", open_to_its_thread, "test_a_lock_keeps_other_writers_away_and_is_not_taken_twice"),
]


@pytest.mark.parametrize(("method", "broken", "test"), BROKEN)
def test_the_suite_finds_a_store_that_breaks_a_promise(
    method: str, broken: Callable[..., Any], test: str
) -> None:
    suite, place = TestMemoryStore(), MemoryPlace(Path())
    place.store = type("Broken", (MemoryStore,), {method: broken})(timeout=1)
    suite.place = place
    with pytest.raises(AssertionError):
        getattr(suite, test)()


def test_a_store_that_cannot_be_copied_says_so(tmp_path: Path) -> None:
    here, there = MemoryStore(), FolderStore(tmp_path)
    for source, target, method in ((here, there, "restore"), (there, here, "claims")):
        session = Session(session_id="run-7", store=source)
        session.publish(ToolInvoked("tool", {}, None))
        with pytest.raises(StoreError) as caught:
            copy_session(source, target, "run-7")
        assert str(caught.value) == (
            f"FolderStore does not implement {method}: its sessions cannot be copied to or from another store"
        )
        source.delete("run-7")
    with pytest.raises(StoreError, match=r"^the store holds no session 'run-7'$"):
        copy_session(here, there, "run-7")
