"""What can go wrong in a session, as typed exceptions."""

from __future__ import annotations

__all__ = ["ReducerError", "SessionError", "SnapshotError", "TransactionError"]


class SessionError(Exception):
    """Base of every error that this package raises on purpose."""


class ReducerError(SessionError):
    """A reducer broke its contract: it must return a tuple."""


class TransactionError(SessionError):
    """A transaction was used from a place that does not hold it."""


class SnapshotError(SessionError, ValueError):
    """A snapshot cannot be written or read; the text names the place and the remedy."""
