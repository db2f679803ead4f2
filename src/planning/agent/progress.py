"""The session's Plan as the mirror of a graph's state: what is done, what is being done, what did not work.

The plan follows the state, through the same commands as an agent's tools. An active plan that other code made
is left alone: the session belongs to an agent that plans, and the graph's work is a part of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

import attrs

from planning.agent.decide import ACTIONS
from planning.agent.reflect import refusal, rows_of
from planning.commands import NewPlanStep, SetupPlan
from planning.errors import ToolError, show
from planning.model import Plan, PlanStep, StepStatus
from planning.suite import Mark, PlanMirror
from planning.text import OBJECTIVE, OUTCOME, TITLE, fitted
from session import Session
from session.events import SessionEvent

__all__ = ["ANSWER", "TITLES", "NodeFinished", "show_planner_progress", "show_progress"]

TITLES: Final[Mapping[str, str]] = {
    "get_schema": "Read the schema",
    "generate_sql": "Write the SQL",
    "execute_sql": "Run the SQL",
    "validate_results": "Check the results",
}
"""The steps of the plan, in order, by the action that does them."""

ANSWER: Final = "Answer the user"
"""The last step of the plan of a planner's request."""

_LISTED: Final = list(TITLES.values())
_STEPS: Final = tuple(map(NewPlanStep, _LISTED))
_ANSWER_STEP: Final = NewPlanStep(ANSWER)
_SEARCH: Final = "Search"
_TOOL: Final = "tool "
_WHO: Final = "the agent"
_NAMELESS: Final = "Answer a question"


@attrs.frozen
class NodeFinished(SessionEvent):
    """A node of a graph has done its work; the session's Plan shows it by the time the bus tells of it.

    Attributes:
        node: The node's name.
        changed: The keys of the state that it wrote.
    """

    node: str
    changed: tuple[str, ...]


def show_progress(session: Session, node: str, state: Mapping[str, Any], update: Mapping[str, Any]) -> None:
    """Bring a session's plan up to what the state of a question says.

    Args:
        session: Whose plan.
        node: Which node has changed it.
        state: An ``AgentState``.
        update: What has just changed in it.
    """
    state = {**state, **update}
    _bring_up(
        session,
        NodeFinished(node, tuple(update), session_id=session.session_id),
        state,
        _STEPS,
        _statuses(state),
        _notes(state, update),
        begins=update.get("iteration") == 1,
    )


def show_planner_progress(
    session: Session, node: str, state: Mapping[str, Any], update: Mapping[str, Any]
) -> None:
    """Bring a session's plan up to what the state of a planner's graph says: a step for each call.

    Args:
        session: Whose plan.
        node: Which node has changed it.
        state: A ``PlannerState``.
        update: What has just changed in it.
    """
    state = {**state, **update}
    work = _planned(state)
    statuses = [*_work_statuses(state, node, len(work)), _answered(node, update)]
    event = NodeFinished(node, tuple(update), session_id=session.session_id)
    notes = _work_notes(node, update, len(work))
    _bring_up(session, event, state, (*work, _ANSWER_STEP), statuses, notes, begins="tool_calls" in update)


def _bring_up(
    session: Session,
    event: NodeFinished,
    state: Mapping[str, Any],
    steps: tuple[NewPlanStep, ...],
    statuses: Sequence[StepStatus],
    notes: Mapping[int, str],
    *,
    begins: bool,
) -> None:
    question = state.get("resolved_query")
    objective = (fitted(question, OBJECTIVE) if isinstance(question, str) else "") or _NAMELESS
    mirror = PlanMirror(session, _WHO, SetupPlan(objective, steps))
    with session.transaction() as transaction:
        transaction.publish(event)
        with suppress(ToolError):  # other reducers answer for the plan
            if mirror.begin(transaction, _is_own, is_new=begins) and mirror.plan is not None:
                mirror.mark(transaction, _marks(mirror.plan, statuses, notes))


def _marks(plan: Plan, statuses: Sequence[StepStatus], notes: Mapping[int, str]) -> list[Mark]:
    """The marks and notes that the plan lacks."""
    marks = list[Mark]()
    for index, (status, step) in enumerate(zip(statuses, plan.steps, strict=False)):
        note = (fitted(notes[index], OUTCOME) or None) if index in notes else None
        if note is not None and step.notes[-1:] == (note,):
            note = None  # the step has it
        if note is not None or step.status != status:
            marks.append((index, status, note))
    return marks


