"""A store of sessions in a folder: a file for each version, which is linked to its name once it is whole."""

import json
import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_OID, uuid4, uuid5

from attrs import astuple

from session import SessionId
from session.stores import (
    Checkpoint,
    Store,
    StoredChange,
    StoredSession,
    no_session_error,
    refuse_copy,
    stale_error,
)

ALL = 10**9


class FolderStore(Store):
    """Needs no lock, for a link to a name that is taken fails. What is committed outlives the process."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder, self.new = folder, folder / "+"  # a session id has no plus
        self.new.mkdir(parents=True, exist_ok=True)

    def head(self, session_id: SessionId) -> StoredSession | None:
        names = self._names(session_id, "v", ALL)
        return StoredSession.of(tuple(self._read(session_id, names[-1])[0])) if names else None

    def append(
        self,
        head: StoredSession,
        change: StoredChange | None,
        *,
        expected: int,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        known, version = self.head(head.session_id), head.version
        put = os.link if change else os.replace  # without a change, the newest version gets another head
        kept = [change] if change else self.changes(head.session_id, version, version)
        is_next = expected == (0 if known is None else known.version)
        data = (head.row(), [astuple(each) for each in kept])
        if not is_next or not self._write(head.session_id, f"v{version:09}", data, put):
            raise stale_error(expected, 0 if known is None else known.version)
        if checkpoint is not None:  # it is a cache, and may be missing
            self._write(head.session_id, f"c{version:09}", astuple(checkpoint), os.replace)

    def changes(self, session_id: SessionId, first: int, last: int) -> Sequence[StoredChange]:
        found = [
            self._read(session_id, name)[1] for name in self._names(session_id, "v", last, max(first, 1))
        ]
        return [StoredChange(*change) for (change,) in found]

    def checkpoints(self, session_id: SessionId, last: int, limit: int) -> Sequence[Checkpoint]:
        names = self._names(session_id, "c", last)[::-1][:limit]
        return [Checkpoint(*self._read(session_id, name)) for name in names]

    def drop_checkpoints(self, session_id: SessionId) -> None:
        for name in self._names(session_id, "c", ALL):
            (self.folder / str(session_id) / name).unlink(missing_ok=True)

    def with_key(self, session_id: SessionId, key: str) -> Sequence[int]:
        changes = self.changes(session_id, 1, ALL)[::-1]
        return [change.version for change in changes if change.idempotency_key == key]

    def rewinds(self, session_id: SessionId) -> Sequence[tuple[int, int]]:
        changes = self.changes(session_id, 1, ALL)
        return [(change.version, change.rewound_to) for change in changes if change.rewound_to is not None]

    def claim(self, session_id: SessionId, name: str) -> bool:
        head = self.head(session_id)
        data = (name, 0 if head is None else head.version)
        return self._write(session_id, f"n{uuid5(NAMESPACE_OID, name).int}", data, os.link)

    def copy(self, source: SessionId, fork: StoredSession) -> None:
        head = self.head(source)
        if head is None:
            raise no_session_error(source)
        refuse_copy(head, fork, self.head(fork.session_id))
        whole, there = f"+/{uuid4()}", self.folder / str(fork.session_id)
        for session_id in (fork.session_id, source):  # a name may be claimed before there is a session
            for name in self._names(session_id, "n", ALL**9):
                if self._read(session_id, name)[1] <= fork.version:
                    self._write(whole, name, self._read(session_id, name), os.link)
        for kind in "vc":
            for name in self._names(source, kind, fork.version):
                self._write(whole, name, self._read(source, name), os.link)
        changes = self.changes(source, fork.version, fork.version)
        self._write(whole, f"v{fork.version:09}", (fork.row(), list(map(astuple, changes))), os.replace)
        for name in self._names(fork.session_id, "n", ALL**9):
            (there / name).unlink()
        (self.folder / whole).rename(there)  # fails if another session came here meanwhile

    def sessions(self, limit: int | None = None) -> Sequence[StoredSession]:
        found = [self.head(path.name) for path in self.folder.iterdir()]
        heads = [head for head in found if head is not None]
        return sorted(heads, key=lambda head: head.changed_at, reverse=True)[:limit]

    def delete(self, session_id: SessionId) -> bool:
        was_there, gone = self.head(session_id) is not None, self.new / str(uuid4())
        with suppress(FileNotFoundError):
            (self.folder / str(session_id)).rename(gone)
            shutil.rmtree(gone)
        super().delete(session_id)
        return was_there

    def _names(self, session_id: SessionId, kind: str, last: int, first: int = 0) -> list[str]:
        names = sorted(path.name for path in (self.folder / str(session_id)).glob(f"{kind}*"))
        return [name for name in names if first <= int(name[1:]) <= last]

    def _read(self, session_id: SessionId, name: str) -> Any:
        text = (self.folder / str(session_id) / name).read_text()
        return json.loads(text, object_hook=lambda found: bytes.fromhex(found["bytes"]))

    def _write(self, session_id: SessionId, name: str, data: Any, put: Callable[[Path, Path], None]) -> bool:
        """Write a file, and put it into its place; False where the name is taken."""
        written, path = self.new / str(uuid4()), self.folder / str(session_id) / name
        written.write_text(json.dumps(data, default=lambda value: {"bytes": value.hex()}))
        path.parent.mkdir(exist_ok=True)
        try:
            put(written, path)
        except FileExistsError:
            return False
        finally:
            written.unlink(missing_ok=True)
        return True
