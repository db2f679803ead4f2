"""The session's Plan as a mirror of a graph's state: done, current and failed steps.

The plan follows the state, through the same commands as an agent's tools. An active plan that other code made
is left alone: the session belongs to an agent that plans, and the graph's work is a part of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from planning.agent.answer import refusal, rows_of
from planning.agent.state import STEPS, Step
from planning.errors import ToolError
from planning.plan.commands import NewPlanStep, SetupPlan
from planning.plan.model import Plan, StepStatus
from planning.plan.text import TextRule, fitted
from planning.suite.kept import rules_of
from planning.suite.mirror import Mark, PlanMirror
from session import Session

_TITLES: Final = [step.title for step in STEPS]
_STEPS: Final = tuple(map(NewPlanStep, _TITLES))
_WHO: Final = "the agent"
_NAMELESS: Final = "Answer a question"


def show_progress(session: Session, state: Mapping[str, Any], update: Mapping[str, Any]) -> None:
    """Bring a session's plan up to what the state of a question says after an update of it."""
    state = {**state, **update}
    question = state.get("resolved_query")
    rules = rules_of(session)
    objective = (fitted(question, rules.objective) if isinstance(question, str) else "") or _NAMELESS
    mirror = PlanMirror(session, _WHO, SetupPlan(objective, _STEPS))
    with session.transaction() as transaction, suppress(ToolError):  # other reducers answer for the plan
        is_new = update.get("iteration") == 1
        if mirror.begin(transaction, _is_own, is_new=is_new) and mirror.plan is not None:
            mirror.mark(transaction, _marks(mirror.plan, state, *_note(state, update), rules.outcome))


def _is_own(plan: Plan) -> bool:
    """Whether a plan is a graph's: by its first four steps."""
    return [step.title for step in plan.steps[: len(_STEPS)]] == _TITLES


def _marks(
    plan: Plan, state: Mapping[str, Any], noted: object, note: str | None, rule: TextRule
) -> list[Mark]:
    """The marks that the plan lacks, with a note for the step of an action."""
    marks, is_open = list[Mark](), True
    for index, (step, shown) in enumerate(zip(STEPS, plan.steps, strict=False)):
        status = _status(state, step, is_open=is_open)
        is_open = is_open and state.get(step.key) is not None
        text = (fitted(note, rule) or None) if note and step.action == noted else None
        text = None if text in shown.notes else text
        if text is not None or shown.status != status:
            marks.append((index, status, text))
    return marks


def _status(state: Mapping[str, Any], step: Step, *, is_open: bool) -> StepStatus:
    """The status of a step: what the state holds is done; at the end, what it lacks first is blocked."""
    if not is_open:
        return "pending"
    if (value := state.get(step.key)) is not None:
        return "blocked" if step.key == "validation_result" and refusal(value) else "done"
    if state.get("is_complete"):
        return "blocked"
    return "in_progress" if state.get("next_action") == step.action else "pending"


def _note(state: Mapping[str, Any], update: Mapping[str, Any]) -> tuple[Any, str | None]:
    """The last action, and its outcome in a few words."""
    if "iteration" in update:
        return None, None
    action = "validate_results" if update.get("reflection") else state.get("next_action")
    if update.get("attempts"):
        return action, update["attempts"][0]["error"]
    if update.get("input_request"):
        return action, f"asks: {update['input_request']}"
    if isinstance(update.get("schema"), str):
        return action, update["schema"].partition("\n")[0]
    if isinstance(update.get("execution_result"), Mapping):
        count = len(rows_of(update["execution_result"]))
        return action, "1 row" if count == 1 else f"{count} rows"
    return action, update.get("sql_query") or update.get("user_message")
