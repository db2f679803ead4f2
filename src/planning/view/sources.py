"""Where the page finds sessions: in a store."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import attrs

from planning.view.deltas import Fields
from planning.view.document import Document
from planning.view.sessions import MOST_SESSIONS, read_session, session_fields
from planning.view.steer import HostCommand, steer
from planning.view.stores import open_session, open_store
from planning.view.text import line_of
from planning.view.timeline import Timeline
from session import IdentityError, StoreError
from session.events import SessionId, session_id_of

__all__ = ["Run", "StoreSource"]


@attrs.frozen
class Run:
    """A session that was opened.

    Attributes:
        document: What it did.
        moments: Its changes.
        stamp: Something that is another when it has changed; None while that is not known.
        close: Lets go of it.
    """

    document: Document
    moments: Timeline
    stamp: Callable[[], object | None]
    close: Callable[[], None]


class StoreSource:
    """The sessions of a store.

    Attributes:
        only: The session that is shown at once; None for a list.
    """

    def __init__(self, place: str | Path, only: str | None) -> None:
        """Open a store.

        Args:
            place: Its file, or the URL of its database.
            only: The session that is shown at once; None for that of a store with a single one, else a list.

        Raises:
            StoreError: It cannot be opened.
        """
        self._store = open_store(str(place))
        self._known: dict[str, Fields] = {}
        heads = self._store.sessions(2) if only is None else ()
        self.only = str(heads[0].session_id) if len(heads) == 1 else only

    def listed(self) -> Fields:
        """The sessions that were changed last, newest first; whether there are more; and what is wrong.

        A session is read again only when its version has changed.
        """
        try:
            self._store.require()
            with self._store.reading():
                return self._listed()
        except StoreError as error:
            return {"sessions": [], "more": False, "problem": line_of(error)}

    def _listed(self) -> Fields:
        heads, known = self._store.sessions(MOST_SESSIONS + 1), dict[str, Fields]()
        for head in heads[:MOST_SESSIONS]:
            name = str(head.session_id)
            found = self._known.get(name)
            is_same = found is not None and found["version"] == head.version and found["problem"] is None
            known[name] = found if found is not None and is_same else session_fields(self._store, head)
        self._known = known
        damage = next((head.damage for head in heads if head.damage is not None), None)
        return {"sessions": list(known.values()), "more": len(heads) > MOST_SESSIONS, "problem": damage}

    def stamp(self) -> object | None:
        """As in ``Run``, for the list."""
        return self._store.stamp()

    def open(self, name: str) -> Run:
        """Open a session.

        Raises:
            LookupError: There is no such session.
        """
        identity = self._identity(name)
        store = self._store.another()
        with store.reading():
            head = store.newest(identity)
            if head is None:
                raise LookupError(name)
            document, timeline = read_session(store, head, store.name)
        return Run(document, timeline, store.stamp, store.close)

    def steer(self, name: str, command: HostCommand, version: int) -> int:
        """Change the plan of a session as its host, as ``steer`` does.

        Raises:
            LookupError: There is no such session.
            PlanMoved: The plan is not what it was at that version.
            ToolValidationError: The command does not fit the plan.
            StoreError: The store cannot be read, or does not take the change.
        """
        identity = self._identity(name)
        with closing(self._store.another()) as store:
            if store.newest(identity) is None:
                raise LookupError(name)
            return steer(open_session(store, identity), command, version)

    def _identity(self, name: str) -> SessionId:
        try:
            identity = session_id_of(name)
        except IdentityError as error:
            raise LookupError(name) from error
        self._store.require()
        return identity
