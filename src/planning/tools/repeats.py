"""Repeats: the same call made again, as durable engines and flaky networks do.

A repeat has the call id, the tool and the arguments of a call on the session's present branch. It returns
what the model got the first time, changes nothing and publishes nothing.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from enum import Enum
from hashlib import sha256
from threading import get_ident
from typing import TYPE_CHECKING, Any
from uuid import UUID

import attrs

from planning.tools.contract import ToolContract
from planning.tools.errors import CallInterrupted, ContextInvalid, type_name
from planning.tools.result import ToolResult, field_names, plain
from session import Session
from session.errors import TransactionError
from session.locks import ProcessLock

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["NewCall", "Repeats", "claim", "find_repeat"]

_MOST_PRIVATE = 1_000


@attrs.frozen
class NewCall:
    """A call with an id that is not a repeat.

    Attributes:
        is_id_reused: Whether an earlier call has the same id.
        fingerprint: The digest of its tool and arguments; None where they are private or have no JSON form.
    """

    is_id_reused: bool
    fingerprint: str | None

    def of_events(self) -> dict[str, Any]:
        """The fields of its event."""
        return {"is_id_reused": self.is_id_reused, "fingerprint": self.fingerprint}


def find_repeat(session: Session, name: str, params: Any, call_id: str) -> ToolResult | NewCall:
    """What the model got for this call the first time; or the call, if it is new.

    Raises:
        StoreError: The session's store cannot be read.
    """
    fingerprint = _fingerprint(name, params)
    is_id_reused = session.has_call(call_id)
    if is_id_reused and fingerprint is not None:
        for event in reversed(session.calls(call_id, fingerprint=fingerprint)):
            if isinstance(event.result, ToolResult):
                return attrs.evolve(event.result, value=None)
    return NewCall(is_id_reused, fingerprint)


class Repeats(ProcessLock):
    """The calls with ids that are running in a session here, and the private results of earlier ones.

    There is one for each session in a process. What is private is in no event, so it is kept here alone: the
    last 1,000 results.
    """

    def __init__(self) -> None:
        """Begin without calls."""
        super().__init__()
        self._running: dict[tuple[str, str], _Call] = {}
        self._private: OrderedDict[UUID, tuple[str | None, ToolResult]] = OrderedDict()

    def forget_other_threads(self) -> None:
        """Forget the calls of threads that are not in a forked child."""
        self._running = {key: call for key, call in self._running.items() if call.thread == get_ident()}

    @contextmanager
    def alone(self, name: str, call_id: str) -> Iterator[None]:
        """Wait until no other call of a tool with an id is running, and keep others waiting.

        Raises:
            ContextInvalid: It would wait for itself.
        """
        key, around = (call_id, name), _around.get()
        while (other := self._begin(key, around, get_ident())) is not None:
            try:
                other.done.result()
            finally:
                _waited(around, other)
        with self._inside(key, around):
            yield

    @asynccontextmanager
    async def aalone(self, name: str, call_id: str) -> AsyncIterator[None]:
        """The same from async code; the event loop stays free."""
        from asyncio import shield, wrap_future  # noqa: PLC0415 - whoever awaits has it

        key, around = (call_id, name), _around.get()
        while (other := self._begin(key, around, None)) is not None:
            try:
                await shield(wrap_future(other.done))
            finally:
                _waited(around, other)
        with self._inside(key, around):
            yield

    def _begin(self, key: tuple[str, str], around: frozenset[_Call], blocked: int | None) -> _Call | None:
        """The running call to wait for; None if this one runs from now on.

        Args:
            key: The call's id and tool.
            around: The calls that this one is made by.
            blocked: The thread that can do nothing else while this call waits.

        Raises:
            ContextInvalid: That call waits for this one, or cannot go on while this one waits.
        """
        from concurrent.futures import Future  # noqa: PLC0415 - only a call with an id needs it

        with self.lock:
            other = self._running.get(key)
            if other is None:
                self._running[key] = _Call(get_ident(), Future())
                return None
            todo = [other]
            while todo:
                each = todo.pop()
                if each in around or each.thread == blocked:
                    raise _waits_for_itself(key)
                todo += each.waits_for
            for call in around:
                call.waits_for.append(other)
            return other

    @contextmanager
    def _inside(self, key: tuple[str, str], around: frozenset[_Call]) -> Iterator[None]:
        call = self._running[key]
        token = _around.set(around | {call})
        try:
            yield
        finally:
            self._running.pop(key, None)  # a forked child has forgotten it
            call.done.set_result(None)
            with suppress(ValueError):  # a task that is never awaited is closed in another context
                _around.reset(token)

    def find(self, session: Session, tool: ToolContract, params: Any, call_id: str) -> ToolResult | NewCall:
        """What the model got for this call the first time; or the call, if it is new.

        Raises:
            ContextInvalid: It was made before, and its private result is not kept.
            StoreError: The session's store cannot be read.
        """
        if not tool.returns_private_data:
            return find_repeat(session, tool.name, params, call_id)
        earlier = session.calls(call_id)
        kept = [self._private.get(event.event_id) for event in reversed(earlier) if event.name == tool.name]
        fingerprint = _fingerprint(tool.name, params)
        for each in kept:
            if each is not None and each[0] is not None and each[0] == fingerprint:
                return each[1]
        if None in kept:
            raise ContextInvalid(
                f"{tool.name} was not called: a call with this id was made before, and its private result is "
                "not kept; call it with a new id"
            )
        return NewCall(bool(earlier), None)

    def keep_private(
        self, session: Session, name: str, params: Any, call_id: str, result: ToolResult
    ) -> None:
        """Keep the private result of a call that was made just now, for a repeat of it."""
        made = [event for event in session.calls(call_id) if event.name == name]
        with self.lock:
            for event in made[-1:]:
                shown = attrs.evolve(result, value=None)
                self._private[event.event_id] = (_fingerprint(name, params), shown)
            if len(self._private) > _MOST_PRIVATE:
                self._private.popitem(last=False)


def claim(session: Session, tool: ToolContract, call_id: str, call: NewCall) -> None:
    """Record that a call begins which must not be made twice.

    Raises:
        CallInterrupted: It was begun before, and has no result.
        ContextInvalid: The session has an open transaction, in which that cannot be recorded.
        StoreError: The store does not take it.
    """
    # Of private arguments nothing is recorded: calls with the same id are told apart by their number.
    which = call.fingerprint or str(sum(event.name == tool.name for event in session.calls(call_id)))
    try:
        is_first = session.claim(f"call {call_id} {tool.name} {which}")
    except TransactionError:
        raise ContextInvalid(
            f"{tool.name} was not called: it must not be made twice, which cannot be recorded inside a "
            "transaction; call it outside of one"
        ) from None
    if not is_first:
        raise CallInterrupted(
            f"{tool.name} may have taken effect: a call with this id was begun before, and it must not "
            "be made twice. Check what it did, and call it with a new id if that is needed."
        )


@attrs.frozen(eq=False)
class _Call:
    """A call that is running.

    Attributes:
        thread: The thread that makes it.
        done: Set when it has ended.
        waits_for: The calls that it waits for, through calls that it makes itself.
    """

    thread: int
    done: Future[None]
    waits_for: list[_Call] = attrs.field(factory=list)


# The calls that the running code is part of: one that would wait for itself is refused.
_around: ContextVar[frozenset[_Call]] = ContextVar("_around", default=frozenset())


def _waited(around: frozenset[_Call], other: _Call) -> None:
    for call in around:
        call.waits_for.remove(other)


def _waits_for_itself(key: tuple[str, str]) -> ContextInvalid:
    call_id, name = key
    return ContextInvalid(
        f"{name} was not called: a call of it with the id {call_id} is being made by the code that makes "
        "this one; give it another id"
    )


def _fingerprint(name: str, params: Any) -> str | None:
    """A digest of a tool and its arguments; None where the arguments cannot be compared.

    Equal arguments have equal digests also after a restart; those that differ, in the type of a number too,
    have others.
    """
    try:
        text = _as_text([name, params])
    except Exception:  # noqa: BLE001 - any object may be among the arguments, and reading it may do anything
        return None
    return urlsafe_b64encode(sha256(text.encode()).digest()[:12]).decode()


def _form(value: Any) -> Any:
    """One level of a value that JSON lacks, for comparing."""
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


_as_text = json.JSONEncoder(sort_keys=True, default=_form).encode
