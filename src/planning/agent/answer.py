"""The state of a question as the session's plan shows it, the review of its results, and its answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from planning.agent.nodes import Node, NodeCall, State
from planning.agent.sql.schema import DROPS
from planning.agent.state import MOST_ITERATIONS, STEPS, AgentState, Step
from planning.errors import ToolError, cut
from planning.plan.commands import NewPlanStep, SetupPlan
from planning.plan.model import Plan, StepStatus
from planning.plan.text import TextRule, fitted
from planning.suite.kept import rules_of
from planning.suite.mirror import Mark, PlanMirror
from planning.tools.result import safe_text
from planning.tools.tool import Tool
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
    """True if a plan is a graph's: by its first four steps."""
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


ZERO: Final = "it ran and returned nothing but 0"
_NULL: Final = "it ran and returned nothing but NULL"
_EMPTY: Final = "it ran and returned no rows"
_REFUSED: Final = "its results were refused"

_LONGEST_CELL: Final = 200
_LONGEST_REFUSAL: Final = 2_000
_LONGEST: Final = 10_000
_NO_LIST: Final = "execute_sql returned no list of rows under data"
_ROOM: Final = 3
"""The decisions that a further statement takes: it is written, run and checked."""
_NO_TIME: Final = "no answer within {} decisions; allow more with max_iterations"


def complete(state: State) -> AgentState:
    """Finish: a success if a statement ran and its results, or those before a review, were not refused."""
    problem = _problem(state)
    kept: Any = (state.get("reflection") or {}).get("kept") or {}
    if problem is not None and kept and _problem({**state, **kept}) is None:
        state, problem = {**state, **kept}, None
    else:
        kept = {}
    ended: AgentState = {"is_complete": True, "next_action": "complete", "success": False}
    if state.get("needs_user_input") and not kept:
        question = cut(str(state.get("input_request")), _LONGEST)
        return {**ended, "answer": question, "error": None, "user_message": None}
    if problem is not None:
        shown = f"The question could not be answered: {state.get('user_message') or problem}"
        return {**ended, "error": problem, "answer": cut(shown, _LONGEST)}
    return {
        **kept,
        **ended,
        "success": True,
        "answer": _summary(state["execution_result"]),
        "error": None,
        "user_message": None,
        "needs_user_input": False,
        "input_request": None,
    }


def _problem(state: State) -> str | None:
    """The reason for a missing answer; None when the question was answered."""
    result = state.get("execution_result")
    if result is None:
        return state.get("error") or _NO_TIME.format(state.get("max_iterations", MOST_ITERATIONS))
    if not isinstance(result, Mapping) or result.get("success", True) is not True:
        error = result.get("error") if isinstance(result, Mapping) else None
        return state.get("error") or safe_text(error or "the statement has no result")
    if result and not isinstance(result.get("data", "missing"), (list, tuple, type(None))):
        return _NO_LIST  # there may be rows in a different form, or under another name
    return refusal(state.get("validation_result"))


def _summary(result: Mapping[str, Any]) -> str:
    """The result in a sentence: the value itself if it is a single one."""
    rows = rows_of(result)
    columns: Sequence[str] = result.get("columns") or ()
    if not rows:
        return "No rows: nothing in the database matches."
    if len(rows) == 1 and len(rows[0]) == 1 and columns:
        [cell] = rows[0]
        value = "NULL" if cell is None else safe_text(cell)
        return f"{cut(safe_text(columns[0]), _LONGEST_CELL)}: {cut(value, _LONGEST_CELL)}"
    counted = "1 row" if len(rows) == 1 else f"{len(rows):,} rows"
    return f"The first {counted}; there are more." if result.get("truncated") else f"{counted}."


def is_doubtful(state: State) -> bool:
    """True if results look wrong and were not reviewed yet, and a further statement is allowed."""
    result, verdict = state.get("execution_result"), state.get("validation_result")
    if verdict is None or state.get("reflection") is not None or not isinstance(result, Mapping):
        return False
    most = state.get("max_iterations")
    room = (MOST_ITERATIONS if most is None else most) - (state.get("iteration") or 0)
    return room >= _ROOM and (refusal(verdict) or drops_of(verdict) or nothing_in(result)) is not None


def refusal(verdict: object) -> str | None:
    """Why a check of the results refused them; None if it did not."""
    if verdict is False:
        return _REFUSED
    if not isinstance(verdict, Mapping) or verdict.get("is_valid", True) is True:
        return None
    issues = verdict.get("issues") or ()
    texts = map(safe_text, issues if isinstance(issues, (list, tuple)) else [issues])
    return cut("; ".join(texts), _LONGEST_REFUSAL) or _REFUSED


def drops_of(verdict: object) -> str | None:
    """The issues of divisions of whole numbers, which are right and often not meant; None without."""
    issues = verdict.get("issues") if isinstance(verdict, Mapping) else None
    found = [each for each in issues if DROPS in str(each)] if isinstance(issues, (list, tuple)) else []
    return "; ".join(map(safe_text, found)) or None


def rows_of(result: Mapping[str, Any]) -> list[Sequence[Any]]:
    """The rows of a result, each as a list of values, in whatever form a tool returned them."""
    data = result.get("data")
    if not isinstance(data, (list, tuple)):
        return []
    return [
        row if isinstance(row, (list, tuple)) else list(row.values()) if isinstance(row, Mapping) else [row]
        for row in data
    ]


def nothing_in(result: Mapping[str, Any]) -> str | None:
    """The doubt about a result with no rows, only NULL, or a single row of 0 and NULL; else None."""
    rows = rows_of(result)
    if not rows:
        return _EMPTY
    if all(value is None for row in rows for value in row):
        return _NULL
    if len(rows) > 1:
        return None
    is_zero = all(value is None or (type(value) in {int, float} and value == 0) for value in rows[0])
    return ZERO if is_zero else None


_COMPARE: Final = (
    "compare its conditions and joins with the values in the schema, also their upper and lower case"
)


def reviewing(missing_values: Callable[[str], list[str]] | None) -> Node:
    """The node that asks, once, for another statement, with the reason, if ``is_doubtful``."""
    description = "Find the strings that a query compares with columns which do not hold them."
    search = None if missing_values is None else Tool("missing_values", description, missing_values)

    def prepare(state: State) -> NodeCall | AgentState:
        verdict = state.get("validation_result")
        reason = refusal(verdict) or drops_of(verdict)
        if reason is not None:
            return _again(state, reason)
        if search is None:
            return _review(state, None)
        return NodeCall(search, {"sql": state.get("sql_query") or ""})

    return Node(prepare, lambda state, result: _review(state, result.value))


def _review(state: State, missing: list[str] | None) -> AgentState:
    problem = nothing_in(state["execution_result"])
    if missing:
        return _again(state, f"{problem}: {'; '.join(missing)}")
    if problem == ZERO:  # as good an answer as any other number
        return {"reflection": {"reason": None, "kept": None}}
    return _again(state, f"{problem}; {_COMPARE}")


def _again(state: State, reason: str) -> AgentState:
    """Put the results aside, unless they were refused, and ask for another statement."""
    sql, verdict = state.get("sql_query"), state.get("validation_result")
    results = {
        "sql_query": sql,
        "execution_result": state.get("execution_result"),
        "validation_result": verdict,
    }
    return {
        "reflection": {"reason": reason, "kept": results if refusal(verdict) is None else None},
        "attempts": [{"sql": sql, "error": reason}],
        "sql_query": None,
        "execution_result": None,
        "validation_result": None,
        "is_complete": False,
    }
