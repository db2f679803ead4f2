"""A model that follows a script: a local server with the providers' protocols.

Any client and any framework can talk to it, streaming or not: it answers OpenAI's Chat Completions and
Responses and Anthropic's Messages.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import urlsplit
from uuid import uuid4

import attrs

Turn = str | Sequence[tuple[str, Mapping[str, Any] | str]]
"""The model's answer: text, or calls, each a tool's name and its arguments; a string is sent as it is."""
Line = Turn | Callable[[Mapping[str, Any]], Turn]
"""A turn, or a function that makes it of the request's body."""

_NONE = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
_HOW_MANY = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


@attrs.frozen
class Request:
    """A request that the model received.

    Attributes:
        path: Such as ``/v1/chat/completions``, or ``/v1/messages?beta=true``.
        body: The parsed JSON.
    """

    path: str
    body: Mapping[str, Any]


@attrs.frozen
class _Call:
    call_id: str
    name: str
    arguments: str

    @property
    def pieces(self) -> tuple[str, str]:
        """The arguments as a stream delivers them."""
        half = len(self.arguments) // 2
        return self.arguments[:half], self.arguments[half:]

    @property
    def input(self) -> Any:
        """The arguments as an object; of text that is not JSON, none."""
        try:
            return json.loads(self.arguments)
        except ValueError:
            return {}


@attrs.frozen
class _Spoken:
    name: str  # no other turn of any model has it
    text: str | None
    calls: tuple[_Call, ...]


class ScriptedModel:
    """Answers each request with the next turn of a script, while its ``with`` block lasts.

        with ScriptedModel([("planning_read_plan", {})], "All done.") as model:
            client = OpenAI(base_url=model.openai_url, api_key="test")

    After the last turn each request fails with status 400.

    Attributes:
        requests: The requests so far, oldest first.
    """

    def __init__(self, *script: Line) -> None:
        """Prepare the script. The ids of calls and responses are never repeated.

        Args:
            script: Each turn is text, a list of calls, or a function that makes one of the request's body.
        """
        self.requests: list[Request] = []
        self._script = list(script)
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.model = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    @property
    def anthropic_url(self) -> str:
        """The ``base_url`` for Anthropic's client."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def openai_url(self) -> str:
        """The ``base_url`` for OpenAI's client."""
        return f"{self.anthropic_url}/v1"

    @property
    def turns_left(self) -> int:
        """The number of turns of the script that are left."""
        return len(self._script)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, path: str, body: Mapping[str, Any]) -> _Spoken | None:
        """The next turn; None when the script is over."""
        with self._lock:
            self.requests.append(Request(path, body))
            if not self._script:
                return None
            line = self._script.pop(0)
            turn = line(body) if callable(line) else line
            if isinstance(turn, str):
                return _Spoken(uuid4().hex, turn, ())
            texts = [(name, given if isinstance(given, str) else json.dumps(given)) for name, given in turn]
            calls = [_Call(f"call_{uuid4().hex}", name, text) for name, text in texts]
            return _Spoken(uuid4().hex, None, tuple(calls))


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    model: ScriptedModel

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report an error, unless it is a client that has gone."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 10
    wbufsize = -1  # a response leaves in one piece: in two, the second waits for the client's delayed answer
    server: _Server

    def do_POST(self) -> None:
        """Answer a request."""
        length = int(self.headers.get("content-length", 0))
        sent = self.rfile.read(length)
        if len(sent) < length:  # the client was killed while it sent
            self.close_connection = True
            return
        try:
            body = json.loads(sent)
        except ValueError as error:
            self._send(400, "application/json", _failure(f"the request is not JSON: {error}"))
            return
        whole, streamed = _PROTOCOLS.get(urlsplit(self.path).path, (None, None))
        if whole is None or streamed is None:
            self._send(404, "application/json", _failure(f"no such endpoint: {self.path}"))
            return
        spoken = self.server.model.answer(self.path, body)
        if spoken is None:
            self._send(400, "application/json", _failure("the script of the model is over"))
        elif body.get("stream"):
            self._send(200, "text/event-stream", "".join(streamed(spoken)))
        else:
            self._send(200, "application/json", json.dumps(whole(spoken)))

    def log_message(self, *_: Any) -> None:
        """Log nothing."""

    def _send(self, status: int, kind: str, text: str) -> None:
        data = text.encode()
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def _failure(message: str) -> str:
    return json.dumps({"type": "error", "error": {"type": "invalid_request_error", "message": message}})


def _event(data: Mapping[str, Any]) -> str:
    return f"event: {data['type']}\ndata: {json.dumps(data)}\n\n"


# Chat Completions


