"""A model that writes SQL, on any server of the chat-completions protocol, through the official client."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from math import inf
from typing import Any, Final

from planning.agent.generate import check_prompt_limit, prompt_messages
from planning.errors import LONGEST_MESSAGE, ToolError, line_of
from planning.tools.errors import ErrorKind, RateLimitExceeded, StorageUnavailable, ToolTimeout

_NAMES: Final = ("message", "error", "detail", "msg")
_TOO_LONG: Final = re.compile(r"context|too (long|large|many tokens)", re.IGNORECASE)


class OpenAIChat(AbstractContextManager["OpenAIChat"]):
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
        max_retries: int = 1,
        max_tokens: int | None = None,
        dialect: str | None = None,
        prompt_limit: int = LONGEST_MESSAGE,
    ) -> None:
        """Create the client, without sending anything. Without a key or an address this raises.

        Args:
            model: The model's name on the server.
            base_url: The server's address; by default ``OPENAI_BASE_URL``, or else the official server.
            api_key: By default ``OPENAI_API_KEY``; a server that ``base_url`` names may need none.
            timeout: The seconds that the client waits for the server.
            max_retries: How often the client repeats a request after a temporary failure of the server, such
                as no answer in time.
            max_tokens: The most tokens of an answer, thoughts included; by default as the server has it.
            dialect: The SQL to write; by default that of the graph's database.
            prompt_limit: The most characters of a prompt, at least 4,000; a longer schema is cut. Choose it
                for a model with a small context: a token is about 3 characters of a schema.
        """
        try:
            import openai
        except ImportError:
            raise ImportError(
                "asking a model needs the openai client: pip install 'session-planning[openai]'"
            ) from None
        server = base_url or os.environ.get("OPENAI_BASE_URL")
        if server is not None and not server.startswith(("http://", "https://")):
            raise ValueError("base_url must be the address of a server, such as http://127.0.0.1:8000/v1")
        self._key = (api_key or os.environ.get("OPENAI_API_KEY") or "").strip()
        if not self._key and server is None:
            raise ToolError(
                "there is no API key; set OPENAI_API_KEY, or give the base_url of a server without keys"
            )
        if not 0 < timeout < inf or (max_tokens is not None and max_tokens < 1):
            raise ValueError("timeout must be seconds of more than 0, and max_tokens at least 1")
        check_prompt_limit(prompt_limit)
        self._prompt_limit = prompt_limit
        self._model, self._dialect, self._openai = model, dialect, openai
        self._limits = {} if max_tokens is None else {"max_tokens": max_tokens}
        self._client = openai.OpenAI(
            api_key=self._key or "none",  # the client requires a key; a server without keys ignores it
            base_url=server,
            timeout=timeout,
            max_retries=max_retries,
            http_client=openai.DefaultHttpxClient(follow_redirects=False),  # another host would get the key
        )
        host = self._client.base_url.netloc.decode().rpartition("@")[2]  # without a password
        self._name = f"the model's server {host}"

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    def __call__(
        self,
        question: str,
        schema: str,
        attempts: Sequence[Mapping[str, Any]] = (),
        dialect: str | None = None,
    ) -> str:
        """Ask the model for the SQL that answers a question; a ToolError, without the key, says why not."""
        turns = prompt_messages(question, schema, attempts, self._dialect or dialect, self._prompt_limit)
        create: Any = self._client.chat.completions.create  # it types every role
        try:
            choice = create(model=self._model, messages=turns, **self._limits).choices[0]
            text, reason, refused = choice.message.content, choice.finish_reason, choice.message.refusal
        except Exception as error:  # noqa: BLE001 - the client and the libraries below it raise many types
            failure = self._failure(error)
            if type(failure) is ToolError or (type(failure) is ToolTimeout and self._client.max_retries):
                failure.details["code"] = ErrorKind.STORAGE  # to ask again changes nothing
        else:
            is_cut = reason in {"length", "content_filter"}
            if isinstance(text, str) and text.strip() and not (is_cut or refused):
                return text
            what = f"gave no complete answer ({reason}); ask for less, or another model"
            failure = ToolError(f"{self._name} {what}{self._quote(_words_of(refused))}")
        raise failure  # not within the except block: the client's error holds the request, with the key

    def _failure(self, error: Exception) -> ToolError:
        openai = self._openai
        if isinstance(error, openai.APITimeoutError):
            return ToolTimeout(f"{self._name} did not answer in time; ask again")
        if isinstance(error, openai.APIConnectionError):
            remedy = "start it, or give the base_url of one that runs"
            return StorageUnavailable(f"{self._name} cannot be reached; {remedy}")
        if not isinstance(error, openai.APIStatusError):
            return ToolError(f"{self._name} does not answer in the chat-completions form; check the base_url")
        status, said = error.status_code, self._quote(_words_of(error.body))
        if status in {401, 403}:  # without the words of the server, which may have a part of the key
            what = f"refused the API key ({status}); set OPENAI_API_KEY to a valid one"
            return ToolError(f"{self._name} {what}")
        if status in {408, 429} or status >= 500:
            kind = RateLimitExceeded if status == 429 else StorageUnavailable
            return kind(f"{self._name} accepts no requests now ({status}); ask again later{said}")
        remedy = f"check the model {self._model!r}, and whether base_url ends in /v1"
        if status == 413 or _TOO_LONG.search(said):
            remedy = "give the model a longer context, or set a smaller prompt_limit"
        return ToolError(f"{self._name} refused the request ({status}); {remedy}{said}")

    def _quote(self, words: str) -> str:
        if words.strip()[:1] in {"", "<"}:  # a page for a browser
            return ""
        words = words.replace(self._key, "***") if self._key else words
        return f": {line_of(words, 300)}"


def _words_of(body: object) -> str:
    """The words of an error's body: text, a list, or an object that has them under one of some names."""
    if isinstance(body, list):
        return "; ".join(filter(None, map(_words_of, body[:3])))
    if isinstance(body, dict):
        return next(filter(None, (_words_of(body.get(name)) for name in _NAMES)), "")
    return body if isinstance(body, str) else ""
