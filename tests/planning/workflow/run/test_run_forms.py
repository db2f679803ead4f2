"""Values mean the same live and after a resume, in conditions, texts and references."""

from __future__ import annotations

import json
import re
import uuid
from datetime import date
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from record_values import Page, Row
from run_cases import called, capable, flow, plain_tool, thought

from planning.tools import ToolResult
from planning.workflow import WorkflowError, run_workflow
from planning.workflow.run.memory import MemoryItem
from planning.workflow.run.records import WorkflowRun
from session import Session, Snapshot


class Colour(Enum):
    RED = "red"


VALUES: dict[str, Any] = {
    "set": {1, 2, 3},
    "Decimal": Decimal("1.50"),
    "date": date(2024, 1, 2),
    "UUID": uuid.UUID(int=5),
    "Enum": Colour.RED,
    "bytes": b"raw \xff",
    "tuple": (1, (2, 3)),
    "dataclass": Row("a", [1]),
    "pydantic": Page(title="a", lines=[1]),
    "nan": float("nan"),
    "None": None,
    "keys": {1: "one", 2.5: "two", None: "three", "four": 4},
    "inside": {
        "day": [date(2024, 1, 2)],
        "ids": {uuid.UUID(int=5)},
        "price": Decimal("1.50"),
        "bad": [1e400],
    },
    "long number": 10**400,
}
CONDITIONS: list[str] = json.loads(Path(__file__).with_name("conditions.json").read_text())
PATHS = ["[0]", "[1]", ".0", ".1", ".name", ".title", ".first", ".day[0]", ".ids[0]", ".four"]


def outcomes(value: Any, *, is_resumed: bool) -> dict[str, Any]:
    """What conditions, texts and references make of a value; after a resume, what they make of its JSON."""
    breaks = [is_resumed]

    def gate() -> None:
        if breaks.pop():
            raise ValueError

    checks = [re.sub(r"(?<!')\bx\b(?!')", "memory['x']", condition) for condition in CONDITIONS]
    steps = [called("a", tool="produce", expected_key="x"), called("gate", "a", tool="gate")]
    steps += [thought(check, "gate", done_check=f"({check}) == True") for check in checks]
    steps += [
        called(f"text{path}", "gate", "a", tool="echo", inputs={"value": f"http://x/${{a.output{path}}}/z"})
        for path in ["", *PATHS]
    ]
    produce = plain_tool("produce", lambda: ToolResult(True, "Done.", value))
    capabilities = capable(produce, gate=gate, echo=lambda value: value)
    session = Session()
    if is_resumed:
        first = run_workflow(flow(*steps), capabilities, session=session)
        assert list(first.errors) == ["gate"]
        breaks.append(False)
        snapshot = Snapshot.from_json(session.snapshot().to_json())
        session = Session()
        session.rollback(snapshot)
    result = run_workflow(flow(*steps), capabilities, session=session)
    return {
        step.step_id: result.outputs.get(step.step_id, step.status) if step.depends_on[1:] else step.skipped
        for step in result.workflow.steps
        if step.depends_on
    }


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_conditions_texts_and_references_mean_the_same_live_and_after_a_resume(value: Any) -> None:
    assert outcomes(value, is_resumed=False) == outcomes(value, is_resumed=True)


def nested(levels: int) -> Any:
    """A list in a list, and so on."""
    return [nested(levels - 1)] if levels > 1 else ["here"]


def test_what_may_be_kept_is_whole_in_a_snapshot_and_in_a_result_as_json() -> None:
    deepest = nested(100)
    workflow = flow(called("a", tool="produce", expected_key="key"))
    produce = plain_tool("produce", lambda: ToolResult(True, "Done.", deepest))
    result = run_workflow(workflow, capable(produce), inputs={"given": nested(99)})
    assert dict(result.errors) == {}
    snapshot = Snapshot.from_json(result.session.snapshot().to_json())
    assert [item.value for item in snapshot.select_all(MemoryItem)] == [nested(99), deepest]
    assert [run.inputs for run in snapshot.select_all(WorkflowRun)] == [{"given": nested(99)}]
    told = result.to_dict()
    assert (told["outputs"], told["memory"]) == ({"a": deepest}, {"given": nested(99), "key": deepest})
    with pytest.raises(WorkflowError):
        run_workflow(workflow, capable(produce), inputs={"given": deepest})
