"""A model that writes SQL, on any server of the chat-completions protocol, through the official client."""

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

    Pass it to ``build_text_to_sql_graph`` as ``generate_sql``. It is safe to call from many threads at once.
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
        """Check the settings; nothing is sent yet.

        Args:
            model: The model's name on the server.
            base_url: The address of the server, such as ``http://127.0.0.1:8000/v1``; by default
                ``OPENAI_BASE_URL``, or else the official server.
            api_key: The API key; by default ``OPENAI_API_KEY``. Servers other than the official one may need
                none.
            timeout: The seconds for a whole answer, with all retries and the waits between them.
            max_retries: How often a request is repeated after a temporary failure of the server.
            dialect: The SQL to write; by default that of the graph's database.

        Raises:
            ValueError: An argument has the wrong form.
            ToolError: The API key is missing, or has characters that a key cannot have.
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
        """Ask the model for the SQL that answers a question.

        Args:
            question: The question.
            schema: The schema as text.
            attempts: The failed attempts: ``{"sql", "error"}`` each, the SQL may be None.
            dialect: The SQL that the database takes, such as ``sqlite``; the ``dialect`` of this object takes
                precedence.

        Returns:
            The model's answer: a statement, bare or fenced, or JSON with a question to the user.

        Raises:
            ToolError: The server gave no usable answer; see ``complete``.
        """
        return self.complete(prompt_messages(question, schema, attempts, self._dialect or dialect))

    def complete(self, messages: Sequence[Mapping[str, str]]) -> str:
        """Ask the model for the next message of a conversation.

        Args:
            messages: ``{"role", "content"}`` each.

        Returns:
            Its text.

        Raises:
            StorageUnavailable: The server cannot be reached, or fails.
            ToolTimeout: It did not answer in time.
            RateLimitExceeded: It takes no more requests for now.
            ToolError: It refused the request or the key, or its answer cannot be used. No message contains
                the key.
        """
        if self._is_closed:
            raise ToolError("this OpenAIChat is closed; make a new one")
        sent = [_sendable(each) for each in messages]
        try:
            # In a thread, because looking up a host name may take longer than the deadline.
            answer = run_in_thread(
                lambda _stop: run_coroutine(partial(self._answer, sent), "OpenAIChat"),
                "OpenAIChat",
                self._timeout + _GRACE,
            )
        except ToolTimeout:
            answer = self._late()
        if isinstance(answer, ToolError):
            raise answer  # not within the except block: the client's error holds the request, with the key
        if not 200 <= answer.status < 300:
            raise self._refusal(answer)
        return text_of(answer.text, self._name, self._key)

    # Asking

    async def _answer(self, messages: list[dict[str, str]]) -> Answer | ToolError:
        """The server's answer with any status, or the reason why none came in time."""
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
        except Exception as error:  # noqa: BLE001 - the client and the libraries below it raise many types
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
        """Why there is no complete answer, from an error of the client."""
        if isinstance(error, self._openai.APITimeoutError) or is_timeout(error):
            return self._late()
        if has_begun:
            return StorageUnavailable(f"{self._name} broke off its answer; ask again")
        return StorageUnavailable(
            f"{self._name} cannot be reached; start it, or give the base_url of one that runs"
        )

    def _refusal(self, answer: Answer) -> ToolError:
        """The error for an answer with an error status."""
        status, error = answer.status, answer.error
        words = words_of(error, self._key)
        said = f": {words}" if words else ""
        if status < 400:
            return ToolError(
                f"{self._name} sends requests to another address ({status}); give that address as base_url"
            )
        if status in {401, 403}:  # its text may contain the key or a part of it
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
        raise ValueError(f"{name} must be a string that is not blank, got {value!r}")
    return value


def _seconds(value: Any) -> float:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 < value < math.inf:
        raise ValueError(f"timeout must be seconds of more than 0, such as 60, got {value!r}")
    return float(value)


def _server(base_url: str | None) -> str:
    """The address of the server."""
    if base_url is None:
        return _OFFICIAL
    url = _filled("base_url", base_url).strip()
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises if it is not a number
        is_address = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        is_address = False
    if not is_address or not (url.isascii() and url.isprintable() and " " not in url):
        raise ValueError("base_url must be the address of a server, such as http://127.0.0.1:8000/v1")
    return url


def _key(api_key: str | None, server: str) -> str:
    """The key to send.

    Raises:
        ToolError: There is none, or it has characters that no key has. The message does not contain it.
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
    """A message without lone surrogates, which a database may hold but a request cannot."""
    return {name: text.encode(errors="replace").decode() for name, text in message.items()}
