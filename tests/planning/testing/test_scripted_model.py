"""``ScriptedModel``: what it answers, and what it keeps; the clients' own tests are with the integrations."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import pytest

from planning.testing import ScriptedModel


def post(model: ScriptedModel, path: str, body: Any) -> tuple[int, str, str]:
    connection = HTTPConnection(urlsplit(model.anthropic_url).netloc, timeout=10)
    try:
        connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
        reply = connection.getresponse()
        return reply.status, reply.getheader("content-type", ""), reply.read().decode()
    finally:
        connection.close()


PATHS = ["/v1/chat/completions", "/v1/responses", "/v1/messages"]
SAID = {
    "/v1/chat/completions": lambda data: data["choices"][0]["message"]["content"],
    "/v1/responses": lambda data: data["output"][0]["content"][0]["text"],
    "/v1/messages": lambda data: data["content"][0]["text"],
}


@pytest.mark.parametrize("path", PATHS)
def test_each_request_has_the_next_turn_and_after_the_last_one_fails(path: str) -> None:
    with ScriptedModel("One.", lambda body: f"You said {body['model']}.") as model:
        assert model.turns_left == 2
        answers = [post(model, path, {"model": name}) for name in "abc"]
        assert model.turns_left == 0
    assert [SAID[path](json.loads(text)) for _, _, text in answers[:2]] == ["One.", "You said b."]
    assert answers[2][::2] == (
        400,
        '{"type": "error", "error": {"type": "invalid_request_error", '
        '"message": "the script of the model is over"}}',
    )
    assert [(request.path, request.body) for request in model.requests] == [
        (path, {"model": name}) for name in "abc"
    ]


@pytest.mark.parametrize("path", PATHS)
def test_a_stream_is_server_sent_events(path: str) -> None:
    with ScriptedModel("Hello.") as model:
        status, kind, text = post(model, path, {"stream": True})
    assert (status, kind) == (200, "text/event-stream")
    assert all(line.startswith(("event: ", "data: ")) for line in text.splitlines() if line)


def test_another_path_is_not_found() -> None:
    with ScriptedModel("Hello.") as model:
        assert post(model, "/v2/other", {})[0] == 404
        assert model.requests == []
