"""A model that writes SQL, on any server of the chat-completions protocol, through the official client."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Final, Self
from urllib.parse import urlsplit

from planning.agent.generate import prompt_messages
from planning.errors import cut, printable
from planning.tools.errors import RateLimitExceeded, StorageUnavailable, ToolError, ToolTimeout

__all__ = ["OpenAIChat"]

_NO_KEY: Final = "none"  # the client requires a key; a server without keys ignores it
_LONGEST_WORDS: Final = 300
_UNREACHED: Final = "cannot be reached; start it, or give the base_url of one that runs"
_NO_FORM: Final = "does not answer in the chat-completions form; check the base_url"
_FAILED: Final = "failed ({status}); ask again later"
_REFUSED: Final = "refused the request ({status}); change what it names"
_KEY: Final = "refused the API key ({status}); set OPENAI_API_KEY to one it knows"
_BY_STATUS: Final = {
    401: _KEY,
    403: _KEY,
    404: "has no model {model!r} or no such address (404); check both, and whether base_url ends in /v1",
    408: _FAILED,
    429: "takes no more requests now (429); ask again later",
}
_OF_KEYS: Final = (401, 403)  # their words may contain the key or a part of it


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
        """Make the client; nothing is sent yet.

        Args:
            model: The model's name on the server.
            base_url: The server's address; by default ``OPENAI_BASE_URL``, or else the official server.
            api_key: By default ``OPENAI_API_KEY``. Servers other than the official one may need none.
            timeout: The seconds that the client waits for the server.
            max_retries: How often the client repeats a request after a temporary failure of the server.
            dialect: The SQL to write; by default that of the graph's database.

        Raises:
            ValueError: The base_url is not an address.
            ToolError: The API key is missing, or has characters that a key cannot have.
            ImportError: The ``openai`` client is not installed.
        """
        try:
            import openai
        except ImportError:
            raise ImportError(
                "asking a model needs the openai client: pip install 'session-planning[openai]'"
            ) from None
        server = base_url or os.environ.get("OPENAI_BASE_URL")
        if server is not None and urlsplit(server).scheme not in {"http", "https"}:
            raise ValueError("base_url must be the address of a server, such as http://127.0.0.1:8000/v1")
        self._key = (api_key or os.environ.get("OPENAI_API_KEY") or "").strip()
        if not self._key and server is None:
            raise ToolError(
                "there is no API key; set OPENAI_API_KEY, or give the base_url of a server without keys"
            )
        if not (self._key.isascii() and self._key.isprintable()):
            raise ToolError("the API key has characters that no key has; copy it again")
        self._model, self._dialect, self._timeout = model, dialect, timeout
        self._openai = openai
        self._client = openai.OpenAI(
            api_key=self._key or _NO_KEY,
            base_url=server,
            timeout=timeout,
            max_retries=max_retries,
            http_client=openai.DefaultHttpxClient(follow_redirects=False),  # another host would get the key
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it. A later call gets a ToolError."""
        self._client.close()

    def __call__(
        self,
        question: str,
        schema: str,
        attempts: Sequence[Mapping[str, Any]] = (),
        dialect: str | None = None,
    ) -> str:
        """Ask the model for the SQL that answers a question; see ``Generator``.

        Raises:
            ToolError: The server gave no usable answer: a ``StorageUnavailable``, ``ToolTimeout`` or
                ``RateLimitExceeded`` where a later try may help. No message contains the key.
        """
        if self._client.is_closed():
            raise ToolError("this OpenAIChat is closed; make a new one")
        turns = prompt_messages(question, schema, attempts, self._dialect or dialect)
        # A database may hold lone surrogates, which a request cannot.
        sent = [
            {name: text.encode(errors="replace").decode() for name, text in each.items()} for each in turns
        ]
        create: Any = self._client.chat.completions.create  # it types every role
        try:
            return self._text(create(model=self._model, messages=sent))
        except ToolError:
            raise
        except Exception as error:  # noqa: BLE001 - the client and the libraries below it raise many types
            failure = self._failure(error)
        raise failure  # not within the except block: the client's error holds the request, with the key

    @property
    def _name(self) -> str:
        host = self._client.base_url.netloc.decode().rpartition("@")[2]  # without a password
        return f"the model's server {host}"

    def _text(self, completion: Any) -> str:
        choice = completion.choices[0]
        text, refusal = choice.message.content, choice.message.refusal
        if choice.finish_reason == "length":
            raise ToolError(f"{self._name} cut the answer off; allow longer answers, or ask for less")
        if choice.finish_reason == "content_filter" or refusal:
            raise ToolError(f"the model refused to answer; ask in other words{self._said(refusal)}")
        if not isinstance(text, str) or not text.strip():
            raise ToolError(f"{self._name} gave an answer without text; ask again, or another model")
        return text

    def _failure(self, error: Exception) -> ToolError:
        openai = self._openai
        if isinstance(error, openai.APITimeoutError):
            return ToolTimeout(f"{self._name} did not answer within {self._timeout:g} seconds; ask again")
        if isinstance(error, openai.APIConnectionError):
            return StorageUnavailable(f"{self._name} {_UNREACHED}")
        if not isinstance(error, openai.APIStatusError):
            return ToolError(f"{self._name} {_NO_FORM}")
        status, body = error.status_code, error.body
        what = _BY_STATUS.get(status, _FAILED if status >= 500 else _REFUSED)
        words = body.get("message") if isinstance(body, dict) else body
        said = "" if status in _OF_KEYS else self._said(words)
        message = f"{self._name} {what.format(status=status, model=self._model)}{said}"
        if status == 429:
            return RateLimitExceeded(message)
        return (StorageUnavailable if status == 408 or status >= 500 else ToolError)(message)

    def _said(self, words: object) -> str:
        if not isinstance(words, str) or words.strip()[:1] in {"", "<"}:  # a page for a browser
            return ""
        words = words.replace(self._key, "***") if self._key else words
        return f": {cut(printable(' '.join(words.split())), _LONGEST_WORDS)}"
