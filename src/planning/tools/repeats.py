"""Repeats: a call with the idempotency key of an earlier one.

A repeat returns what the model got the first time, changes nothing and publishes nothing. A caller's own key is
taken at its word. A key made of a provider's ids is a guess, because servers repeat them: when one comes with
another call, the session records it, and no such key counts there from then on.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from enum import Enum
from threading import get_ident
from typing import TYPE_CHECKING, Any

import attrs

from planning.tools.attempts import background
from planning.tools.errors import CallInterrupted, ContextInvalid, type_name
from planning.tools.result import ToolResult, field_names, plain
from session import Session, SessionEvent, TransactionError
from session.locks import ProcessLock

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = [
    "GuessedKey",
    "NamesNothing",
    "RepeatedIds",
    "RunningCalls",
    "claim",
    "find_repeat",
    "fingerprint_of",
    "guessed_key",
]

_is_inside: ContextVar[bool] = ContextVar("_is_inside", default=False)
"""Whether the running code is part of a call with a key."""


class GuessedKey(str):
    """An idempotency key made of a provider's ids.

    Attributes:
        turn: What names the turn. It is in no event.
    """

    turn: str


@attrs.frozen(slots=False)
class RepeatedIds(SessionEvent):
    """A key made of a provider's ids came with two different calls: in this session, no such key counts."""


class NamesNothing(Exception):
    """A guessed key does not name its call, which was not made yet: make it without the key.

    Attributes:
        session: The session in which this must be recorded; None if that is done or not needed.
    """

    def __init__(self, session: Session | None) -> None:
        super().__init__()
        self.session = session


def guessed_key(turn: str | None, call_id: object) -> GuessedKey | None:
    """The key of a call in a turn; None if one of them has no name.

    Args:
        turn: What names the turn.
        call_id: The provider's id of the call, which no other call of the turn has.
    """
    if not turn or not isinstance(call_id, str) or not call_id:
        return None
    from hashlib import sha256  # noqa: PLC0415 - only a call with a key needs it

    key = GuessedKey(f"sha256:{sha256(json.dumps([turn, call_id]).encode()).hexdigest()}")
    key.turn = turn
    return key


def find_repeat(
    session: Session, name: str, key: str, fingerprint: str | None, *, is_private: bool = False
) -> ToolResult | None:
    """What the model got for a call the first time; None if its key is free.

    Args:
        session: The session.
        name: The tool's name.
        key: The call's idempotency key.
        fingerprint: That of its arguments; None where they cannot be compared.
        is_private: Whether the tool has private data.

    Raises:
        ContextInvalid: The key was used for another call, or the result of the first is not kept.
        NamesNothing: The key is a guess, and does not count.
        StoreError: The session's store cannot be read.
    """
    is_guess = isinstance(key, GuessedKey)
    try:
        call = session.find_call(key)
    except TransactionError as error:
        if is_guess:
            raise NamesNothing(None) from None
        raise ContextInvalid(f"{name} was not called: {error}") from None
    if call is None:
        return None
    first = call.fingerprint or fingerprint_of(call.params)
    if is_guess:
        is_noted = _repeats_ids(session)
        if is_noted or call.name != name or fingerprint not in (None, first):
            raise NamesNothing(None if is_noted else session)
    if call.name != name:
        reason = f"it was sent as a repeat of an earlier call, of {call.name}. Send it as a new call."
    elif is_private or not isinstance(call.result, ToolResult) or call.result.is_private:
        reason = "it repeats an earlier call, whose private result is not kept. Send a new call if you need it again."
    elif fingerprint is None or fingerprint != first:
        reason = "it was sent as a repeat of an earlier call, with other arguments. Send it as a new call."
    else:
        return attrs.evolve(call.result, value=None)
    raise ContextInvalid(f"{name} was not called: {reason}")


def _repeats_ids(session: Session) -> bool:
    return session.select_latest(RepeatedIds) is not None


