"""``ScriptedModel``: what it answers, and what it keeps; the clients' own tests are with the integrations."""

from __future__ import annotations

import json
from http.client import HTTPConnection
from socket import SHUT_WR, create_connection
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


NAMED = {
    "/v1/chat/completions": lambda data: [data["id"], data["choices"][0]["message"]["tool_calls"][0]["id"]],
    "/v1/responses": lambda data: [data["id"], data["output"][0]["id"], data["output"][0]["call_id"]],
    "/v1/messages": lambda data: [data["id"], data["content"][0]["id"]],
}


@pytest.mark.parametrize("path", PATHS)
def test_no_two_calls_and_no_two_responses_have_one_id(path: str) -> None:
    found: list[str] = []
    for _ in range(2):
        with ScriptedModel([("look", {})], [("look", {})]) as model:
            found += [each for _ in "ab" for each in NAMED[path](json.loads(post(model, path, {})[2]))]
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("path", PATHS)
def test_a_stream_is_server_sent_events_of_one_id_that_no_other_has(path: str) -> None:
    ids: list[set[str]] = []
    for _ in range(2):
        with ScriptedModel("Hello.") as model:
            status, kind, text = post(model, path, {"stream": True})
        assert (status, kind) == (200, "text/event-stream")
        lines = [line for line in text.splitlines() if line]
        assert all(line.startswith(("event: ", "data: ")) for line in lines)
        events = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
        parts = [each.get("response") or each.get("message") or each for each in events]
        ids.append({part["id"] for part in parts if "id" in part})
    assert [len(each) for each in ids] == [1, 1]
    assert ids[0] != ids[1]


@pytest.mark.parametrize("path", PATHS)
def test_a_path_may_have_a_query_and_another_path_is_not_found(path: str) -> None:
    with ScriptedModel("One.") as model:
        assert post(model, "/v2/other", {})[0] == 404
        status, _, text = post(model, f"{path}?beta=true", {})
    assert (status, SAID[path](json.loads(text))) == (200, "One.")
    assert [request.path for request in model.requests] == [f"{path}?beta=true"]


@pytest.mark.parametrize("sent", [b"", b'{"model": "a"'])
def test_a_client_killed_as_it_sends_takes_no_turn(sent: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    with ScriptedModel("Hello.") as model:
        address = urlsplit(model.anthropic_url)
        with create_connection((str(address.hostname), address.port or 0)) as client:
            client.sendall(b"POST /v1/messages HTTP/1.1\r\ncontent-length: 99\r\n\r\n" + sent)
            client.shutdown(SHUT_WR)
            assert client.recv(1) == b""
        assert (model.turns_left, model.requests) == (1, [])
        assert post(model, "/v1/messages", {})[0] == 200
    assert capsys.readouterr().err == ""
