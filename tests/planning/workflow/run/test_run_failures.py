"""Failures: what they keep from running, and what they leave alone, with each of the ways to bear them."""

from __future__ import annotations

from typing import Any

import pytest
from run_cases import called, capable, flow, plan_of, states, told
from syrupy.assertion import SnapshotAssertion

from planning import plan_text
from planning.tools import ToolError
from planning.workflow import WorkflowResult, run_workflow

BROKEN = told("It is broken", "tool", "It is broken")


def broken() -> None:
    raise ToolError("It is broken")


def run(*steps: Any, **options: Any) -> WorkflowResult:
    return run_workflow(flow(*steps), capable(broken=broken, work=lambda: "worked"), **options)


def diamond(on_failure: str) -> list[Any]:
    return [
        called("a"),
        called("b", "a", tool="broken", on_failure=on_failure),
        called("c", "b"),
        called("d", "a"),
        called("e", "c", "d"),
        called("f", "d"),
    ]


def text(result: WorkflowResult) -> str:
    plan = plan_of(result.session)
    return plan_text(plan) + "\n"


STATES = {
    "a": "completed",
    "b": "failed",
    "c": "completed",
    "d": "completed",
    "e": "completed",
    "f": "completed",
}


@pytest.mark.parametrize(
    ("on_failure", "status", "others", "outputs"),
    [
        ("fail", "failed", {"c": "pending", "e": "pending"}, "adf"),
        ("skip_dependents", "completed", {"c": "pending, skipped", "e": "pending, skipped"}, "adf"),
        ("continue", "completed", {}, "acdef"),
    ],
)
def test_a_failure_blocks_the_dependents_as_its_on_failure_says_and_nothing_else(
    on_failure: str, status: str, others: dict[str, str], outputs: str, snapshot: SnapshotAssertion
) -> None:
    result = run(*diamond(on_failure))
    assert (result.status, result.workflow.status, states(result.workflow)) == (
        status,
        status,
        STATES | others,
    )
    assert dict(result.outputs) == dict.fromkeys(outputs, "worked")
    assert (dict(result.errors), result.warnings) == ({"b": BROKEN}, ())
    assert text(result) == snapshot


def test_what_needs_the_output_of_a_failure_that_is_passed_over_fails_for_itself() -> None:
    result = run(
        called("a", tool="broken", on_failure="continue"),
        called("b", "a", inputs={"x": "${a.output}"}),
        called("c", "a"),
    )
    message = (
        "'${a.output}' has no value: step a gave no output; let this step depend on it, or remove "
        "the reference"
    )
    assert dict(result.errors) == {"a": BROKEN, "b": told(message)}
    assert (result.status, dict(result.outputs)) == ("failed", {"c": "worked"})
