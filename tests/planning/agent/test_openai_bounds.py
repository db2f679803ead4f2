"""One deadline and one size for all that a model's server sends: errors, headers and retries included."""

from __future__ import annotations

import asyncio
import functools
import gzip
import json
import threading
import time
import tracemalloc
import zlib
from collections.abc import Callable
from typing import Any

import pytest
from chat_server import (
    SCHEMA,
    SQL,
    ChatServer,
    Reply,
    completion,
    error_of,
    failure,
    floods,
    is_silent,
    reply,
    says,
    stops_halfway,
    trickles,
    trickles_an_error,
    trickles_headers,
    without_environment,
)

from planning.agent import OpenAIChat, build_text_to_sql_graph
from planning.tools import StorageUnavailable, ToolError
from planning.tools.errors import RateLimitExceeded, ToolTimeout

WITHIN = 10.0  # seconds: far more than the deadlines here, and far less than what once outlived them
MOST_MEMORY = 60_000_000

LATE = "the model's server HOST did not answer within 0.5 seconds; ask again, or allow it more time"
TOO_LONG = "the model's server HOST gave an answer of more than 8,000,000 bytes; ask for less"
REFUSED = "the model's server HOST refused the request (400); change what it names"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    without_environment(monkeypatch)


@functools.cache
def bomb(pack: Callable[[bytes], bytes]) -> bytes:
    """A packed answer of 80 MB: packed once for all tests."""
    return pack(b'{"error": {"message": "' + b"x" * 80_000_000 + b'"}}')


@pytest.mark.parametrize("status", [200, 400, 500])
@pytest.mark.parametrize("form", ["gzip", "deflate", "in pieces"])
def test_an_answer_of_any_status_and_form_takes_no_more_memory_than_its_bound(status: int, form: str) -> None:
    pack = gzip.compress if form == "gzip" else zlib.compress
    answer = floods(status) if form == "in pieces" else reply(bomb(pack), status, content_encoding=form)
    with ChatServer(answer) as server:
        tracemalloc.start()
        try:
            assert error_of(server) == (ToolError, TOO_LONG)
            assert tracemalloc.get_traced_memory()[1] < MOST_MEMORY
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize("form", ["br", "zstd", "x"])
def test_a_form_that_was_not_asked_for_and_is_unknown_is_no_answer(form: str) -> None:
    with ChatServer(reply(b"\x28\xb5\x2f\xfd", content_encoding=form)) as server:
        assert error_of(server) == (
            ToolError,
            "the model's server HOST does not answer in the chat-completions form; check the base_url",
        )


def test_a_packed_answer_of_an_ordinary_size_is_read() -> None:
    body = gzip.compress(completion_bytes())
    with ChatServer(reply(body, content_encoding="gzip")) as server, OpenAIChat("local", server.url) as chat:
        assert chat("How many?", SCHEMA) == SQL


def completion_bytes() -> bytes:
    return json.dumps(completion(SQL)).encode()


def test_a_packed_error_is_told_in_its_words() -> None:
    body = gzip.compress(b'{"error": {"message": "too many tokens"}}')
    with ChatServer(reply(body, 400, content_encoding="gzip")) as server:
        assert error_of(server) == (ToolError, f"{REFUSED}: too many tokens")


@pytest.mark.parametrize("answer", [trickles, trickles_an_error, trickles_headers, is_silent, stops_halfway])
@pytest.mark.parametrize("retries", [0, 2])
def test_whatever_comes_slowly_is_given_up_at_the_deadline(answer: Reply, retries: int) -> None:
    with ChatServer(answer) as server:
        began = time.monotonic()
        assert error_of(server, timeout=0.5, max_retries=retries) == (ToolTimeout, LATE)
        assert time.monotonic() - began < WITHIN


def test_a_connection_that_was_given_up_is_closed() -> None:
    closed = threading.Event()

    def notices(handler: Any) -> None:
        try:
            trickles_headers(handler)
        except OSError:
            closed.set()

    with ChatServer(notices) as server:
        assert error_of(server, timeout=0.5) == (ToolTimeout, LATE)
        assert closed.wait(WITHIN)


def test_a_retry_that_would_come_after_the_deadline_leaves_the_reason_for_it() -> None:
    with ChatServer(reply(failure("Slow down"), 429, retry_after="30")) as server:
        began = time.monotonic()
        assert error_of(server, timeout=0.5, max_retries=2) == (
            RateLimitExceeded,
            "the model's server HOST takes no more requests now (429); ask again in 30 seconds",
        )
        assert time.monotonic() - began < WITHIN
    with ChatServer(reply(failure("Busy"), 503, retry_after="30")) as server:
        assert error_of(server, timeout=0.5, max_retries=2) == (
            StorageUnavailable,
            "the model's server HOST failed (503); ask again later: Busy",
        )


def test_a_retry_that_is_not_answered_is_late() -> None:
    with ChatServer(reply(failure("Busy"), 503, retry_after_ms="1"), is_silent) as server:
        assert error_of(server, timeout=0.5, max_retries=2) == (ToolTimeout, LATE)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_no_other_host_gets_the_key(status: int) -> None:
    with ChatServer(says(SQL)) as other:
        answer = reply(b"", status, location=f"{other.url}/chat/completions")
        with ChatServer(answer) as server:
            assert error_of(server) == (
                ToolError,
                f"the model's server HOST sends requests to another address ({status}); give that address as"
                " base_url",
            )
        assert other.requests == []


def test_the_answer_is_asked_for_as_it_is() -> None:
    seen: list[str] = []

    def noting(handler: Any) -> None:
        seen.append(handler.headers["accept-encoding"])
        says(SQL)(handler)

    with ChatServer(noting) as server, OpenAIChat("local", server.url) as chat:
        chat("How many?", SCHEMA)
    assert seen == ["identity"]


def test_in_an_event_loop_the_deadline_holds_and_the_loop_goes_on() -> None:
    def get_schema() -> str:
        """Get the schema."""
        return SCHEMA

    async def main(url: str) -> tuple[dict[str, Any], int]:
        beats = 0

        async def beat() -> None:
            nonlocal beats
            while True:
                await asyncio.sleep(0.01)
                beats += 1

        beating = asyncio.create_task(beat())
        with OpenAIChat("local", url, timeout=0.5, max_retries=0) as chat:
            graph = build_text_to_sql_graph([get_schema], chat)
            final = await graph.ainvoke({"resolved_query": "How many?", "max_iterations": 2})
        beating.cancel()
        return final, beats

    with ChatServer(trickles_headers) as server:
        final, beats = asyncio.run(main(server.url))
        assert (final["success"], final["error"].replace(server.host, "HOST")) == (
            False,
            f"Tool generate_sql: {LATE}",
        )
    assert beats > 5


def test_it_can_be_called_within_an_event_loop() -> None:
    async def main(url: str) -> str:
        with OpenAIChat("local", url) as chat:
            return chat("How many?", SCHEMA)

    with ChatServer(says(SQL)) as server:
        assert asyncio.run(main(server.url)) == SQL
