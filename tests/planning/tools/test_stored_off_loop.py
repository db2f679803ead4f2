"""In async code nothing that a call does with a store happens in the event loop's thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from planning import PlanningToolsSection, PlanPolicy, Toolbox
from planning.tools import Tool, tool
from session import Session
from session.pool import Pool
from session.stored import Stored
from session.stores import SqliteStore

SETUP = {"objective": "Fix the login bug", "initial_steps": ["Reproduce it"]}
MARK = {"step_id": "S001", "status": "done"}
CALLS: list[tuple[str, object, Mapping[str, Any]]] = [
    ("planning_setup_plan", SETUP, {}),
    ("planning_mark_step", MARK, {"call_id": "1"}),
    ("planning_mark_step", MARK, {"call_id": "1"}),
    ("planning_mark_step", {**MARK, "status": "ended"}, {}),
    ("planning_mark_step", "{no json", {}),
    ("planning_read_plan", {}, {}),
    ("nobody", {}, {}),
    ("nobody", {}, {"call_id": "2"}),
    ("send", {"to": "Ann"}, {"call_id": "3"}),
    ("send", {"to": "Ann"}, {"call_id": "3"}),
    ("send", {}, {}),
    ("asend", {"to": "Ann"}, {"call_id": "4"}),
    ("once", {"to": "Ann"}, {"call_id": "5"}),
    ("private", {"to": "Ann"}, {"call_id": "6"}),
    ("private", {"to": "Ann"}, {"call_id": "6"}),
    ("fail", {}, {}),
    ("send", {"to": "Ann"}, {"call_id": ["no id"]}),
]


class Watched(SqliteStore):
    """Knows in which threads it was used."""

    threads: set[int]

    def _explaining(self, timeout: float | None = None) -> Any:
        vars(self).setdefault("threads", set()).add(threading.get_ident())
        return super()._explaining(timeout)


def send(to: str) -> str:
    return f"Sent to {to}"


async def asend(to: str) -> str:
    return f"Sent to {to}"


def fail() -> None:
    raise ValueError("no")


@pytest.mark.parametrize("policy", [None, PlanPolicy(approval=True, evidence="required")])
@pytest.mark.parametrize("is_fixed", [True, False])
def test_no_call_of_any_kind_uses_the_store_in_the_thread_of_the_event_loop(
    tmp_path: Path, is_fixed: bool, policy: PlanPolicy | None
) -> None:
    store = Watched(tmp_path / "plans.db")
    session = Session(session_id="run-7", store=store)
    source = session if is_fixed else (lambda: session)
    tools = [
        *PlanningToolsSection(session=source, policy=policy).tools(),
        Tool("send", "Send.", send),
        Tool("asend", "Send.", asend),
        Tool("once", "Send.", send, idempotent=False),
        Tool("private", "Send.", send, returns_private_data=True),
        Tool("fail", "Fail.", fail),
    ]
    toolbox = Toolbox(tools, session=source)

    async def scene() -> list[bool]:
        found = []
        for name, arguments, context in CALLS:
            store.threads.clear()
            await toolbox.acall(name, arguments, context=context)  # type: ignore[arg-type]  # as a model may send it
            found.append(threading.get_ident() not in store.threads)
        return found

    assert asyncio.run(scene()) == [True] * len(CALLS)
    assert session.version > 10


def test_a_call_inside_the_callers_own_transaction_is_a_part_of_it(tmp_path: Path) -> None:
    session = Session(session_id="run-7", store=SqliteStore(tmp_path / "plans.db"))
    toolbox = Toolbox([*PlanningToolsSection(session=session).tools(), Tool("asend", "Send.", asend)])

    async def scene() -> list[str]:
        with session.transaction():
            calls: list[tuple[str, Mapping[str, Any]]] = [
                ("planning_setup_plan", SETUP),
                ("asend", {"to": "Ann"}),
                ("planning_mark_step", {}),
            ]
            results = [await toolbox.acall(name, arguments) for name, arguments in calls]
        return [result.message for result in results]

    said = asyncio.run(asyncio.wait_for(scene(), 60))
    assert said[:2] == ["Plan set: S001. Next: S001 Reproduce it", "Sent to Ann"]
    assert said[2].startswith("Refused, nothing changed. 2 problems:")
    assert (session.version, [type(event).__name__ for event in session.history()[0].events]) == (
        1,
        ["ToolInvoked", "ToolInvoked", "ToolFailed"],
    )


@pytest.mark.parametrize("steps", [1, 2, 3])
@pytest.mark.parametrize("key", [None, "k"])
def test_a_call_that_is_begun_and_closed_ends_quietly_and_leaves_nothing_locked(
    opened: Callable[..., SqliteStore], steps: int, key: str | None
) -> None:
    async def work(a: int) -> int:
        await asyncio.sleep(0)
        return a

    async def main() -> None:
        session = Session(session_id="run", store=opened())
        box = Toolbox([*PlanningToolsSection(session=session).tools(), tool(work)], session=session)
        await box.acall("planning_setup_plan", {"objective": "o", "initial_steps": ["x"]})
        mark = ("planning_mark_step", {"step_id": "S001", "status": "done"})
        for name, arguments in (mark, ("work", {"a": 1}), ("nothing", {})):
            context = None if key is None else {"idempotency_key": f"{key} {name}"}
            call = box.acall(name, arguments, context=context)
            with suppress(StopIteration):
                for _ in range(steps):
                    waited: Any = call.send(None)
                    while waited is not None and not waited.done():
                        await asyncio.sleep(0.001)
            call.close()
            again = await box.acall(name, arguments, context=context)
            assert again.success is (name != "nothing")
        assert session.refresh() == session.version

    asyncio.run(main())


@pytest.mark.parametrize("name", ["send", "asend"])
def test_a_call_that_was_carried_out_and_not_recorded_says_so(
    opened: Callable[..., SqliteStore], monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    session = Session(session_id="run-7", store=opened())
    toolbox = Toolbox(
        [Tool("send", "Send.", send, blocking=False), Tool("asend", "Send.", asend)], session=session
    )

    def refuse(*_: Any) -> int:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("session.pool.POOL", Pool())  # one without threads
    monkeypatch.setattr("_thread.start_new_thread", refuse)
    assert asyncio.run(toolbox.acall(name, {"to": "Ann"})).message == (
        f"{name} ran, but the session could not store its result. Check what it did before you call it again."
    )
    monkeypatch.undo()
    assert session.version == 0


def test_calls_at_once_on_one_session_are_made_in_order_whichever_store_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun = list[str]()
    slow = threading.Event()

    async def call(name: str, arguments: Mapping[str, object]) -> str:
        session = Session(session_id="shop", store=SqliteStore(tmp_path / "plans.db"))
        toolbox = Toolbox(PlanningToolsSection(session=session).tools(), session=session)
        return (await toolbox.acall(name, arguments)).message

    def begin(stored: Any, timeout: float | None) -> None:
        begun.append("call")
        if len(begun) == 1:
            slow.wait(0.1)  # another thread could go ahead of the first call
        whole(stored, timeout)

    whole = Stored.begin
    monkeypatch.setattr(Stored, "begin", begin)

    async def main() -> list[str]:
        calls = call("planning_setup_plan", SETUP), call("planning_mark_step", MARK)
        return list(await asyncio.gather(*calls))

    assert asyncio.run(main()) == ["Plan set: S001. Next: S001 Reproduce it", "S001 done. Plan completed."]