def _is_own(plan: Plan) -> bool:
    """Whether a plan is a graph's: by its first four steps, or by its last and what the others call."""
    titles = [step.title for step in plan.steps]
    return titles[: len(_LISTED)] == _LISTED or (
        titles[-1:] == [ANSWER] and all(map(_is_work, plan.steps[:-1]))
    )


def _is_work(step: PlanStep) -> bool:
    return (step.details or "").startswith(_TOOL) or step.title == _SEARCH


# A question


def _statuses(state: Mapping[str, Any]) -> list[StepStatus]:
    """The status of each step: what the state holds is done; at the end, what it lacks first is blocked."""
    statuses = list[StepStatus]()
    is_complete, is_open = bool(state.get("is_complete")), True
    for key, action in ACTIONS:
        if is_open and state.get(key) is not None:
            statuses.append("blocked" if key == "validation_result" and refusal(state[key]) else "done")
            continue
        if is_open and is_complete:
            statuses.append("blocked")
        else:
            statuses.append("in_progress" if is_open and state.get("next_action") == action else "pending")
        is_open = False
    return statuses


def _notes(state: Mapping[str, Any], update: Mapping[str, Any]) -> dict[int, str]:
    """The outcome of the last action, in a few words."""
    action = "validate_results" if update.get("reflection") else state.get("next_action")
    if not isinstance(action, str) or action not in TITLES or "iteration" in update:
        return {}
    note = _note(update)
    return {} if note is None else {list(TITLES).index(action): note}


def _note(update: Mapping[str, Any]) -> str | None:
    if update.get("input_request"):
        return f"asks: {update['input_request']}"
    if update.get("error"):
        return str(update.get("user_message") or update["error"])
    if isinstance(reflection := update.get("reflection"), Mapping):
        return "; ".join(map(str, reflection.get("reasons") or ())) or None
    if isinstance(update.get("schema"), str):
        return str(update["schema"]).partition("\n")[0]
    if update.get("sql_query"):
        return str(update["sql_query"])
    if isinstance(result := update.get("execution_result"), Mapping):
        count = len(rows_of(result))
        return "1 row" if count == 1 else f"{count} rows"
    return None


# A planner's request


def _planned(state: Mapping[str, Any]) -> tuple[NewPlanStep, ...]:
    calls = state.get("tool_calls") or ()
    if calls:
        return tuple(map(_call_step, calls))
    if state.get("queries") and not state.get("needs_user_input"):
        return (NewPlanStep(_SEARCH),)
    return ()


def _call_step(call: Mapping[str, Any]) -> NewPlanStep:
    name = fitted(str(call.get("tool")), OUTCOME) or show(str(call.get("tool")))
    title = fitted(str(call.get("reason") or ""), TITLE) or fitted(f"Call {name}", TITLE)
    return NewPlanStep(title, _TOOL + name)


def _work_statuses(state: Mapping[str, Any], node: str, count: int) -> list[StepStatus]:
    if not state.get("tool_calls"):
        if state.get("query_results") is not None:
            return ["done"] * count
        return ["in_progress" if node == "plan_queries" else "blocked"] * count
    envelopes = list((state.get("tool_results") or {}).values())
    if not envelopes:
        return ["in_progress"] * count
    return ["done" if envelope.get("success") else "blocked" for envelope in envelopes]


def _answered(node: str, update: Mapping[str, Any]) -> StepStatus:
    if node != "generate_response":
        return "pending"
    return "blocked" if update.get("error") else "done"


def _work_notes(node: str, update: Mapping[str, Any], count: int) -> dict[int, str]:
    """Why what was just done failed, in the words for the step."""
    if update.get("error") and node in {"execute_queries", "generate_response"}:
        return {0 if node == "execute_queries" else count: str(update["error"])}
    envelopes = list((update.get("tool_results") or {}).values())
    return {
        index: str(envelope.get("error"))
        for index, envelope in enumerate(envelopes)
        if not envelope.get("success")
    }
