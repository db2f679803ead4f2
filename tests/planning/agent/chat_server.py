"""A server of the chat-completions protocol with given replies, which keeps the requests."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


def failure(message: str) -> dict[str, Any]:
    """An error as a server of the protocol sends it."""
    return {"error": {"message": message, "type": "some_error", "param": None, "code": None}}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 10
    server: _Server

    def do_POST(self) -> None:
        chat = self.server.chat
        body = self.rfile.read(int(self.headers["content-length"]))
        sent = {"path": self.path, "key": self.headers["authorization"], "body": json.loads(body)}
        chat.requests.append(sent)
        chat.next_reply()(self)

    def send(self, body: bytes, status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"content_type": "application/json", **headers}.items():
            if value:
                self.send_header(name.replace("_", "-"), value)
        if "content_length" not in headers:
            self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """It says nothing."""


Reply = Callable[[Handler], None]


def reply(body: Any, status: int = 200, **headers: str) -> Reply:
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return lambda handler: handler.send(data, status, **headers)


def says(text: Any, finish_reason: str = "stop", **message: Any) -> Reply:
    said = {"role": "assistant", "content": text, **message}
    choice = {"index": 0, "finish_reason": finish_reason, "message": said}
    about = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "local"}
    return reply({**about, "choices": [choice]})


def is_silent(handler: Handler) -> None:
    """It does not answer for as long as it runs."""
    handler.server.chat.over.wait()
    handler.close_connection = True


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    chat: ChatServer

    def handle_error(self, *_: Any) -> None:
        """A client may have gone: some tests are about that."""


class ChatServer:
    """Runs in a thread, on this machine alone, while its block lasts."""

    def __init__(self, *replies: Reply) -> None:
        """Say how it answers: each request has one reply, and the last one is for all others too."""
        self.requests: list[dict[str, Any]] = []
        self.over = threading.Event()
        self._replies = list(replies)
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), Handler)
        self._server.chat = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    @property
    def url(self) -> str:
        return f"http://{self.host}/v1"

    def next_reply(self) -> Reply:
        with self._lock:
            return self._replies.pop(0) if len(self._replies) > 1 else self._replies[0]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.over.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
