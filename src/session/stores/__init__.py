"""Where sessions are kept: in memory, in a file, or in a database.

A store deals in text alone: what the text means is the session's business. A further store is a subclass of
``Store``. ``PostgresStore`` is loaded when it is first used: it needs psycopg.
"""

from typing import TYPE_CHECKING, Any

from session.errors import StaleVersion, StoreBusy, StoreError
from session.stores.base import Store
from session.stores.chain import Checkpoint, StoredChange, StoredSession
from session.stores.memory import MemoryStore
from session.stores.sqlite import SqliteStore
from session.stores.watch import Watch

if TYPE_CHECKING:
    from session.stores.postgres import PostgresStore

__all__ = [
    "Checkpoint",
    "MemoryStore",
    "PostgresStore",
    "SqliteStore",
    "StaleVersion",
    "Store",
    "StoreBusy",
    "StoreError",
    "StoredChange",
    "StoredSession",
    "Watch",
]


def __getattr__(name: str) -> Any:
    if name != "PostgresStore":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from session.stores.postgres import PostgresStore  # noqa: PLC0415 - psycopg is an extra
    except ImportError as error:
        raise ImportError(
            "PostgresStore needs psycopg, its pool and libpq: pip install 'session-planning[postgres]' "
            "'psycopg[binary]'"
        ) from error
    return PostgresStore
