"""Not twice: keys that name a call, calls that run at the same time, and claims of calls that must run once.

A call with the idempotency key of an earlier one is a repeated call: it returns the first answer,
changes nothing and publishes nothing. A host gives keys of its own. An integration gives two names, the
turn's and the call's, and the key is made of them here. Such a key is a guess, because servers repeat ids:
after one came with a different call, no guess counts in that session any more.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar, Token
from enum import Enum
from threading import Lock, get_ident
from time import monotonic
from typing import Any, Generic, TypeVar

import attrs

from planning.tools.errors import CallInterrupted, ContextInvalid, type_name
from planning.tools.result import ToolResult
from session import Session, SessionBusyError, SessionEvent, StoreError, TransactionError
from session.json_form import field_names, json_form
from session.locks import Block, ProcessLock

T = TypeVar("T")
_POLLED = 0.01
"""The most seconds after which a call checks again whether those that it waits for are over."""
_GRACE = 2.0
"""The seconds to wait for earlier calls of a turn that have not begun: other code may delay them."""
_MOST_TURNS = 1_000
_inside: ContextVar[RunningCall | None] = ContextVar("_inside", default=None)
"""The call with a key that the running code is part of, while that runs."""


# Keys


class GuessedKey(str):
    """A key made of what names a turn and a call in it. The turn itself is in no event."""

    turn: str


@attrs.frozen(slots=False)
class RepeatedIds(SessionEvent):
    """Two different calls had one guessed key: in this session, guessed keys name nothing."""


@attrs.frozen(slots=False)  # made in half the time
class Turn:
    """The calls of one answer of a model.

    Attributes:
        name: What no other turn is named, in any conversation; None if nothing names it.
        calls: The ids of its calls.
    """

    name: str | None
    calls: Sequence[object]

    def key_of(self, call_id: object) -> GuessedKey | None:
        """The key of a call; None if its id and the turn's name do not name one call."""
        return guessed_key(self.name, call_id) if self.calls.count(call_id) == 1 else None


def guessed_key(turn: str | None, call_id: object) -> GuessedKey | None:
    """The key of a call whose id no other call of its turn has; None if nothing names the two."""
    if not turn or not isinstance(call_id, str) or not call_id:
        return None
    from hashlib import sha256  # noqa: PLC0415 - only a call with a key needs it

    key = GuessedKey(f"sha256:{sha256(json.dumps([turn, call_id]).encode()).hexdigest()}")
    key.turn = turn
    return key


def find_repeat(session: Session, name: str, key: str, fingerprint: str | None) -> ToolResult | None:
    """The model's first answer for a call; None for a free key, or a guess that does not count."""
    try:
        call = session.find_call(key)
    except TransactionError:
        reason = "the program is running other calls in one transaction. Call it again later."
        raise ContextInvalid(f"{name} was not called: {reason}") from None
    if call is None:
        return None
    first = call.fingerprint or fingerprint_of(call.params)
    is_other = call.name != name or fingerprint not in (None, first)
    if isinstance(key, GuessedKey) and (is_other or _repeats_ids(session)):
        if not _repeats_ids(session):  # a refusal takes back what its transaction noted: see ``doubt``
            with suppress(StoreError, SessionBusyError):  # the next different call notes it
                session.publish(RepeatedIds(), timeout=0.2)
        return None
    if call.name != name:
        reason = f"it has the key of an earlier call of {call.name}. Send it as a new call."
    elif not isinstance(call.result, ToolResult) or call.result.is_private:
        reason = (
            "it repeats an earlier call, whose private result is not kept. Make a new call if you need it."
        )
    elif fingerprint is None or is_other:
        reason = "it has the key of an earlier call with other arguments. Send it as a new call."
    else:
        return attrs.evolve(call.result, value=None)
    raise ContextInvalid(f"{name} was not called: {reason}")


def doubt(session: Session | None, name: str, key: str | None) -> None:
    """Note that a refused call is a different one from the accepted call with its guessed key, if any."""
    if session is not None and isinstance(key, GuessedKey):
        with suppress(ContextInvalid, StoreError):
            find_repeat(session, name, key, "")


def _repeats_ids(session: Session) -> bool:
    return session.select_latest(RepeatedIds) is not None


# Calls at the same time


class RunningCalls(ProcessLock):
    """The calls with idempotency keys that are running in a session in this process."""

    def __init__(self) -> None:
        super().__init__()
        self.running: dict[str, RunningCall] = {}  # by key

    def forget_other_threads(self) -> None:
        """Forget the calls of threads that are not in a forked child."""
        self.running = {key: call for key, call in self.running.items() if call.thread == get_ident()}

    def alone(self, name: str, key: str) -> RunningCall:
        """A block in which no other call with a key is running, once its ``pauses`` are over."""
        return RunningCall(self, name, key)