class RunningCalls(ProcessLock):
    """The calls with idempotency keys that are running in a session in this process."""

    def __init__(self) -> None:
        super().__init__()
        self._running: dict[str, tuple[int, Future[None]]] = {}  # by key: the thread, and when it is over

    def forget_other_threads(self) -> None:
        """Forget the calls of threads that are not in a forked child."""
        self._running = {key: call for key, call in self._running.items() if call[0] == get_ident()}

    @contextmanager
    def alone(self, name: str, key: str) -> Iterator[None]:
        """Wait until no other call with a key is running, and keep others waiting.

        Raises:
            ContextInvalid: The other call cannot end while this one waits: it is of this thread, or this one
                is made by a call with a key. No two calls wait for each other.
        """
        while (other := self._begin(name, key, get_ident())) is not None:
            other.result()
        with self._inside(key):
            yield

    @asynccontextmanager
    async def aalone(self, name: str, key: str) -> AsyncIterator[None]:
        """The same from async code; the event loop stays free."""
        while (other := self._begin(name, key, None)) is not None:
            await background().finished(other)
        with self._inside(key):
            yield

    def _begin(self, name: str, key: str, thread: int | None) -> Future[None] | None:
        with self.lock:
            other = self._running.get(key)
            if other is None:
                self._running[key] = (get_ident(), background().Future())
                return None
        if _is_inside.get() or other[0] == thread:
            raise ContextInvalid(f"{name} was not called: the same call is still running; wait until it ends")
        return other[1]

    @contextmanager
    def _inside(self, key: str) -> Iterator[None]:
        over = self._running[key][1]
        token = _is_inside.set(True)
        try:
            yield
        finally:
            self._running.pop(key, None)  # a forked child has forgotten it
            over.set_result(None)
            with suppress(ValueError):  # a task that is never awaited is closed in another context
                _is_inside.reset(token)


def claim(session: Session, name: str, key: str, fingerprint: str | None) -> None:
    """Record that a call begins which must not be made twice.

    Raises:
        CallInterrupted: It was begun before, and has no result.
        ContextInvalid: The session has an open transaction, in which that cannot be recorded.
        StoreError: The store does not take it.
    """
    is_guess = isinstance(key, GuessedKey)
    begun = f"idempotency key {key}" + (f" {name} {fingerprint}" if is_guess else "")
    try:
        is_first = session.claim(begun)
    except TransactionError:
        raise ContextInvalid(
            f"{name} was not called: it must not be made twice, which cannot be recorded inside a "
            "transaction; call it outside of one"
        ) from None
    if not (is_first or (is_guess and _repeats_ids(session))):
        raise CallInterrupted(
            f"{name} may have taken effect: this call was begun before, and its result is not known. "
            "Check what it did before you call it again."
        )


def fingerprint_of(params: Any, key: str | None = None, *, is_private: bool = False) -> str | None:
    """A digest of arguments, the same after a restart; None where they cannot be compared.

    Private ones are compared only if the call has a guessed key, whose turn no store shows.
    """
    if is_private:
        if not isinstance(key, GuessedKey):
            return None
        params = [key.turn, params]
    try:
        text = _as_text(params)
    except Exception:  # noqa: BLE001 - any object may be among the arguments, and reading it may do anything
        return None
    from base64 import urlsafe_b64encode  # noqa: PLC0415 - only a call with a key needs them
    from hashlib import sha256  # noqa: PLC0415 - likewise

    return urlsafe_b64encode(sha256(text.encode()).digest()[:12]).decode()


def _parts(value: Any) -> Any:
    """One level of a value that JSON lacks, with what a pydantic model hides when it is dumped."""
    if hasattr(type(value), "model_dump"):  # a pydantic model
        return dict(value)
    names = field_names(value)
    if names is not None:
        return {name: getattr(value, name) for name in names}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, (set, frozenset)):
        return sorted(map(_as_text, value))
    return [type_name(value), plain(value, strict=True)]


_as_text = json.JSONEncoder(sort_keys=True, default=_parts).encode