def _completion(spoken: _Spoken) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": spoken.text}
    if spoken.calls:
        message["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in spoken.calls
        ]
    choice = {"index": 0, "finish_reason": _finish_reason(spoken), "message": message}
    return {**_of_completion("chat.completion", spoken), "choices": [choice], "usage": _HOW_MANY}


def _chunks(spoken: _Spoken) -> Iterator[str]:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": None}]
    deltas += [{"content": each} for each in _halves(spoken.text)]
    for index, call in enumerate(spoken.calls):
        first, second = call.pieces
        start = {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": first}}
        deltas.append({"tool_calls": [{"index": index, **start}]})
        deltas.append({"tool_calls": [{"index": index, "function": {"arguments": second}}]})
    ends: list[str | None] = [None] * len(deltas)
    for delta, end in zip([*deltas, {}], [*ends, _finish_reason(spoken)], strict=True):
        choice = {"index": 0, "delta": delta, "finish_reason": end}
        chunk = {**_of_completion("chat.completion.chunk", spoken), "choices": [choice]}
        yield f"data: {json.dumps(chunk)}\n\n"
    yield "data: [DONE]\n\n"


def _of_completion(kind: str, spoken: _Spoken) -> dict[str, Any]:
    return {"id": f"chatcmpl-{spoken.name}", "object": kind, "created": 1, "model": "scripted"}


def _finish_reason(spoken: _Spoken) -> str:
    return "tool_calls" if spoken.calls else "stop"


def _halves(text: str | None) -> tuple[str, ...]:
    return () if text is None else (text[: len(text) // 2], text[len(text) // 2 :])


# Responses


def _response(spoken: _Spoken, status: str = "completed") -> dict[str, Any]:
    return {
        "id": f"resp_{spoken.name}",
        "object": "response",
        "created_at": 1,
        "model": "scripted",
        "status": status,
        "output": _items(spoken) if status == "completed" else [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": _NONE,
    }


def _items(spoken: _Spoken) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if spoken.text is not None:
        content = {"type": "output_text", "text": spoken.text, "annotations": []}
        items.append(
            {
                "id": f"msg_{spoken.name}",
                "type": "message",
                "role": "assistant",
                "status": "completed",
                "content": [content],
            }
        )
    for call in spoken.calls:
        names = {"call_id": call.call_id, "name": call.name, "arguments": call.arguments}
        items.append({"id": f"fc_{call.call_id}", "type": "function_call", "status": "completed", **names})
    return items


def _response_events(spoken: _Spoken) -> Iterator[str]:
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": _response(spoken, "in_progress")},
    ]
    for index, item in enumerate(_items(spoken)):
        at = {"output_index": index, "item_id": item["id"]}
        events.append({"type": "response.output_item.added", "output_index": index, "item": item})
        if item["type"] == "message":
            at["content_index"] = 0
            events += [
                {"type": "response.output_text.delta", **at, "delta": each} for each in _halves(spoken.text)
            ]
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    events.append({"type": "response.completed", "response": _response(spoken)})
    for number, event in enumerate(events):
        yield _event({**event, "sequence_number": number})


# Messages


def _message(spoken: _Spoken) -> dict[str, Any]:
    content: list[dict[str, Any]] = [] if spoken.text is None else [{"type": "text", "text": spoken.text}]
    content += [
        {"type": "tool_use", "id": call.call_id, "name": call.name, "input": call.input}
        for call in spoken.calls
    ]
    return {
        "id": f"msg_{spoken.name}",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": content,
        "stop_reason": _stop_reason(spoken),
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }


def _message_events(spoken: _Spoken) -> Iterator[str]:
    whole = _message(spoken)
    yield _event({"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}})
    for index, block in enumerate(whole["content"]):
        if block["type"] == "text":
            start, kind, name, pieces = {**block, "text": ""}, "text_delta", "text", _halves(block["text"])
        else:
            call = spoken.calls[index]
            start, kind, name, pieces = (
                {**block, "input": {}},
                "input_json_delta",
                "partial_json",
                call.pieces,
            )
        yield _event({"type": "content_block_start", "index": index, "content_block": start})
        for piece in pieces:
            yield _event(
                {"type": "content_block_delta", "index": index, "delta": {"type": kind, name: piece}}
            )
        yield _event({"type": "content_block_stop", "index": index})
    end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield _event({"type": "message_delta", "delta": end, "usage": {"output_tokens": 1}})
    yield _event({"type": "message_stop"})


def _stop_reason(spoken: _Spoken) -> str:
    return "tool_use" if spoken.calls else "end_turn"


_PROTOCOLS: dict[str, tuple[Callable[[_Spoken], Any], Callable[[_Spoken], Iterator[str]]]] = {
    "/v1/chat/completions": (_completion, _chunks),
    "/v1/responses": (_response, _response_events),
    "/v1/messages": (_message, _message_events),
}
