"""Random workflows whose steps work, fail or think, and a plain account of what must come of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
from hypothesis import strategies as st
from run_cases import flow, plain_tool, thought

from planning.tools import ToolContext, ToolError
from planning.workflow import Capabilities, Workflow

__all__ = ["Drawn", "Expected", "drawn_runs", "expected", "working"]


@attrs.frozen
class Drawn:
    workflow: Workflow
    failing: frozenset[str]


@st.composite
def drawn_runs(draw: st.DrawFn, limit: int = 7) -> Drawn:
    """A workflow in any order of its steps: they use the outputs of some of those that they depend on.

    Two steps store under one key only if one of them runs after the other: the later value counts.
    """
    ids = [f"s{number}" for number in range(draw(st.integers(1, limit)))]
    steps, failing = [], set()
    before: dict[str, set[str]] = {}
    holders: dict[str, set[str]] = {"one": set(), "two": set()}
    for at, step_id in enumerate(ids):
        depends_on = draw(st.lists(st.sampled_from(ids[:at]), max_size=3)) if at else []
        before[step_id] = {*depends_on}.union(*(before[each] for each in depends_on))
        used = draw(st.lists(st.sampled_from(depends_on), unique=True)) if depends_on else []
        kind = draw(st.sampled_from(["tool", "tool", "fails", "thinking"]))
        said: dict[str, Any] = {}
        if kind != "thinking":
            said = {
                "type": "tool",
                "name": "work",
                "inputs": {"used": [f"${{{each}.output}}" for each in used]},
            }
        if kind == "fails":
            failing.add(step_id)
        if draw(st.booleans()):
            key = draw(st.sampled_from(["one", "two"]))
            is_free = holders[key] <= before[step_id]
            said["expected_key"] = key if is_free else f"key of {step_id}"
            if is_free:
                holders[key].add(step_id)
        said["on_failure"] = draw(st.sampled_from(["fail", "skip_dependents", "continue"]))
        steps.append(thought(step_id, *depends_on, **said))
    return Drawn(flow(*draw(st.permutations(steps))), frozenset(failing))


def working(
    failing: frozenset[str], called: Callable[[str], object] = lambda step_id: None, **options: Any
) -> Capabilities:
    """Capabilities with the tool that these workflows call; ``called`` hears of each call first."""

    async def work(used: list[str], context: ToolContext) -> str:
        step_id = str(context.values["step_id"])
        called(step_id)
        if step_id in failing:
            raise ToolError(f"{step_id} failed")
        return f"{step_id}({','.join(used)})"

    return Capabilities(tools=[plain_tool("work", work, **options)])


@attrs.frozen
class Expected:
    status: str
    statuses: dict[str, str]
    outputs: dict[str, str]
    failed: set[str]
    skipped: dict[str, bool]
    plan: list[str]


def expected(drawn: Drawn) -> Expected:
    steps = {step.step_id: step for step in drawn.workflow.steps}
    statuses: dict[str, str] = {}
    outputs: dict[str, str] = {}
    causes: dict[str, set[str]] = {}
    while len(statuses) < len(steps):
        for step_id, step in steps.items():
            if step_id in statuses or any(each not in statuses for each in step.depends_on):
                continue
            causes[step_id] = set()
            for other in step.depends_on:
                causes[step_id] |= causes[other]
                if statuses[other] == "failed" and steps[other].on_failure != "continue":
                    causes[step_id].add(other)
            used = [each[2:-8] for each in step.inputs.get("used", ())]
            if causes[step_id]:
                statuses[step_id] = "pending"
            elif step_id in drawn.failing or any(each not in outputs for each in used):
                statuses[step_id] = "failed"
            else:
                statuses[step_id] = "completed"
                made = f"{step_id}({','.join(outputs[each] for each in used)})"
                outputs[step_id] = made if step.type else step.description
    failed = {step_id for step_id, status in statuses.items() if status == "failed"}
    marks = {"completed": "done", "failed": "blocked", "pending": "blocked"}
    return Expected(
        "failed" if any(steps[each].on_failure == "fail" for each in failed) else "completed",
        {step_id: statuses[step_id] for step_id in steps},
        {step_id: outputs[step_id] for step_id in steps if step_id in outputs},
        failed,
        {
            each: bool(causes[each])
            and all(steps[cause].on_failure == "skip_dependents" for cause in causes[each])
            for each in steps
        },
        [marks[statuses[step_id]] for step_id in steps],
    )
