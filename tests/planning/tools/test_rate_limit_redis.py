"""Rate limits that several machines share, beside a real server."""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from redis.backoff import ConstantBackoff
from redis.retry import Retry

from planning.tools.errors import RateLimitExceeded
from planning.tools.rate_limit import RateLimiter

pytestmark = pytest.mark.server


@pytest.fixture
def url(server_program: str, tmp_path: Path) -> Iterator[str]:
    """A server of the test's own, on a free port of the loopback."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    command = [server_program, *options, "--dir", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            retry = Retry(ConstantBackoff(0.02), 500, (OSError, redis.ConnectionError))
            with redis.Redis(port=port, retry=retry) as client:
                client.ping()
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            process.terminate()


def test_a_limit_holds_across_two_machines(url: str) -> None:
    here, there = (RateLimiter({"email_send": "5/minute"}, storage=url) for _ in range(2))
    for limiter in [here, there, here, there, here]:
        limiter.hit("email_send")
    for limiter in [here, there]:
        with pytest.raises(RateLimitExceeded) as caught:
            limiter.hit("email_send")
        assert 0 < caught.value.retry_after <= 60
        start, end = caught.value.message.split(" in ")
        assert start == "email_send is limited to 5 per 1 minute; try again"
        seconds, _, rest = end.partition(" ")
        assert 1 <= int(seconds) <= 60
        assert rest == "s, or continue without it"
