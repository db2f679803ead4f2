"""Messages through a socket: each is bytes, its length first."""

from __future__ import annotations

import os
import select
import struct
from collections.abc import Callable

__all__ = ["Channel", "framed", "read_frame"]

_HEAD = struct.Struct("<Q")
_CHUNK = 1 << 20


def framed(content: bytes) -> bytes:
    """A message as it goes through the socket."""
    return _HEAD.pack(len(content)) + content


def read_frame(read: Callable[[int], bytes]) -> bytes:
    """The next message.

    Args:
        read: Gives at most so many bytes, and none at the end.

    Raises:
        EOFError: The other end is gone.
    """
    (size,) = _HEAD.unpack(_exactly(read, _HEAD.size))
    return _exactly(read, size)


def _exactly(read: Callable[[int], bytes], size: int) -> bytes:
    parts = []
    while size:
        part = read(min(size, _CHUNK))
        if not part:
            raise EOFError
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


class Channel:
    """The end of a channel that a worker has."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._messages = select.poll()
        self._messages.register(descriptor, select.POLLIN)

    def receive(self) -> bytes:
        """The next message; no more is read, so that ``has_message`` knows of the one after.

        Raises:
            EOFError: The other end is gone.
        """
        return read_frame(self._read)

    def send(self, content: bytes) -> None:
        """Send a message.

        Raises:
            ConnectionError: The other end is gone.
        """
        left = memoryview(framed(content))
        while left:
            left = left[os.write(self._descriptor, left) :]

    def has_message(self, seconds: float) -> bool:
        """Whether there is something to receive, or the end, within so many seconds."""
        return bool(self._messages.poll(seconds * 1000))

    def wait_for_end(self, parent: int, seconds: float) -> None:
        """Wait until the other end is gone, whatever the rest of this process does.

        The end of the parent closes its socket at once, unless a process that it forked holds a copy: then
        this process has another parent by the next look. (A signal at the parent's death would come when the
        thread ends that started this process.)

        Args:
            parent: The id of the process at the other end.
            seconds: How long it is from one look at the parent to the next.
        """
        end = select.poll()
        end.register(self._descriptor, 0)  # no event is asked for: a hang-up is reported all the same
        while not end.poll(seconds * 1000) and os.getppid() == parent:
            pass

    def _read(self, size: int) -> bytes:
        return os.read(self._descriptor, size)
