"""A model as the writer of SQL: any server of the chat-completions protocol, through the official client."""

from __future__ import annotations

import asyncio
import math
import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, Self
from urllib.parse import urlsplit

from planning.agent.chat_answers import (
    LARGEST,
    NO_KEY,
    Answer,
    Answers,
    is_timeout,
    retry_after,
    text_of,
    words_of,
)
from planning.agent.generate import prompt_messages
from planning.tools.background import run_coroutine, run_in_thread
from planning.tools.errors import RateLimitExceeded, StorageUnavailable, ToolError, ToolTimeout

__all__ = ["OpenAIChat"]

_OFFICIAL: Final = "https://api.openai.com/v1"
_LONGEST_CONNECT: Final = 10.0  # seconds: a host that is there takes a connection long before
_GRACE: Final = 1.0  # seconds for closing the connection after the deadline


class OpenAIChat:
    """Writes SQL with a model behind a server of the chat-completions protocol.

    It is a ``generate_sql`` for ``build_text_to_sql_graph``, and may be called from several threads at once.
    """

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        *,
        api_key: str | None = None,
        timeout: float = 60.0,
        max_retries: int = 2,
        dialect: str | None = None,
    ) -> None:
        """Prepare; nothing is sent yet.

        Args:
            model: The model's name, as the server knows it.
            base_url: Where the server is, such as ``http://127.0.0.1:8000/v1``; ``OPENAI_BASE_URL``, or else
                the official one, when left out.
            api_key: What the server knows the caller by; ``OPENAI_API_KEY`` when left out. A server that is
                named needs none.
            timeout: Seconds until there must be an answer: all retries, and the waits between them, included.
            max_retries: How often a request is sent again that the server could not take just then.
            dialect: The SQL to write; that of the graph's database when omitted.

        Raises:
            ValueError: An argument is none of these.
            ToolError: There is no API key, or it cannot be one.
            ImportError: The ``openai`` client is not installed.
        """
        self._server = _server(base_url or os.environ.get("OPENAI_BASE_URL"))
        self._model = _filled("model", model)
        self._timeout = _seconds(timeout)
        self._dialect = None if dialect is None else _filled("dialect", dialect)
        if type(max_retries) is not int or max_retries < 0:
            raise ValueError(f"max_retries must be a whole number of 0 or more, got {max_retries!r}")
        self._key = _key(api_key, self._server)
        try:
            import openai
        except ImportError:
            raise ImportError(
                "asking a model needs the openai client: pip install 'session-planning[openai]'"
            ) from None
        self._openai = openai
        self._max_retries = max_retries
        self._is_closed = False

    def __repr__(self) -> str:
        return f"OpenAIChat({self._model!r}, {self._host!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it. A later call gets a ToolError."""
        self._is_closed = True

    def __call__(
        self,
        question: str,
        schema: str,
        attempts: Sequence[Mapping[str, Any]] = (),
        dialect: str | None = None,
    ) -> str:
        """Ask for the SQL that answers a question.

        Args:
            question: What a person wants to know.
            schema: What the database holds, as text.
            attempts: What was tried and did not do: ``{"sql", "error"}`` each, the SQL may be None.
            dialect: The SQL that the database takes, such as ``sqlite``; the one given to this object goes
                before it.

        Returns:
            The model's answer: a statement, bare or fenced, or the JSON with which it asks back.

        Raises:
            ToolError: There is none; see ``complete``.
        """
        return self.complete(prompt_messages(question, schema, attempts, self._dialect or dialect))

    def complete(self, messages: Sequence[Mapping[str, str]]) -> str:
        """Ask the model to go on with a conversation.

        Args:
            messages: ``{"role", "content"}`` each.

        Returns:
            What it says.

        Raises:
            StorageUnavailable: The server cannot be reached, or fails.
            ToolTimeout: It did not answer in time.
            RateLimitExceeded: It takes no more requests for now.
            ToolError: It refused the request or the key, or gave no answer that could be used. No message
                holds the key.
        """
        if self._is_closed:
            raise ToolError("this OpenAIChat is closed; make a new one")
        sent = [_sendable(each) for each in messages]
        try:
            # A thread, as a name that cannot be resolved may hold it longer than the deadline.
            answer = run_in_thread(
                lambda _stop: run_coroutine(partial(self._answer, sent), "OpenAIChat"),
                "OpenAIChat",
                self._timeout + _GRACE,
            )
        except ToolTimeout:
            answer = self._late()
        if isinstance(answer, ToolError):
            raise answer  # here and not above: the client's error holds the request, with the key
        if not 200 <= answer.status < 300:
            raise self._refusal(answer)
        return text_of(answer.text, self._name, self._key)

    # Asking

    async def _answer(self, messages: list[dict[str, str]]) -> Answer | ToolError:
        """The server's answer, whatever its status, or why there is none within the time."""
        heard = Answers()
        openai = self._openai
        try:
            async with (
                asyncio.timeout(self._timeout),
                openai.AsyncOpenAI(
                    api_key=self._key,
                    base_url=self._server,
                    timeout=openai.Timeout(self._timeout, connect=min(self._timeout, _LONGEST_CONNECT)),
                    max_retries=self._max_retries,
                    default_headers={"Accept-Encoding": "identity"},
                    http_client=openai.DefaultAsyncHttpxClient(
                        follow_redirects=False,  # another host would get the key
                        event_hooks={"request": [heard.begin], "response": [heard.read]},
                    ),
                ) as client,
            ):
                create: Any = client.chat.completions.with_streaming_response.create  # it types every role
                async with create(model=self._model, messages=messages):
                    pass
        except Exception as error:  # noqa: BLE001 - whatever the client, or what it stands on, fails with
            failure = self._failure(error, has_begun=heard.has_begun)
        else:
            failure = self._failure(None, has_begun=True)
        if heard.is_too_long:
            return ToolError(f"{self._name} gave an answer of more than {LARGEST:,} bytes; ask for less")
        return heard.last or failure

    # Failing

    @property
    def _host(self) -> str:
        parts = urlsplit(self._server)
        return parts.netloc.rpartition("@")[2]  # without a password

    @property
    def _name(self) -> str:
        return f"the model's server {self._host}"

    def _late(self) -> ToolTimeout:
        return ToolTimeout(
            f"{self._name} did not answer within {self._timeout:g} seconds; ask again, or allow it more time"
        )

    def _failure(self, error: Exception | None, *, has_begun: bool) -> ToolError:
        """Why there is no answer, or only the beginning of one, from an error of the client."""
        if isinstance(error, self._openai.APITimeoutError) or is_timeout(error):
            return self._late()
        if has_begun:
            return StorageUnavailable(f"{self._name} broke off its answer; ask again")
        return StorageUnavailable(
            f"{self._name} cannot be reached; start it, or give the base_url of one that runs"
        )

    def _refusal(self, answer: Answer) -> ToolError:
        """The error for an answer with the status of one."""
        status, error = answer.status, answer.error
        words = words_of(error, self._key)
        said = f": {words}" if words else ""
        if status < 400:
            return ToolError(
                f"{self._name} sends requests to another address ({status}); give that address as base_url"
            )
        if status in {401, 403}:  # its words may hold the key, or what is left of it
            return ToolError(
                f"{self._name} refused the API key ({status}); set OPENAI_API_KEY to one it knows"
            )
        if status == 404:
            return ToolError(
                f"{self._name} has no model {self._model!r} or no such address (404); check the model's name,"
                f" and whether the base_url needs /v1 at its end{said}"
            )
        if status == 429 and isinstance(error, Mapping) and error.get("code") == "insufficient_quota":
            return ToolError(
                f"{self._name} says that the quota is used up (429); add credit, or use another key"
            )
        if status == 429:
            after = retry_after(answer.headers)
            when = f"in {after:g} seconds" if after else "later"
            return RateLimitExceeded(
                f"{self._name} takes no more requests now (429); ask again {when}", after
            )
        if status == 408 or status >= 500:
            return StorageUnavailable(f"{self._name} failed ({status}); ask again later{said}")
        return ToolError(f"{self._name} refused the request ({status}); change what it names{said}")


