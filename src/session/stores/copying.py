"""Copying sessions from one store to another."""

from __future__ import annotations

from collections.abc import Iterator

from session.events import SessionId
from session.stores.base import Store
from session.stores.chain import Checkpoint, StoredChange, StoredSession, no_session_error

_BATCH = 256  # changes that are in memory at a time


def copy_session(source: Store, target: Store, session_id: SessionId) -> StoredSession:
    """Copy a session to another store, with its history, hashes, checkpoints and claims.

    What is copied is the session of one moment, also beside a writer, and found sound by ``Store.verify``.
    The target takes all of it, or nothing.

    Returns:
        The session as it was copied.

    Raises:
        StoreError: The source has no such session, or a damaged one; or the target has a session of that id,
            or does not take it.
    """
    with source.reading():
        head = source.head(session_id)
        if head is None:
            raise no_session_error(session_id)
        last = source.verify(session_id)
        changes, checkpoints = _changes(source, session_id, last), _checkpoints(source, session_id, last)
        target.restore(head, changes, checkpoints, source.claims(session_id))
    return head


def _changes(source: Store, session_id: SessionId, last: int) -> Iterator[StoredChange]:
    for first in range(1, last + 1, _BATCH):
        yield from source.changes(session_id, first, min(first + _BATCH - 1, last))


def _checkpoints(source: Store, session_id: SessionId, last: int) -> Iterator[Checkpoint]:
    """The checkpoints up to a version, newest first; each may be long."""
    while found := source.checkpoints(session_id, last, 1):
        yield found[0]
        last = found[0].version - 1
