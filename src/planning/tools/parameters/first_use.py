"""The first use of a type: only one thread at a time may let msgspec look at types that it does not know.

msgspec reads a type when it first converts into it, and keeps what it read on the type. Of two threads that
meet there, both may crash the interpreter. So every type is got to know here before anything else uses it.
"""

from __future__ import annotations

from contextlib import suppress
from threading import Lock
from typing import Any

import msgspec

__all__ = ["get_to_know"]

_GETTING_TO_KNOW = Lock()
_NO_VALUE = object()


def get_to_know(*types: Any) -> None:
    """Let msgspec look at types, or type hints, for the first time; no code of theirs runs.

    Raises:
        TypeError: msgspec cannot convert into one of them.
    """
    with _GETTING_TO_KNOW:
        for each in types:
            try:
                with suppress(msgspec.ValidationError):  # no type takes it; that it was looked at is enough
                    msgspec.convert(_NO_VALUE, each)
            except Exception as error:  # noqa: BLE001 - whatever msgspec stumbles over, it does so each time
                reason = str(error).splitlines()[-1]
                raise TypeError(f"{_name(each)} cannot be described as JSON: {reason}") from None


def _name(kind: Any) -> str:
    kind = getattr(kind, "__kind__", kind)  # a twin is called what the type is called
    return str(getattr(kind, "__name__", kind))