class RunningCall(Block):
    """A call with a key; others with the key wait for the end of the block.

    Attributes:
        thread: The thread that makes it.
    """

    __slots__ = ("_calls", "_key", "_name", "_outer", "_token", "thread")

    def __init__(self, calls: RunningCalls, name: str, key: str) -> None:
        super().__init__()
        self._calls = calls
        self._name = name
        self._key = key
        self._token: Token[RunningCall | None] | None = None
        self._outer = _inside.get()
        self.thread = get_ident()

    def pauses(self, *, is_async: bool = False) -> Iterator[float]:
        """Seconds to sleep, one after the other, until no other call with the key is running.

        Refused where the other call cannot end while this one waits: no two calls wait for each other.
        """
        while (other := self._calls.running.setdefault(self._key, self)) is not self:
            outer = self._outer
            while outer is not None and not outer.is_running():
                outer = outer._outer
            if outer is not None or (other.thread == self.thread and not is_async):
                raise ContextInvalid(
                    f"{self._name} was not called: the same call is still running; wait until it ends"
                )
            yield _POLLED
        self._token = _inside.set(self)

    def is_running(self) -> bool:
        """True if it has begun, and is not over."""
        return self._calls.running.get(self._key) is self

    def _end(self, _gone: object = None) -> None:
        """Let the others begin."""
        if self.is_running():
            del self._calls.running[self._key]  # a forked child has forgotten it
        if self._token is not None:
            with suppress(ValueError, RuntimeError):  # closed in another context, or done before
                _inside.reset(self._token)
        self.watch = None


class LastUsed(Generic[T]):
    """Makes what belongs to a key, and forgets it when so many other keys were used since."""

    def __init__(self, limit: int) -> None:
        self._most, self._lock = limit, Lock()
        self._kept: OrderedDict[Hashable, T] = OrderedDict()

    def of(self, key: Hashable, make: Callable[[], T]) -> T:
        """The object that belongs to a key; made unless it is kept."""
        with self._lock:
            if key not in self._kept:
                self._kept[key] = make()
            self._kept.move_to_end(key)
            while len(self._kept) > self._most:
                self._kept.popitem(last=False)
            return self._kept[key]


class TurnOrder:
    """Lets each call of a turn begin when the earlier ones are over.

    An earlier call may never come, because it waits for a person or was over before a restart: that is waited
    for ``_GRACE`` seconds in all.
    """

    def __init__(self) -> None:
        self._turns = LastUsed[dict[str, bool]](_MOST_TURNS)

    @contextmanager
    def place_of(self, turn: Hashable, call_id: str, earlier: Collection[str]) -> Iterator[Iterator[float]]:
        """A block of a call, which begins with sleeping so many seconds, one after the other."""
        calls = self._turns.of(turn, dict[str, bool])
        calls[call_id] = True
        try:
            yield _pauses(calls, earlier)
        finally:
            calls[call_id] = False


def _pauses(calls: Mapping[str, bool], earlier: Collection[str]) -> Iterator[float]:
    """Seconds to sleep until calls are over, by whether each of those that have begun is running."""
    pause, end = 0.0005, monotonic() + _GRACE
    while any(calls.get(each, monotonic() < end) for each in earlier):
        yield pause
        pause = min(2 * pause, _POLLED)


# Claims


def claim(session: Session, name: str, key: str, fingerprint: str | None) -> None:
    """Record that a call begins which must not be made twice."""
    is_guess = isinstance(key, GuessedKey)
    begun = f"idempotency key {key}" + (f" {name} {fingerprint}" if is_guess else "")
    try:
        is_first = session.claim(begun)
    except TransactionError:
        raise ContextInvalid(
            f"{name} was not called: it must not be made twice, which cannot be recorded inside a "
            "transaction; call it outside of one"
        ) from None
    except StoreError as error:
        error.outcome = "refused"  # of the call, which is not made; the store knows its own claim again
        raise
    if not is_first and not (is_guess and _repeats_ids(session)):
        raise CallInterrupted(
            f"{name} may have taken effect: this call was begun before, and its result is not known. "
            "Check what it did before you call it again."
        )


def fingerprint_of(params: Any, key: str | None = None, *, is_private: bool = False) -> str | None:
    """A digest of arguments, the same after a restart; None where they cannot be compared.

    Private ones need a guessed key, whose turn hides them: the digest of short ones could be guessed.
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
    from hashlib import sha256  # noqa: PLC0415 - see above

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
    return [type_name(value), json_form(value, strict=True)]


_as_text = json.JSONEncoder(sort_keys=True, default=_parts).encode
