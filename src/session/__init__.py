"""An event-bus session with typed, immutable slices.

Open a ``Session``, register reducers, publish events or dispatch values, and read the slices with
``select_all``, ``select_latest`` and ``select_where``.
"""

from session.bus import EventBus, InProcessEventBus, PublishResult, SubscriberFailure
from session.errors import (
    IdentityError,
    ReducerError,
    SessionBusyError,
    SessionError,
    SnapshotError,
    StoreError,
    TransactionError,
    VersionError,
)
from session.events import PromptExecuted, PromptRendered, SessionEvent, SessionId, ToolFailed, ToolInvoked
from session.history import Change, Commit, Reset, Rewound, RolledBack, SessionView
from session.reducers import (
    Reducer,
    append,
    append_part,
    keep_last,
    replace_latest,
    replace_latest_by,
    upsert_by,
)
from session.selectors import select_all, select_latest, select_where
from session.session import Session
from session.snapshot import Snapshot
from session.transaction import Transaction

__all__ = [
    "Session",
    "Snapshot",
    "Transaction",
    "Change",
    "Commit",
    "SessionView",
    "Rewound",
    "RolledBack",
    "Reset",
    "EventBus",
    "InProcessEventBus",
    "PublishResult",
    "SubscriberFailure",
    "SessionEvent",
    "SessionId",
    "ToolInvoked",
    "ToolFailed",
    "PromptRendered",
    "PromptExecuted",
    "Reducer",
    "append",
    "append_part",
    "keep_last",
    "upsert_by",
    "replace_latest",
    "replace_latest_by",
    "select_all",
    "select_latest",
    "select_where",
    "SessionError",
    "ReducerError",
    "TransactionError",
    "SessionBusyError",
    "IdentityError",
    "SnapshotError",
    "StoreError",
    "VersionError",
]
