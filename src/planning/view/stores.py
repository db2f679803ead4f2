"""A stored session as it was, and as it is: opened so that its plan and its workflow runs can be read."""

from __future__ import annotations

from pathlib import Path

from planning.suite import register_plan
from planning.workflow.run.records import register_workflow
from session import Session
from session.events import SessionId
from session.stores import SqliteStore, Store, StoredSession

__all__ = ["PastStore", "open_session"]


class PastStore(SqliteStore):
    """A store whose sessions can be opened as they were.

    Attributes:
        path: Its file.
        shown: The session as it is shown; None for as it is.
    """

    def __init__(self, path: str | Path) -> None:
        """Open a file, or begin one.

        Args:
            path: The file.

        Raises:
            StoreError: It cannot be opened, holds something else, or has a newer format.
        """
        super().__init__(path)
        self.path = Path(path)
        self.shown: StoredSession | None = None

    def head(self, session_id: SessionId) -> StoredSession | None:
        """What there is of a session, or what is shown of it."""
        return self.shown or super().head(session_id)

    def newest(self, session_id: SessionId) -> StoredSession | None:
        """What there is of a session."""
        return super().head(session_id)


def open_session(store: Store, identity: SessionId) -> Session:
    """Open a session so that its plan and its workflow runs can be read.

    Raises:
        StoreError: The store cannot be read.
    """
    session = Session(session_id=identity, store=store)
    register_plan(session)
    register_workflow(session)
    return session
