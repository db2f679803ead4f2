"""Conditions: a step's ``done_check``, evaluated against the memory and nothing else.

    done_check = "memory.get('revenue') is not None and len(revenue) > 0"

A condition is one expression of Python's grammar, of which little is allowed (``grammar``), evaluated by
simpleeval over read-only views of the memory (``views``), with a bound on everything that it does
(``operations``).
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from planning.workflow.conditions.grammar import EXAMPLE, ConditionInvalid, parsed

__all__ = ["ConditionInvalid", "check_condition", "is_done", "require_conditions"]

_MISSING = "done_check needs simpleeval: pip install 'session-planning[workflow]'"
_KINDS = {type(None): "nothing", str: "a text", int: "a number", float: "a number"}


def check_condition(text: str) -> None:
    """Refuse a condition that can never be evaluated; nothing is evaluated, and simpleeval is not needed.

    Raises:
        ConditionInvalid: It is no expression, is too long, or holds what is not allowed.
    """
    parsed(text)


def require_conditions() -> None:
    """Ask for what conditions need before the first is evaluated.

    Raises:
        ImportError: simpleeval is not installed.
    """
    try:
        import_module("simpleeval")
    except ImportError:
        raise ImportError(_MISSING) from None


def is_done(text: str, memory: Mapping[str, Any], key: str | None = None) -> bool:
    """Whether a condition is true of the memory.

    It reads ``memory``, the value of the step's own key under the name of that key, and calls ``len``,
    ``min``, ``max``, ``sum``, ``abs``, ``all_of`` and ``any_of``. Numbers are as in Python, a bool is one
    too. What fails while it is evaluated is not done: a missing key, a comparison of a text with a number,
    more work than the bound allows. The memory is never changed.

    Args:
        text: The condition.
        memory: What is known, by key. A value that is not JSON can only be asked whether it is None; a
            dataclass or attrs object is a mapping of its fields. Only a mapping of a class that is no dict
            is asked by its own methods, in its own time.
        key: The key of the step; a key that is no name, and ``memory``, is read as ``memory['...']`` alone.

    Raises:
        ConditionInvalid: It is not allowed, or its result is neither True nor False.
        ImportError: simpleeval is not installed.
    """
    require_conditions()
    from planning.workflow.conditions.evaluate import evaluate  # noqa: PLC0415 - it needs simpleeval

    expression = parsed(text)
    try:
        result = evaluate(expression, memory, key)
    except Exception:  # noqa: BLE001 - whatever a condition trips over, it is not known to be true
        return False
    if result is True or result is False:
        return result
    kind = _KINDS.get(type(result), "a list or a mapping or another object")
    raise ConditionInvalid(f"the condition gave {kind}; write a comparison, such as {EXAMPLE}")
