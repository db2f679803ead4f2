"""Conditions: a step's ``done_check``, evaluated against the memory and nothing else.

    done_check = "memory.get('revenue') is not None and len(revenue) > 0"

A condition is one expression of a small part of Python (``grammar``). It sees the memory as JSON (``views``),
and what it does is bounded (``evaluate``).
"""

from planning.workflow.conditions.evaluate import is_done
from planning.workflow.conditions.grammar import ConditionInvalid, check_condition

__all__ = ["ConditionInvalid", "check_condition", "is_done"]
