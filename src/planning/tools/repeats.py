"""Repeats: the same call made again, as durable engines and flaky networks do.

A repeat has the call id, the tool and the arguments of a call on the session's present branch. It returns
what the model got the first time, changes nothing and publishes nothing.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from threading import Lock, get_ident
from typing import TYPE_CHECKING, Any
from uuid import UUID

import attrs

from planning.tools.contract import ToolContract
from planning.tools.errors import CallInterrupted, ContextInvalid
from planning.tools.result import ToolResult, plain
from session import Session

if TYPE_CHECKING:
    from concurrent.futures import Future

__all__ = ["Repeats", "repeated"]

_MOST_PRIVATE = 1_000
_LEFT_OUT = '"..."'  # stands for what is nested too deep to be written

# The calls that the running code is part of: one that would wait for itself is refused.
_making: ContextVar[frozenset[tuple[str, str]]] = ContextVar("_making", default=frozenset())


def repeated(session: Session, name: str, params: Any, call_id: str) -> tuple[ToolResult | None, bool]:
    """What the model got for this call the first time, and whether there was any call with the id.

    Raises:
        StoreError: The session's store cannot be read.
    """
    earlier = session.calls(call_id)
    for event in reversed(earlier):
        same = event.name == name and _is_same(event.params, params)
        if same and isinstance(event.result, ToolResult):
            return attrs.evolve(event.result, value=None), True
    return None, bool(earlier)


class Repeats:
    """The calls with ids that are being made in a session here, and the private results of earlier ones.

    There is one for each session in a process. What is private is in no event, so it is kept here alone: the
    last 1,000 results.
    """

    def __init__(self) -> None:
        """Begin without calls."""
        self._lock = Lock()
        self._calls: dict[tuple[str, str], _Call] = {}
        self._private: OrderedDict[UUID, tuple[str, ToolResult]] = OrderedDict()

    @contextmanager
    def alone(self, name: str, call_id: str) -> Iterator[None]:
        """Wait until no other call of a tool with an id is being made, and keep others waiting.

        Raises:
            ContextInvalid: It would wait for itself.
        """
        key = (call_id, name)
        while (other := self._begun(key)) is not None:
            if key in _making.get() or other.thread == get_ident():
                raise _waits_for_itself(name, call_id)
            other.done.result()
        token = _making.set(_making.get() | {key})
        try:
            yield
        finally:
            _making.reset(token)
            self._calls.pop(key).done.set_result(None)

    @asynccontextmanager
    async def aalone(self, name: str, call_id: str) -> AsyncIterator[None]:
        """The same from async code; the event loop stays free."""
        from asyncio import shield, wrap_future  # noqa: PLC0415 - whoever awaits has it

        key = (call_id, name)
        while (other := self._begun(key)) is not None:
            if key in _making.get():
                raise _waits_for_itself(name, call_id)
            await shield(wrap_future(other.done))
        token = _making.set(_making.get() | {key})
        try:
            yield
        finally:
            _making.reset(token)
            self._calls.pop(key).done.set_result(None)

    def _begun(self, key: tuple[str, str]) -> _Call | None:
        """The call that is being made; None if this is it from now on."""
        from concurrent.futures import Future  # noqa: PLC0415 - only a call with an id needs it

        with self._lock:
            other = self._calls.get(key)
            if other is None:
                self._calls[key] = _Call(get_ident(), Future())
            return other

    def find(
        self, session: Session, tool: ToolContract, params: Any, call_id: str
    ) -> tuple[ToolResult | None, bool]:
        """What the model got for this call the first time, and whether there was any call with the id.

        Without a result, the call may be made now.

        Raises:
            CallInterrupted: It was begun before, must not be made twice, and has no result.
            ContextInvalid: It was made before, and its private result is not kept.
            StoreError: The session's store cannot be read, or does not take the claim.
        """
        found = (
            self._find_private(session, tool.name, params, call_id)
            if tool.returns_private_data
            else repeated(session, tool.name, params, call_id)
        )
        if found[0] is not None or tool.idempotent or session.store is None:
            return found
        what = "" if tool.returns_private_data else f" {_text(params)}"
        if not session.claim(f"call {call_id} {tool.name}{what}"):
            raise CallInterrupted(
                f"{tool.name} may have taken effect: a call with this id was begun before, and it must not "
                "be made twice. Check what it did, and call it with a new id if that is needed."
            )
        return found

    def _find_private(
        self, session: Session, name: str, params: Any, call_id: str
    ) -> tuple[ToolResult | None, bool]:
        earlier = session.calls(call_id)
        kept = [self._private.get(event.event_id) for event in reversed(earlier) if event.name == name]
        for each in kept:
            if each is not None and each[0] == _text(params):
                return attrs.evolve(each[1], value=None), True
        if None in kept:
            raise ContextInvalid(
                f"{name} was not called: a call with this id was made before, and its private result is not "
                "kept; call it with a new id"
            )
        return None, bool(earlier)

    def keep_private(
        self, session: Session, name: str, params: Any, call_id: str, result: ToolResult
    ) -> None:
        """Keep the private result of a call that was made just now, for a repeat of it."""
        made = [event for event in session.calls(call_id) if event.name == name]
        with self._lock:
            for event in made[-1:]:
                self._private[event.event_id] = (_text(params), result)
            if len(self._private) > _MOST_PRIVATE:
                self._private.popitem(last=False)


@attrs.frozen
class _Call:
    """A call that is being made.

    Attributes:
        thread: The thread that makes it.
        done: Set when it has ended.
    """

    thread: int
    done: Future[None]


def _waits_for_itself(name: str, call_id: str) -> ContextInvalid:
    return ContextInvalid(
        f"{name} was not called: a call of it with the id {call_id} is being made by the code that makes "
        "this one; give it another id"
    )


def _is_same(given: Any, params: Any) -> bool:
    """Whether arguments are those of an earlier call; where the text leaves a part out, only if equal."""
    text = _text(params)
    if text != _text(given):
        return False
    try:
        return _LEFT_OUT not in text or bool(given == params)
    except Exception:  # noqa: BLE001 - what cannot be compared is another call
        return False


def _text(params: Any) -> str:
    """Arguments as they are compared."""
    return json.dumps(plain(params), sort_keys=True, ensure_ascii=False, default=repr)
