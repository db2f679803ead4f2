"""Stores of sessions: in memory, in a file, or in a database.

A store saves only text; the session interprets it.

To write your own store, subclass ``Store``. It saves ``StoredSession``, ``StoredChange`` and ``Checkpoint``,
raises what ``stale_error``, ``nested_error``, ``locked_error`` and ``no_session_error`` return, and calls
``refuse_copy``.
``planning.testing.StoreSuite`` has the tests that it must pass.

``PostgresStore`` is loaded on first use: it needs psycopg.
"""

from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from session.address import database_of, is_address
from session.errors import StaleVersion, StoreBusy, StoreError, locked_error
from session.stores.base import Store
from session.stores.chain import (
    Checkpoint,
    StoredChange,
    StoredSession,
    chain_hash,
    nested_error,
    no_session_error,
    refuse_copy,
    stale_error,
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
    "chain_hash",
    "copy_session",
    "locked_error",
    "nested_error",
    "no_session_error",
    "refuse_copy",
    "stale_error",
]

_opened: WeakValueDictionary[str, Store] = WeakValueDictionary()


def store_at(place: str | PathLike[str]) -> Store:
    """The store at a path or an address: the same one for as long as something uses it.

    Raises:
        StoreError: It cannot be opened.
        ImportError: psycopg is not installed.
    """
    name = fspath(place)
    key = name if is_address(name) else str(Path(name).absolute())
    store = _opened.get(key)
    if store is None:
        if is_address(name):
            address, schema = database_of(name)
            store = __getattr__("PostgresStore")(address, schema=schema)
        else:
            store = SqliteStore(name)
    return _opened.setdefault(key, store)


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
