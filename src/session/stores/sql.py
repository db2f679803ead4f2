"""The part that is the same in all SQL stores: the tables, and the statements on them."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, ClassVar

from session.errors import StoreError, shown
from session.events import SessionId
from session.stores.base import Store
from session.stores.chain import (
    Checkpoint,
    StoredChange,
    StoredSession,
    check_of,
    key_of,
    no_session_error,
    refuse_copy,
)

Run = Callable[..., Any]
"""Runs a statement with its values, and returns a cursor. A table is ``{s}name``, a value is ``?``."""
IsThere = Callable[[Run], bool]
"""Looks whether the store has what was written."""

CHANGE = "INSERT INTO {s}changes VALUES (?, ?, ?, ?, ?, ?)"
CHECKPOINT = (
    "INSERT INTO {s}checkpoints VALUES (?, ?, ?, ?)"
    " ON CONFLICT (session, version) DO UPDATE SET text = excluded.text, checked = excluded.checked"
)
_BEGIN_HEAD = "INSERT INTO {s}sessions VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
_CLAIM = "INSERT INTO {s}claims VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
CHECKPOINTS = (
    "SELECT version, CAST(text AS TEXT), checked FROM {s}checkpoints"
    " WHERE session = ? AND version <= ? ORDER BY version DESC LIMIT ?"
)
REWINDS = (
    "SELECT version, rewound_to FROM {s}changes WHERE session = ? AND rewound_to IS NOT NULL ORDER BY version"
)
CHANGES = "SELECT {} FROM {{s}}changes WHERE session = ? AND version BETWEEN ? AND ? ORDER BY version"
_ROW = "SELECT id, version, hash, changed_at, about, checked FROM {s}sessions WHERE key = ?"
_PATIENCE = 0.5  # seconds in which an answer that is lost is asked for again
_ALL = 2**62  # more rows than there are


class SqlStore(Store):
    """Reads and writes the tables of sessions; how a database is locked and asked is each store's own."""

    where: ClassVar[str]
    """The kind of place that has the tables, as messages call it."""
    change_columns: ClassVar[str] = "version, text, hash, idempotency_key, rewound_to"
    """The columns of a ``StoredChange``."""
    claim_row: ClassVar[str]
    """The columns that show whether a claim is the one that was written, and not another process's."""

    def __init__(self) -> None:
        super().__init__()
        self._known: tuple[tuple[Any, ...], StoredSession | None] = ((), None)
        self._claimed: dict[tuple[str, str], object] = {}  # claims whose caller has no answer: their rows

    @abstractmethod
    def _querying(self) -> AbstractContextManager[Run]:
        """A connection that reads: in this thread's transaction, if it is in one."""

    @abstractmethod
    def _writing(self, session_id: SessionId, is_there: IsThere) -> AbstractContextManager[Run]:
        """A connection that writes, with a session's lock; committed at the end of the block, and settled."""

    @abstractmethod
    def _asking(self, session_id: SessionId | None) -> AbstractContextManager[Run]:
        """A connection that reads after a commit was answered by an error; every error is a StoreError."""

    # Writing

    def _settle(
        self, session_id: SessionId | None, is_there: IsThere, refusal: StoreError, cause: BaseException
    ) -> None:
        """Look for what was written where the answer to its commit is an error; raises if it is not there."""
        until = time.monotonic() + _PATIENCE
        while True:
            try:
                with self._asking(session_id) as run:
                    found = is_there(run)
            except StoreError:  # what has ended the commit may end this, too
                if time.monotonic() < until:
                    continue
                refusal.outcome = "unknown"
                raise refusal from cause
            if not found:
                raise refusal from cause
            return

    def _is_appended(self, head: StoredSession, change: StoredChange | None, run: Run) -> bool:
        if change is None:
            return self._row(run, head.session_id) == head.row()
        statement = "SELECT hash FROM {s}changes WHERE session = ? AND version = ?"
        found: object = run(statement, key_of(head.session_id), head.version).fetchone()
        return found == (change.hash,)

    def drop_checkpoints(self, session_id: SessionId) -> None:
        """Forget the checkpoints of a session; see ``Store.drop_checkpoints``."""
        key, left = key_of(session_id), "SELECT version FROM {s}checkpoints WHERE session = ? LIMIT 1"
        with self._writing(session_id, lambda run: run(left, key).fetchone() is None) as run:
            run("DELETE FROM {s}checkpoints WHERE session = ?", key)

    def claim(self, session_id: SessionId, name: str) -> bool:
        """Record a name, durably; see ``Store.claim``."""
        who, mine = (str(session_id), name), None
        found = f"SELECT {self.claim_row} FROM {{s}}claims WHERE id = ? AND name = ?"  # noqa: S608 - a constant
        with self._writing(session_id, lambda run: run(found, *who).fetchone() == mine) as run:
            head = self._head(run, session_id)
            row = (*who, 0 if head is None else head.version)
            is_new = bool(run(_CLAIM, *row, check_of(row)).rowcount)
            mine = run(found, *who).fetchone()
            is_new = is_new or mine == self._claimed.get(who)
            if is_new:
                self._claimed[who] = mine
        self._claimed.pop(who, None)
        return is_new

    def copy(self, source: SessionId, fork: StoredSession) -> None:
        """Begin a session with the changes of another; see ``Store.copy``."""
        with self._writing(source, partial(self._is_appended, fork, None)) as run:
            head = self._head(run, source)
            if head is None:
                raise no_session_error(source)
            refuse_copy(head, fork, None)  # what the store has under its id is found as it begins
            self._begin_session(run, fork)
            for table, columns in (
                ("changes", "version, text, hash, rewound_to, idempotency_key"),
                ("checkpoints", "version, text, checked"),
            ):
                copied = f"SELECT ?, {columns} FROM {{s}}{table} WHERE session = ? AND version <= ?"  # noqa: S608 - constants
                new, old = key_of(fork.session_id), key_of(source)
                run(f"INSERT INTO {{s}}{table} {copied}", new, old, fork.version)
            early = [claim for claim in self.claims(source) if claim[1] <= fork.version]
            _write_claims(run, fork.session_id, early)

    def restore(
        self,
        head: StoredSession,
        changes: Iterable[StoredChange],
        checkpoints: Iterable[Checkpoint],
        claims: Iterable[tuple[str, int]],
    ) -> None:
        """Begin a session that another store has; see ``Store.restore``."""
        key = key_of(head.session_id)
        with self._writing(head.session_id, partial(self._is_appended, head, None)) as run:
            self._begin_session(run, head)
            for change in changes:
                run(CHANGE, *change_row(key, change))
            for each in checkpoints:
                run(CHECKPOINT, key, each.version, each.text, each.check)
            _write_claims(run, head.session_id, claims)

    def _begin_session(self, run: Run, head: StoredSession) -> None:
        """Write the record of a session that has none."""
        if not run(_BEGIN_HEAD, key_of(head.session_id), *head.row()).rowcount:
            refuse_copy(head, head, head)

    def delete(self, session_id: SessionId) -> bool:
        """Delete a session; see ``Store.delete``."""
        there: tuple[Any, ...] | None = None
        key = key_of(session_id)
        with self._writing(
            session_id, lambda run: there is None or self._row(run, session_id) != there
        ) as run:
            there = self._row(run, session_id)
            run("DELETE FROM {s}sessions WHERE key = ?", key)
            run("DELETE FROM {s}changes WHERE session = ?", key)
            run("DELETE FROM {s}checkpoints WHERE session = ?", key)
            run("DELETE FROM {s}claims WHERE id = ?", str(session_id))
        super().delete(session_id)
        return there is not None

    # Reading

    def verify(self, session_id: SessionId) -> int:
        """Check all that is kept of a session, its claims too; see ``Store.verify``."""
        with self.reading():
            versions = super().verify(session_id)
            self.claims(session_id)
        return versions

    def head(self, session_id: SessionId) -> StoredSession | None:
        """The record of a session; see ``Store.head``."""
        with self._querying() as run:
            return self._head(run, session_id)

    def changes(self, session_id: SessionId, first: int, last: int) -> Sequence[StoredChange]:
        """The changes from a version to another; see ``Store.changes``."""
        rows = self._select(CHANGES.format(self.change_columns), key_of(session_id), first, last)
        return [StoredChange(*row) for row in rows]

    def checkpoints(self, session_id: SessionId, last: int, limit: int) -> Sequence[Checkpoint]:
        """The newest checkpoints up to a version; see ``Store.checkpoints``."""
        rows = self._select(CHECKPOINTS, key_of(session_id), last, limit)
        return [Checkpoint(*row) for row in rows]

    def with_key(self, session_id: SessionId, key: str) -> Sequence[int]:
        """The versions that have a key; see ``Store.with_key``."""
        rows = self._select(
            "SELECT version FROM {s}changes WHERE session = ? AND idempotency_key = ? ORDER BY version DESC",
            *(key_of(session_id), key),
        )
        return [version for (version,) in rows]

    def rewinds(self, session_id: SessionId) -> Sequence[tuple[int, int]]:
        """The rewinds of a session; see ``Store.rewinds``."""
        return self._select(REWINDS, key_of(session_id))

    def claims(self, session_id: SessionId) -> Sequence[tuple[str, int]]:
        """The claims of a session; see ``Store.claims``."""
        rows = self._select("SELECT id, name, version, checked FROM {s}claims WHERE id = ?", str(session_id))
        for *values, checked in rows:
            if checked != check_of(tuple(values)):
                raise StoreError(
                    f"the claim {shown(values[1])} of the session is damaged: "
                    f"restore the {self.where} from a copy"
                )
        return [(name, version) for _, name, version, _ in rows]

    def sessions(self, limit: int | None = None) -> Sequence[StoredSession]:
        """The sessions that were changed last; see ``Store.sessions``."""
        rows = self._select(
            "SELECT id, version, hash, changed_at, about, checked FROM {s}sessions"
            " ORDER BY changed_at DESC LIMIT ?",
            _ALL if limit is None else limit,
        )
        return [StoredSession.listed(row) for row in rows]

    def _head(self, run: Run, session_id: SessionId) -> StoredSession | None:
        row = self._row(run, session_id)
        if row is not None:
            return self._make_session(row, session_id)
        # In one statement: the session may begin between two.
        lost = (
            "SELECT 1 FROM {s}changes WHERE session = ? AND session NOT IN (SELECT key FROM {s}sessions"
            " WHERE key = ?) LIMIT 1"
        )
        if run(lost, key_of(session_id), key_of(session_id)).fetchone():
            raise StoreError(
                f"the record of session {shown(str(session_id))} is missing: the {self.where} is damaged"
            )
        return None

    def _row(self, run: Run, session_id: SessionId) -> tuple[Any, ...] | None:
        """The record of a session, whatever is in it."""
        row: tuple[Any, ...] | None = run(_ROW, key_of(session_id)).fetchone()
        return row

    def _make_session(self, row: tuple[Any, ...], session_id: SessionId) -> StoredSession:
        """The session of a row."""
        known, found = self._known
        if found is None or row != known:
            found = StoredSession.of(row)
            self._known = (row, found)
        if str(found.session_id) != str(session_id):
            raise StoreError(f"the record of session {shown(str(session_id))} is damaged")
        return found

    def _select(self, statement: str, *values: Any) -> list[Any]:
        with self._querying() as run:
            rows: list[Any] = run(statement, *values).fetchall()
            return rows


def change_row(key: int, change: StoredChange) -> tuple[Any, ...]:
    """The columns of a change."""
    return (key, change.version, change.text, change.hash, change.rewound_to, change.idempotency_key)


def _write_claims(run: Run, session_id: SessionId, claims: Iterable[tuple[str, int]]) -> None:
    for row in ((str(session_id), *claim) for claim in claims):
        run(_CLAIM, *row, check_of(row))
