"""Where sessions are kept: in memory, in a file, or in a database.

A store saves only text; the session interprets it.

To write your own store, subclass ``Store``. It saves ``StoredSession``, ``StoredChange`` and ``Checkpoint``,
raises the errors that ``stale``, ``nested``, ``locked`` and ``no_session`` return, and calls ``refuse_copy``.
``planning.testing.StoreSuite`` has the tests that it must pass.

``PostgresStore`` is loaded on first use: it needs psycopg.
"""

from typing import TYPE_CHECKING, Any

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
    "chained",
    "copy_session",
    "locked",
    "nested",
    "no_session",
    "refuse_copy",
    "stale",
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
