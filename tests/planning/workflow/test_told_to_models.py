"""What a model is told of a wrong plan: one error for one cause, and a remedy that mends it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from plan_findings import plan, thought
from syrupy.assertion import SnapshotAssertion

from planning.workflow import Capabilities, validate_workflow


def calculate_tip(bill: float, percent: int = 10, note: str = "") -> str:
    return f"{bill}{percent}{note}"


def calculate_discount(price: float) -> str:
    return f"{price}"


KNOWN = Capabilities(
    tools=[calculate_tip, calculate_discount],
    handlers=["notify"],
    agents=["researcher"],
)


def tip(step_id: object, *depends_on: str, **inputs: Any) -> dict[str, Any]:
    return thought(step_id, *depends_on, type="tool", name="calculate_tip", inputs=inputs)


def asked(step_id: object, *depends_on: str, **inputs: Any) -> dict[str, Any]:
    return thought(step_id, *depends_on, agent="researcher", inputs=inputs)


WRONG: dict[str, object] = {
    "a step with inputs that calls nothing": plan(thought("a", inputs={"table": "t"})),
    "a step of the older form with parameters that calls nothing": plan(
        {"step_id": 1, "description": "d", "parameters": {"table": "t"}}
    ),
    "a tool named as the older form names it": plan(thought("a", tool="calculate_tip", inputs={"bill": 1})),
    "a tool like no other": plan(thought("a", type="tool", name="send_mail", inputs={"bill": 1})),
    "an id in another field": plan({"id": "a", "description": "d"}, thought("b", "a")),
    "a missing input behind a name": plan(tip("a", note="x")),
    "an id that two steps have and one that none has": plan(
        asked("fetch"),
        asked("fetch", "fetch", x="${fetch.output}"),
        asked("tell", "parse", x="${parse.output.title}", y="${parse.output}"),
    ),
    "a variable of a shell": plan(asked("a", x="cd ${HOME} && ls")),
    "a name without its value in a text": '[{"step_id": "a", "description": "d", "type": "tool",'
    ' "name": "calculate_tip", "inputs": {"bill": }, "depends_on": []}]',
    "an input that is missing in a text": '[{"step_id": "a", "description": "d", "type": "tool",\n'
    ' "name": "calculate_tip", "inputs": {"note": "x"}, "depends_on": []}]',
    "an empty done_check": plan(thought("a", done_check="")),
    "an id of 5,000 digits": f'[{{"step_id": {"1" * 5000}, "description": "d", "type": "tool",'
    ' "name": "calculate_tip", "inputs": {"bill": 1}, "depends_on": []}]',
    "a text that was cut in a step": json.dumps(
        [tip("a", bill=1), tip("b", "a", bill="${a.output}")],
    ).partition('"depends_on": ["a"]')[0]
    + '"inputs": {"bill": "${a.output}"}',
    "a text that was cut behind a whole step": json.dumps(plan(thought("a"), thought("b")))[:-2],
    "an apology with an empty list": "I'm sorry, but none of the available tools ([]) can do this.",
}
"""By name, what must be refused."""

TAKEN: dict[str, object] = {
    "references in foreign notations": plan(
        asked("s"), asked("E1"), asked("b", x="{{s.output}}, $s.output, <s.output.items.0>, #E1")
    ),
    "numbers in quotes": plan(tip("a", bill="12.5", percent="5000", note="7")),
    "fields that are null": plan(
        {**tip("a", bill=1), "agent": None, "outputs": None, "expected_key": None, "retries": None}
    ),
    "steps beside a reasoning": {"reasoning": "First think.", "steps": [thought("a")]},
    "a plan in a JSON string": json.dumps(json.dumps(plan(tip("a", bill="3")))),
    "a literal reference": plan(asked("a"), asked("b", x="$${a.output} costs $$${5}")),
}
"""By name, what must be taken, perhaps with warnings."""


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_plan_is_refused_with_its_cause_and_the_remedy(
    what: str, snapshot: SnapshotAssertion
) -> None:
    report = validate_workflow(WRONG[what], KNOWN)
    assert not report.ok
    assert report.to_prompt() == snapshot


@pytest.mark.parametrize("what", TAKEN)
def test_a_plan_that_can_be_meant_in_one_way_is_taken(what: str, snapshot: SnapshotAssertion) -> None:
    report = validate_workflow(TAKEN[what], KNOWN)
    assert report.ok
    assert report.to_prompt() == snapshot
