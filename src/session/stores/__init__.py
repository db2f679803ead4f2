"""Where sessions are kept: in memory, or in a file.

A store deals in text alone: what the text means is the session's business.

A store of your own is a subclass of ``Store``. It deals in ``StoredSession``, ``StoredChange`` and
``Checkpoint``, raises the errors that ``stale``, ``nested``, ``locked`` and ``no_session`` return, and calls
``refuse_copy``. ``planning.testing.StoreSuite`` has the tests that it must pass.
"""

from session.errors import StaleVersion, StoreBusy, StoreError, locked
from session.stores.base import Store
from session.stores.chain import (
    Checkpoint,
    StoredChange,
    StoredSession,
    chained,
    nested,
    no_session,
    refuse_copy,
    stale,
)
from session.stores.copying import copy_session
from session.stores.memory import MemoryStore
from session.stores.sqlite import SqliteStore
from session.stores.watch import Watch

__all__ = [
    "Checkpoint",
    "MemoryStore",
    "SqliteStore",
    "StaleVersion",
    "Store",
    "StoreBusy",
    "StoreError",
    "StoredChange",
    "StoredSession",
    "Watch",
    "chained",
    "copy_session",
    "locked",
    "nested",
    "no_session",
    "refuse_copy",
    "stale",
]
