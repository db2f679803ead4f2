"""Tests of MCP may be coroutines."""

from __future__ import annotations

import inspect

import pytest
from mcp_served import within


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine to its end; one that hangs fails."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters
    within(pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names}))
    return True
