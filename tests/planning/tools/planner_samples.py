"""Planner outputs to read, and how the tests look at what was read."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from planning.tools.planner import PlannerOutput, parse_planner_output

LOOKUP = {"tool": "lookup_registration", "args": {"identifier": "a@example.com"}, "reason": "To find it"}
PLAN: dict[str, Any] = {
    "intent": "registration_data_request",
    "needs_tools": True,
    "tool_calls": [LOOKUP],
    "queries": [],
}
PARSED = PlannerOutput(tool_calls=(LOOKUP,), intent="registration_data_request")
TEXT = json.dumps(PLAN, indent=2)
INTENT = PlannerOutput(intent="a")
EMPTY = PlannerOutput()

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
filled = st.text(min_size=1).filter(str.strip)
calls = st.fixed_dictionaries(
    {
        "tool": filled,
        "args": st.dictionaries(st.text(), json_values, max_size=3),
        "reason": st.none() | filled,
    }
)
plans = st.fixed_dictionaries(
    {
        "tool_calls": st.lists(calls, max_size=3),
        "needs_user_input": st.booleans(),
        "input_request": st.none() | filled,
        "queries": st.lists(json_values, max_size=3),
        "intent": st.none() | filled,
    }
)
prose = st.text(st.characters(exclude_characters="{}[]`~", exclude_categories=["Cs"]))
# Behind a plan these would continue its JSON: the reader refuses them.
prose_behind = prose.filter(lambda text: not text.lstrip().startswith((",", ":", '"')))


def problems(text: object) -> list[str]:
    return [str(problem) for problem in parse_planner_output(text).problems]


def refusal(text: object) -> str:
    """The one problem of an output that is empty but for it."""
    output = parse_planner_output(text)
    assert output == PlannerOutput(problems=output.problems)
    (problem,) = output.problems
    return str(problem)
