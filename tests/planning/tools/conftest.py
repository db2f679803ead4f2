"""What the tests of tools share."""

from __future__ import annotations

import pytest

from planning.tools import ToolRegistry, registry


@pytest.fixture
def own_default(monkeypatch: pytest.MonkeyPatch) -> ToolRegistry:
    """A default registry of the test's own: what others registered stays out of it, and it out of theirs."""
    fresh = ToolRegistry()
    monkeypatch.setattr(registry, "_DEFAULT", fresh)
    return fresh
