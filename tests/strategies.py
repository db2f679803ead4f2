"""Hypothesis strategies that all tests share: those of ``planning.testing``, and values of other types."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from planning.plan.text import TextRule
from planning.testing.strategies import any_plans as plans
from planning.testing.strategies import commands, new_steps, plan_steps, step_ids, texts

__all__ = [
    "anything",
    "commands",
    "new_steps",
    "plan_steps",
    "plans",
    "spaces",
    "step_ids",
    "texts",
    "untrimmed_texts",
]


def spaces(max_size: int = 3) -> SearchStrategy[str]:
    """What a trim takes away, or nothing."""
    return st.text(" \t\n\r\u00a0\u3000", max_size=max_size)


def untrimmed_texts(rule: TextRule) -> SearchStrategy[str]:
    """Texts that a rule lets through once they are trimmed."""
    return st.tuples(spaces(), texts(rule), spaces()).map("".join)


def anything() -> SearchStrategy[Any]:
    """Values of types that a field may or may not take."""
    return st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.binary(max_size=3),
        st.text(max_size=12),
        st.lists(st.text(max_size=3), max_size=2),
        st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
    )
