"""Whether a step's ``done_check`` is valid; it is evaluated when the step runs."""

from __future__ import annotations

from planning.reading.found import Found
from planning.workflow.checks.overview import found_at
from planning.workflow.conditions import ConditionInvalid, check_condition
from planning.workflow.drafts import Draft


def condition_findings(draft: Draft) -> list[Found]:
    """What is wrong with a step's condition."""
    condition = draft.fields.get("done_check")
    if not isinstance(condition, str) or not condition:  # the schema checks that
        return []
    try:
        check_condition(condition)
    except ConditionInvalid as error:
        what, _, hint = str(error).partition("; ")
        message = f"done_check ignored: {what}"
        return [found_at(draft, "bad_condition", message, hint, ("done_check",))]
    return []
