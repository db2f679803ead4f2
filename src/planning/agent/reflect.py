"""The review of results: whether they look as if the statement did not mean what was asked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from planning.agent.calling import named, named_tool
from planning.agent.nodes import Call, State
from planning.agent.state import ANSWER_KEYS, MOST_ITERATIONS, AgentState, restored
from planning.tools.result import ToolResult, safe_text
from planning.tools.tool import Tool

__all__ = ["Reflect", "doubts", "judge_tool", "look_tool", "refusal", "rows_of"]

_OFFERED: Final = ("question", "sql", "result", "schema", "state")
_FEWEST: Final = 2
_REFUSED: Final = "its results were refused"
_NO_ROWS: Final = "it ran and returned no rows"
_COUNTED_NOTHING: Final = "it ran, and its only row holds nothing but 0 or NULL"
_MOST_NAMES: Final = 12
_MOST_TEXTS, _LONGEST_TEXT = 20, 1_000
_NONE: Final = "it returned no result"
_ROOM: Final = 3
"""How many decisions another statement takes: it is written, run and checked."""


class Reflect:
    """Reviews the results, and asks for another statement if they look wrong."""

    def __init__(
        self, judge: Tool | None, max_iterations: int = MOST_ITERATIONS, look: Tool | None = None
    ) -> None:
        """Choose how results are reviewed.

        Args:
            judge: Reviews each result; without one, the shape of the results is checked once.
            max_iterations: The most decisions if the state does not say.
            look: Without a judge, finds the values of the statement that no row holds, if there are no
                rows or a single one with nothing but 0 and NULL.
        """
        self._judge = judge
        self._most = max_iterations
        self._look = look

    def prepare(self, state: State) -> Call | AgentState:
        """The call of the judge or of the search for values, or a verdict by the shape of the results."""
        result = state.get("execution_result")
        if not isinstance(result, Mapping):
            return self._weighed(state, [_NONE], again=False)
        if self._judge is not None:
            return Call(self._judge, _offered(state))
        refused, is_first = refusal(state.get("validation_result")), not state.get("reflection")
        if self._look is not None and is_first and not refused and _holds_nothing(result):
            return Call(self._look, {"sql": state.get("sql_query") or ""})
        return self._weighed(state, refused or doubts(result), again=is_first)

    def finish(self, state: State, result: ToolResult) -> AgentState:
        """The verdict of the judge; if it fails, the results count as not judged."""
        said = result.value
        if self._judge is None:
            missing = _texts(said) if result.success and said else []
            executed = state["execution_result"]
            problem = _COUNTED_NOTHING if rows_of(executed) else _NO_ROWS
            reasons = [f"{problem}: {'; '.join(missing)}"] if missing else doubts(executed)
            return self._weighed(state, reasons, again=True)
        if not result.success:
            return {"reflection": {"verdict": "not judged", "reasons": [str(result.error or result.message)]}}
        if said is None or said is True:
            return self._weighed(state, [], again=False)
        return self._weighed(state, [_REFUSED] if said is False else _texts(said), again=True)

    def _weighed(self, state: State, reasons: list[str], *, again: bool) -> AgentState:
        if not reasons:
            return {"reflection": {"verdict": "fine", "reasons": []}}
        most = state.get("max_iterations")
        room = (self._most if most is None else most) - (state.get("iteration") or 0)
        kept = (state.get("reflection") or {}).get("kept")
        is_worse = isinstance(kept, Mapping) and _worth(kept) > _worth(state)
        if not again or room < _ROOM:
            if is_worse:
                return restored(state)
            return {"reflection": {"verdict": "doubtful", "reasons": reasons}}
        best = kept if is_worse else {key: state.get(key) for key in ANSWER_KEYS}
        return {
            "reflection": {"verdict": "again", "reasons": reasons, "kept": best},
            "attempts": [{"sql": state.get("sql_query"), "error": "; ".join(reasons)}],
            "sql_query": None,
            "execution_result": None,
            "validation_result": None,
            "is_complete": False,
        }


def judge_tool(judge: Any, timeout: float | None) -> Tool:
    """A judge of results as a tool.

    Args:
        judge: Any callable, sync or async; its parameters may be ``question``, ``sql``, ``result``,
            ``schema`` and ``state``. It returns None if the result is fine, or what is wrong with it.
        timeout: The seconds for a call.

    Raises:
        TypeError: It has other parameters.
    """
    return named_tool(
        "reflect", "Judge the result of a statement.", named("reflect", judge, _OFFERED), timeout
    )


def look_tool(missing_values: Callable[[str], list[str]]) -> Tool:
    """A search for the strings in a statement that no row holds, as a tool of the graph."""
    return Tool(
        "missing_values",
        "Find the strings that a query compares with columns which do not hold them.",
        missing_values,
    )


def doubts(result: Mapping[str, Any]) -> list[str]:
    """What looks wrong with the result of a statement that ran, by its shape alone.

    Args:
        result: As ``SqlDatabase.execute`` returns it.

    Returns:
        Reasons for the generator: there are no rows, or a column or all columns are NULL. Empty if nothing
        looks wrong.
    """
    rows = rows_of(result)
    columns: Sequence[str] = result.get("columns") or ()
    if not rows:
        return [
            f"{_NO_ROWS}; compare its conditions and joins with the values in the schema,"
            " also their upper and lower case"
        ]
    empty = [
        name
        for index, name in enumerate(columns)
        if all(index < len(row) and row[index] is None for row in rows)
    ]
    if empty and len(empty) == len(columns):
        what = "its only row holds" if len(rows) == 1 else f"all of its {len(rows)} rows hold"
        return [f"it ran, and {what} nothing but NULL; compare its conditions and joins with the schema"]
    if empty and len(rows) >= _FEWEST:
        listed = ", ".join(name[:_LONGEST_TEXT] for name in empty[:_MOST_NAMES])
        listed += f" and {len(empty) - _MOST_NAMES} more columns" if len(empty) > _MOST_NAMES else ""
        return [f"it ran, and is NULL in every row of {listed}; compare its joins with the schema"]
    return []


def refusal(verdict: object) -> list[str]:
    """Why a check of the results refused them; empty if it did not."""
    if verdict is False:
        return [_REFUSED]
    if not isinstance(verdict, Mapping) or verdict.get("is_valid", True) is True:
        return []
    return _texts(verdict.get("issues") or ()) or [_REFUSED]


def rows_of(result: Mapping[str, Any]) -> list[Sequence[Any]]:
    """The rows of a result, each as a list of values, in whatever form a tool returned them."""
    data = result.get("data")
    if not isinstance(data, (list, tuple)):
        return []
    return [
        row if isinstance(row, (list, tuple)) else list(row.values()) if isinstance(row, Mapping) else [row]
        for row in data
    ]


def _holds_nothing(result: Mapping[str, Any]) -> bool:
    """Whether a result has no rows, or one with nothing but 0, as a count of no rows has, and NULL."""
    rows = rows_of(result)
    counted = [value for value in rows[0] if value is not None] if len(rows) == 1 else []
    return not rows or (bool(counted) and all(type(each) in {int, float} and each == 0 for each in counted))


def _worth(known: Mapping[str, Any]) -> int:
    """How good a result is, from 0: of two results, the better one is the answer."""
    result = known.get("execution_result")
    if not isinstance(result, Mapping) or refusal(known.get("validation_result")):
        return 0
    rows = rows_of(result)
    if all(value is None for row in rows for value in row):
        return 2 if rows else 1
    return 3 if doubts(result) else 4


def _texts(said: Any) -> list[str]:
    """The reasons that a judge gave, one or a list, bounded in number and length, without empty ones."""
    reasons = said if isinstance(said, (list, tuple)) else [said]
    texts = [
        "" if each is None else safe_text(each).strip()[:_LONGEST_TEXT] for each in reasons[:_MOST_TEXTS]
    ]
    return [text for text in texts if text]


def _offered(state: State) -> dict[str, Any]:
    """The values that a judge may take."""
    return {
        "question": state.get("resolved_query") or "",
        "sql": state.get("sql_query") or "",
        "result": state.get("execution_result") or {},
        "schema": state.get("schema") or "",
        "state": dict(state),
    }
