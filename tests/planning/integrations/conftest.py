"""Tests of integrations may be coroutines; the sessions that they keep in a file."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from planning import register_plan
from session import Session
from session.stores import SqliteStore


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine to its end; one that hangs fails."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    test = pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names})
    asyncio.run(asyncio.wait_for(test, 30))
    return True


@pytest.fixture
def opens(path: Path) -> Iterator[Callable[[], Session]]:
    """Opens the session of a file, as a process does that starts."""
    with ExitStack() as stack:

        def opened() -> Session:
            store = SqliteStore(path, timeout=0.05)
            stack.callback(store.close)
            session = Session(session_id="shop", store=store)
            register_plan(session)
            return session

        yield opened


@pytest.fixture
def stored(opens: Callable[[], Session]) -> Session:
    return opens()


@pytest.fixture(params=["memory", "a file"])
def session(request: pytest.FixtureRequest, opens: Callable[[], Session]) -> Session:
    return Session() if request.param == "memory" else opens()
