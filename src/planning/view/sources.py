"""Where the page finds sessions: in a store."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import attrs

from planning.observe.deltas import Fields
from planning.observe.stores import open_session, open_store
from planning.observe.text import line_of
from planning.observe.timeline import Timeline
from planning.view.document import Document
from planning.view.sessions import MOST_SESSIONS, Listed, listed, read_session
from planning.view.steer import HostCommand, steer
from session import IdentityError, StoreError
from session.events import SessionId, session_id_of
from session.stores import StoredSession

_MOMENT: Final = 0.5  # seconds


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
        self._known: dict[str, Listed] = {}
        heads = self._store.sessions(2) if only is None else ()
        self.only = str(heads[0].session_id) if len(heads) == 1 else only

    def listed(self) -> Fields:
        """The sessions that were changed last, newest first, as far as they can be read in a moment.

        A session is read again only when it has changed, or could not be read. ``reading`` is how many the
        next calls will read; ``more`` is whether the store has further sessions, ``problem`` what is wrong.
        """
        try:
            self._store.require()
            with self._store.reading():
                return self._listed()
        except StoreError as error:
            return {"sessions": [], "more": False, "problem": line_of(error), "reading": 0}

    def _listed(self) -> Fields:
        heads, now = self._store.sessions(MOST_SESSIONS + 1), datetime.now(UTC)
        known, unread, troubled = dict[str, Listed](), list[StoredSession](), list[StoredSession]()
        for head in heads[:MOST_SESSIONS]:
            name = str(head.session_id)
            found = self._known.get(name)
            if found is None or found.head != head:
                unread.append(head)
                found = Listed(head, None)
            elif found.problem is not None:
                troubled.append(head)
            known[name] = found.at(now)
        self._known, end, count = dict(known), time.monotonic() + _MOMENT, 0
        for each in listed(self._store, [*unread, *troubled], now):
            count += 1
            known[str(each.head.session_id)] = self._known[str(each.head.session_id)] = each
            if time.monotonic() > end:
                break
        for head in unread[count:]:
            del self._known[str(head.session_id)]
        return {
            "sessions": [each.fields for each in known.values()],
            "more": len(heads) > MOST_SESSIONS,
            "problem": next((head.damage for head in heads if head.damage is not None), None),
            "reading": max(0, len(unread) - count),
        }

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
