"""The suite that every store must pass: on the stores that are here, and on some that break it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    """The suite on a place."""

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


class Hasty(MemoryStore):
    """Takes a change whatever version it is for."""

    def append(self, head: StoredSession, change: Any, *, expected: int, checkpoint: Any = None) -> None:
        found = self.head(head.session_id)
        super().append(head, change, expected=0 if found is None else found.version, checkpoint=checkpoint)


class Halved(MemoryStore):
    """Keeps the checkpoint of a change that it refuses."""

    def append(self, head: StoredSession, change: Any, *, expected: int, checkpoint: Any = None) -> None:
        if checkpoint is not None and str(head.session_id) in self._kept:
            self._kept[str(head.session_id)].checkpoints.append(checkpoint)
            checkpoint = None
        super().append(head, change, expected=expected, checkpoint=checkpoint)


class Forgetful(MemoryStore):
    """Forgets the claims of a fork."""

    def copy(self, source: SessionId, fork: StoredSession) -> None:
        super().copy(source, fork)
        self._claims[str(fork.session_id)].clear()


class Backwards(MemoryStore):
    """Gives the oldest checkpoints."""

    def checkpoints(self, session_id: SessionId, last: int, limit: int) -> Sequence[Any]:
        return super().checkpoints(session_id, last, 10**9)[::-1][:limit]


class Oldest(MemoryStore):
    """Gives the oldest call of a key first."""

    def with_key(self, session_id: SessionId, key: str) -> Sequence[int]:
        return super().with_key(session_id, key)[::-1]


class Unsorted(MemoryStore):
    """Lists sessions as they began."""

    def sessions(self, limit: int | None = None) -> Sequence[StoredSession]:
        return [kept.head for kept in self._kept.values()][:limit]


class Torn(MemoryStore):
    """Leaves half of a session that was to be copied."""

    def restore(self, head: StoredSession, changes: Any, checkpoints: Any, claims: Any) -> None:
        super().restore(head, (), checkpoints, claims)
        self._kept[str(head.session_id)].changes.extend(changes)


class Open(MemoryStore):
    """Lets a thread into its own lock once more."""

    def lock(self, session_id: SessionId, timeout: float | None = None) -> Any:
        self._writer = None
        return super().lock(session_id, timeout)


BROKEN = {
    Hasty: "test_a_change_for_another_version_is_refused_whole",
    Halved: "test_a_change_for_another_version_is_refused_whole",
    Forgetful: "test_a_copy_has_what_was_there_up_to_its_version_and_outlives_its_source",
    Backwards: "test_a_store_has_what_was_appended_and_nothing_else",
    Oldest: "test_a_key_finds_its_call_on_the_present_branch",
    Unsorted: "test_sessions_are_listed_newest_first",
    Torn: "test_a_session_is_copied_to_another_store_and_back_with_its_hashes",
    Open: "test_a_lock_keeps_other_writers_away_and_is_not_taken_twice",
}


@pytest.mark.parametrize("broken", BROKEN, ids=lambda kind: kind.__name__)
def test_the_suite_finds_a_store_that_breaks_a_promise(broken: type[MemoryStore]) -> None:
    suite, place = TestMemoryStore(), MemoryPlace(Path())
    place.store = broken(timeout=1)
    suite.place = place
    with pytest.raises(AssertionError):
        getattr(suite, BROKEN[broken])()


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
