"""Rate limits that several machines share, beside a real server."""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from tool_entries import through

from planning.tools import Tool
from planning.tools.errors import RateLimitExceeded
from planning.tools.rate_limit import RateLimiter

pytestmark = pytest.mark.server


class Server:
    """A server of its own, on a free port of the loopback."""

    def __init__(self, program: str, folder: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port: int = free.getsockname()[1]
        self.url = f"redis://127.0.0.1:{self.port}/0"
        options = ["--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
        self._command = [program, *options, "--dir", str(folder)]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)
        for _ in range(500):
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
            except ConnectionRefusedError:
                time.sleep(0.02)
            else:
                return
        raise AssertionError("the server does not start")

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
            self._process = None


@pytest.fixture(scope="module")
def started(server_program: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(server_program, tmp_path_factory.mktemp("server"))
    try:
        server.start()
        yield server
    finally:
        server.stop()


@pytest.fixture
def server(started: Server) -> Server:
    with redis.Redis.from_url(started.url) as client:
        client.flushall()
    return started


def refused(limiter: RateLimiter, key: str = "email_send") -> RateLimitExceeded:
    with pytest.raises(RateLimitExceeded) as caught:
        limiter.hit(key)
    return caught.value


def test_a_limit_holds_across_two_machines(server: Server) -> None:
    here, there = (RateLimiter({"email_send": "5/minute"}, storage=server.url) for _ in range(2))
    for limiter in [here, there, here, there, here]:
        limiter.hit("email_send")
    for limiter in [here, there]:
        refusal = refused(limiter)
        assert 0 < refusal.retry_after <= 60
        start, end = refusal.message.split(" in ")
        assert start == "email_send is limited to 5 per 1 minute; try again"
        seconds, _, rest = end.partition(" ")
        assert 1 <= int(seconds) <= 60
        assert rest == "s, or go on without it"


def test_async_code_asks_the_server_in_a_thread(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    limiter = RateLimiter({"mail": "1/minute"}, storage=server.url)
    threads: list[int] = []
    hit = RateLimiter.hit

    def watched(self: RateLimiter, key: str) -> None:
        threads.append(threading.get_ident())
        hit(self, key)

    monkeypatch.setattr(RateLimiter, "hit", watched)
    tool = Tool("t", "T.", int, rate_limit_key="mail")
    assert [through("acall", tool, limiter=limiter).code for _ in "ab"] == [None, "rate_limit"]
    assert len(threads) == 2
    assert threading.get_ident() not in threads
