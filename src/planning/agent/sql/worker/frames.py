"""Values through a pipe: each is a frame, its length first.

marshal is the quickest there is for plain values. Both ends are this package under one interpreter, and the
reader started the writer: nobody else writes into the pipe.
"""

from __future__ import annotations

import marshal
import os
import struct
from typing import Any

__all__ = ["HEAD", "frame", "length_of", "read_frame", "unframed"]

HEAD = 4
_LENGTH = struct.Struct("<I")


def frame(value: Any) -> bytes:
    """A value as it goes through the pipe."""
    content = marshal.dumps(
        value, 2
    )  # later versions look for what is there twice, which costs as much again
    return _LENGTH.pack(len(content)) + content


def length_of(head: bytes | bytearray | memoryview) -> int:
    """How many bytes follow the first four of a frame."""
    length: int = _LENGTH.unpack(head)[0]
    return length


def unframed(content: bytes | bytearray | memoryview) -> Any:
    """The value of a frame without its head."""
    return marshal.loads(content)  # noqa: S302 - it comes from a process of this package


def read_frame(descriptor: int) -> Any:
    """The next value out of a pipe; no more is read, so that the pipe can be waited on for the one after.

    Raises:
        EOFError: The other end has gone.
    """
    return unframed(_read(descriptor, length_of(_read(descriptor, HEAD))))


def _read(descriptor: int, size: int) -> bytes:
    content = b""
    while len(content) < size:
        part = os.read(descriptor, size - len(content))
        if not part:
            raise EOFError
        content += part
    return content
