"""A proxy on loopback that cuts a connection before a message."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_ABORT = struct.pack("ii", 1, 0)  # SO_LINGER: closed with a reset


class CuttingProxy:
    """Hands on what two sides send; cuts every connection before the last of so many ``messages``."""

    def __init__(self, server: tuple[str, int]) -> None:
        self._server = server
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.messages: int | None = None
        self.passed = 0
        self.cuts = 0
        self.is_silent = False  # it keeps what it gets, as a pooler does while its server is away
        self._lock = threading.Lock()
        self._ends: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listening.close()
        self._cut()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                try:
                    server = socket.create_connection(self._server)
                except OSError:
                    client.close()
                    continue
                with self._lock:
                    self._ends |= {client, server}
                for one, other in ((client, server), (server, client)):
                    threading.Thread(target=self._pass, args=(one, other), daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(65536):
                with self._lock:
                    self.passed += 1
                    self.messages = None if self.messages is None else self.messages - 1
                    is_cut = self.messages == 0
                while self.is_silent:
                    time.sleep(0.01)
                if is_cut:
                    self.cuts += 1
                    self._cut()
                else:
                    other.sendall(data)
        for end in (one, other):
            with self._lock:
                self._ends.discard(end)
            end.close()

    def _cut(self) -> None:
        with self._lock:
            ends, self._ends = self._ends, set()
        for end in ends:
            with suppress(OSError):
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _ABORT)
                end.shutdown(socket.SHUT_RDWR)


@contextmanager
def cutting(port: int) -> Iterator[CuttingProxy]:
    proxy = CuttingProxy(("127.0.0.1", port))
    try:
        yield proxy
    finally:
        proxy.close()
