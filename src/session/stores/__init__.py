"""Where sessions are kept: in memory, or in a file.

A store deals in text alone: what the text means is the session's business. A further store is a subclass of
``Store``.
"""

from session.errors import StaleVersion, StoreBusy, StoreError
from session.stores.base import Store
from session.stores.chain import Checkpoint, StoredChange, StoredSession
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
]
