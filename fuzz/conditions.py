"""Random conditions against the memory of a workflow."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from promises import demand, demand_readable

from planning.workflow.conditions import ConditionInvalid, check_condition, is_done

MEMORY: dict[str, Any] = {
    "revenue": [{"year": 2020, "total": 1.5}, {"year": 2021, "total": None}],
    "name": "Larkspur & Sons",
    "count": 3,
    "empty": [],
    "nothing": None,
    "deep": {"a": {"b": [1, [2, [3]]]}},
}
CORPUS = (
    "memory.get('revenue') is not None and len(revenue) > 0",
    "count >= 3 and name.startswith('Lark')",
    "any_of(revenue, 'total', None) or all_of(revenue, 'year', 2020)",
    "memory['deep']['a']['b'][1][0] == 2 if 'deep' in memory else False",
    "sum([1, 2, count]) * 2 % 5 == -1 or not empty",
    "name.lower().split('&')[0].strip() in {'larkspur': 1}",
    "[*revenue]",
    "().__class__",
    "f'{name}'",
    "'%c' % 99 * 9",
)
WORDS = r"""
and or not in is if else None True False lambda for == != <= >= ** // << get len min max sum abs
all_of any_of memory revenue count name lower upper strip split startswith endswith __class__
"""
TOKENS = (*"()[]{},.:'\"+-*/%<>=!0129_", *WORDS.split())


def check(text: str) -> None:
    """Evaluate one condition.

    Raises:
        BrokenPromise: A promise is not kept.
    """
    before = json.dumps(MEMORY)
    try:
        check_condition(text)
        is_accepted = True
    except ConditionInvalid as error:
        demand_readable(str(error))
        is_accepted = False
    try:
        verdict: object = is_done(text, MEMORY, "revenue")
    except ConditionInvalid as error:
        demand_readable(str(error))
    else:
        demand(is_accepted, "what is refused is never evaluated")
        demand(type(verdict) is bool, "a condition is true or false")
        demand(is_done(text, json.loads(before), "revenue") is verdict, "it means the same after a resume")
    demand(json.dumps(MEMORY) == before, "a condition never changes the memory")


def corpus() -> Iterator[str]:
    """Good conditions and attacks."""
    return iter(CORPUS)
