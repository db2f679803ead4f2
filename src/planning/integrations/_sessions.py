"""Which session a framework's state is about."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from threading import Lock

from planning.errors import ToolValidationError
from planning.integrations._rewind import Position, restored
from session import Session

__all__ = ["SessionSource", "SessionsOfStates"]

SessionSource = Session | Callable[[], Session | None]
_MOST = 1_000


class SessionsOfStates:
    """Finds the session of a state: the host's, or one in memory that the state itself holds.

    Of the latter, those used last are kept; any other is restored from its state.
    """

    def __init__(self, source: SessionSource | None) -> None:
        """Take the host's session, if there is one.

        Args:
            source: The session, a function that returns it, or None.
        """
        self._source = source
        self._kept: OrderedDict[tuple[str, str, str], Session] = OrderedDict()
        self._lock = Lock()

    def of(self, position: Position | None, thread: str) -> Session:
        """The session of a state.

        Args:
            position: The state's position; None for a state that has none yet.
            thread: The thread of the state: an id that a client sends is looked for in its own thread alone.

        Raises:
            ToolValidationError: The host's function returned None.
            SnapshotError: The session cannot be restored.
        """
        if self._source is None:
            return self._of_state(position, thread)
        session = self._source() if callable(self._source) else self._source
        if not isinstance(session, Session):
            raise ToolValidationError("no session for this call")
        return session

    def _of_state(self, position: Position | None, thread: str) -> Session:
        with self._lock:
            known = None if position is None else (thread, position["session_id"], position["since"])
            session = None if known is None else self._kept.get(known)
            if session is None:
                session = Session()
                if position is not None:
                    session.rollback(restored(position))
            own = (thread, str(session.session_id), session.created_at.isoformat())
            for key in (known, own):  # a restored session answers to the state it came from, too
                if key is not None:
                    self._kept[key] = session
                    self._kept.move_to_end(key)
            while len(self._kept) > _MOST:
                self._kept.popitem(last=False)
            return session
