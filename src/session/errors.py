"""The exceptions of sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

_MOST_MESSAGE = 2_000
_MOST_VALUE = 120


class SessionError(Exception):
    """The base of every error that this package raises on purpose."""


class IdentityError(SessionError, ValueError):
    """A session id is malformed, missing, or belongs to another session already."""


class ReducerError(SessionError):
    """A reducer broke its contract: it must return a tuple."""


class TransactionError(SessionError):
    """A transaction was used outside its block, or from another thread or task."""


class SessionBusyError(TransactionError):
    """Another asyncio task of this thread holds a transaction of the session open."""


class VersionError(SessionError, ValueError):
    """A session has no such version, or no longer keeps it."""


class SnapshotError(SessionError, ValueError):
    """A snapshot cannot be written or read; the message names the place and the remedy.

    The message quotes what was read, so it is cut to 2,000 characters.
    """

    def __init__(self, message: str) -> None:
        super().__init__(_cut(message, _MOST_MESSAGE))


class StoreError(SessionError):
    """A store refused a change, or lacks what a session needs; the message says what to do.

    Attributes:
        outcome: ``refused``: nothing has changed. ``unknown``: the answer to a commit was lost, and the store
            could not be asked whether it has the change.
        version: The version that is damaged or cannot be read, if there is one.
    """

    def __init__(
        self,
        message: str,
        *,
        outcome: Literal["refused", "unknown"] = "refused",
        version: int | None = None,
    ) -> None:
        super().__init__(_cut(message, _MOST_MESSAGE))
        self.outcome = outcome
        self.version = version


class RecordError(StoreError):
    """A value has no JSON form, or JSON does not match a value's type."""

    def __init__(self, reason: str, place: str = "") -> None:
        """Make the error."""
        super().__init__(f"{place}: {reason}" if place else reason)
        self._reason = reason
        self._place = place

    def inside(self, place: str) -> RecordError:
        """The same error for the whole value, if the one with the error is a part of it."""
        return RecordError(self._reason, place + self._place)


class StoreBusy(StoreError):
    """Another program or thread is writing to the store: nothing has changed, try again."""


def locked_error(seconds: float) -> StoreBusy:
    """The error of ``Store.lock`` when another writer holds the lock for longer than these seconds."""
    return StoreBusy(
        f"another worker or program has been writing to the store for more than {seconds:g} s: try again"
    )


class StaleVersion(StoreError):
    """Another writer has appended since the version that a change was made for."""


def shown(value: object) -> str:
    """A value as a message quotes it: its repr, cut where it is long."""
    try:
        # The repr of a long text is longer still: only what will be shown is spelled.
        text = repr(value[: _MOST_VALUE + 1] if isinstance(value, (str, bytes)) else value)
    except Exception:  # noqa: BLE001 - any object may be quoted, and its repr may fail in any way
        text = f"a {type(value).__name__}"
    return _cut(text, _MOST_VALUE)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else f"{text[:limit]}..."


def each_item(items: Iterable[Any], change: Callable[[Any], Any]) -> list[Any]:
    """Change every value of a list; an error names the index of the value."""
    changed = list[Any]()
    try:
        for item in items:
            changed.append(item if type(item) is str else change(item))
    except RecordError as error:
        raise error.inside(f"[{len(changed)}]") from error.__cause__
    return changed


def each_value(items: Mapping[str, Any], change: Callable[[Any], Any]) -> dict[str, Any]:
    """The same for the values of a dict."""
    changed = dict[str, Any]()
    for key, item in items.items():
        try:
            changed[key] = item if type(item) is str else change(item)
        except RecordError as error:
            place = f".{key}" if len(key) <= 80 and key.isprintable() else f"[{shown(key)}]"
            raise error.inside(place) from error.__cause__
    return changed
