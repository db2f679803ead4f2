"""A server in place of the page's own: a test says what it sends, and when it is gone."""

from __future__ import annotations

import json
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Condition, Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

from browser import Page

from planning.view.page import live_page, policy

Opened = Callable[..., Page]  # opens a page, in a window of a size


class _Requests(BaseHTTPRequestHandler):
    server: Stage

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        self.server.asked.append(self.path)
        if url.path == "/T/":
            page = live_page(json.dumps({"mode": "live", "base": "/T", "session": self.server.session}))
            self.answer("text/html", page)
        elif url.path.endswith(".json"):
            self.answer("application/json", json.dumps(self.server.run).encode())
        else:
            self.follow(int(parse_qs(url.query).get("after", ["0"])[0]))

    def answer(self, kind: str, body: bytes = b"") -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-security-policy", policy(is_live=True))
        self.end_headers()
        self.wfile.write(body)

    def follow(self, after: int) -> None:
        stage, generation = self.server, self.server.generation
        self.answer("text/event-stream")
        sent = 0
        while True:
            with stage.news:
                while stage.generation == generation and len(stage.events) == sent:
                    stage.news.wait()
                if stage.generation != generation:
                    return
                events, sent = stage.events[sent:], len(stage.events)
            for name, event in events:
                if name != "change" or event["v"] > after:
                    self.wfile.write(f"event: {name}\ndata: {json.dumps(event)}\n\n".encode())
                    self.wfile.flush()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


class Stage(ThreadingHTTPServer):
    """A server that says what a test wants, and drops its connections when it wants."""

    daemon_threads = True
    block_on_close = False

    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Requests)
        self.news = Condition()
        self.generation = 0
        self.session: str | None = None
        self.run: Any = None
        self.events: list[tuple[str, Any]] = []
        self.asked: list[str] = []
        Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/T/"

    def showing(self, run: Any, first: int | None = None) -> str:
        """Show a run, or the first of its changes; returns the address."""
        self.session, self.run = "one", {**run, "id": "one", "changes": run["changes"][:first]}
        return self.url

    def say(self, name: str, *events: Any) -> None:
        with self.news:
            self.events += [(name, event) for event in events]
            self.news.notify_all()

    def drop(self) -> None:
        with self.news:
            self.generation += 1
            self.news.notify_all()


def at(page: Page, version: int, last: int | None = None) -> None:
    """Wait until the page shows a version, its newest if no other is named."""
    page.wait(f"$('where').textContent === 'Version {version} of {version if last is None else last}'")
    page.settle()