# Arguments


def _filled(name: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"{name} must be a text that is not blank, got {value!r}")
    return value


def _seconds(value: object) -> float:
    if type(value) not in {int, float} or not 0 < value < math.inf:  # type: ignore[operator]  # a number by now
        raise ValueError(f"timeout must be seconds of more than 0, such as 60, got {value!r}")
    return float(value)  # type: ignore[arg-type]  # as above


def _server(base_url: str | None) -> str:
    """The address of the server."""
    if base_url is None:
        return _OFFICIAL
    url = _filled("base_url", base_url).strip()
    try:
        parts = urlsplit(url)
        _ = parts.port  # it is read when it is asked for
        is_address = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        is_address = False
    if not is_address or not (url.isascii() and url.isprintable() and " " not in url):
        raise ValueError("base_url must be the address of a server, such as http://127.0.0.1:8000/v1")
    return url


def _key(api_key: str | None, server: str) -> str:
    """The key to send.

    Raises:
        ToolError: There is none, or it cannot be one; it is not told.
    """
    key = (api_key or os.environ.get("OPENAI_API_KEY") or "").strip()
    if not key and server == _OFFICIAL:
        raise ToolError(
            "there is no API key; set OPENAI_API_KEY, or give the base_url of a server without keys"
        )
    if not (key.isascii() and key.isprintable()):
        raise ToolError("the API key has characters that no key has; copy it again")
    return key or NO_KEY


def _sendable(message: Mapping[str, str]) -> dict[str, str]:
    """A message without halves of characters: a database may hold them, and no request can."""
    return {name: text.encode(errors="replace").decode() for name, text in message.items()}
