"""The text of the planning section, as data: the same for all strategies, except the mindset."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from enum import Enum, auto
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from planning.plan.model import STEP_STATUSES
from planning.plan.step_ids import format_id
from planning.plan.text import NOTE, OBJECTIVE, TITLE

if TYPE_CHECKING:
    from planning.policy.policy import PlanPolicy


class PlanningStrategy(Enum):
    """How the planning section tells a model to work."""

    REACT = auto()
    PLAN_ACT_REFLECT = auto()
    GOAL_DECOMPOSE_ROUTE_SYNTHESISE = auto()


_MINDSETS: Final[Mapping[PlanningStrategy, str]] = MappingProxyType({
    PlanningStrategy.REACT: (
        "Work in short rounds: reason, act, observe, repeat. Record what you observe as step notes."
    ),
    PlanningStrategy.PLAN_ACT_REFLECT: (
        "Outline the whole plan first, then act on it step by step. After each tool call or finished step,"
        " reflect in one sentence and append it as a step note."
    ),
    PlanningStrategy.GOAL_DECOMPOSE_ROUTE_SYNTHESISE: (
        "Restate the goal in your own words. Break it into concrete sub-problems, one step each, then choose"
        " the tools for each. At the end, synthesise the results into one coherent answer."
    ),
})  # fmt: skip

_TOOL: Final = re.compile(r"planning_\w+")
_FIRST: Final = "planning_setup_plan"
_WHEN: Final = "Plan work of several steps; answer simple requests directly."
_STATUSES: Final = ", ".join(f"`{status}`" for status in STEP_STATUSES)
_GUIDANCE: Final = (
    f"Start with `planning_setup_plan`: an objective (max {OBJECTIVE.limit} characters) and ordered steps"
    f" (titles max {TITLE.limit}). It replaces any plan.",
    "Append steps with `planning_add_step`; refine one with `planning_update_step`.",
    f"Give the `step_id` when updating or marking: `S###`, such as `{format_id(1)}`, from the tools.",
    f"Track status with `planning_mark_step`: {_STATUSES}. Notes: max {NOTE.limit}.",
    "Recall the plan with `planning_read_plan`.",
    "`planning_clear_plan` discards the plan: only when the goal is dropped.",
    "Be brief. ASCII only.",
)
_EDITS: Final = "Drop a step with `planning_remove_step`; reorder with `planning_move_step`."


def section_body(strategy: PlanningStrategy, policy: PlanPolicy | None = None) -> str:
    """The section's text below its heading.

    Args:
        strategy: The mindset.
        policy: What the host demands: the text names no tool that the agent does not have, and has a line
            for each demand.
    """
    if policy is None:
        return _body([_WHEN, _MINDSETS[strategy]], _GUIDANCE)
    tools = policy.names
    lines = [kept for line in _GUIDANCE if (kept := _about(line, tools))]
    end = lines.pop() if policy.text == "ascii" else lines.pop().partition(" ASCII")[0]
    return _body([_WHEN, _MINDSETS[strategy]] if _FIRST in tools else [], [*lines, *_demands(policy), end])


def _body(paragraphs: Sequence[str], lines: Sequence[str]) -> str:
    guidance = "\n".join([f"{number}. {line}" for number, line in enumerate(lines, start=1)])
    return "\n\n".join([*paragraphs, guidance])


def _demands(policy: PlanPolicy) -> Iterator[str]:
    """What a policy asks of the agent, as far as it has the tools for it."""
    tools = policy.names
    marks, adds = "planning_mark_step" in tools, not tools.isdisjoint({_FIRST, "planning_add_step"})
    if policy.agent_edits:
        yield from filter(None, [_about(_EDITS, tools)])
    if policy.batch_marks and marks:
        yield "Mark several steps in one call with `marks`."
    if policy.dependencies and adds:
        yield "Where a step must wait for others, name them in `depends_on`."
    if policy.most_in_progress is not None and marks:
        steps = "one step" if policy.most_in_progress == 1 else f"{policy.most_in_progress} steps"
        yield f"Have at most {steps} in progress."
    if policy.evidence is not None and marks:
        texts = ", or a text that shows it" if policy.verify is not None else ""
        each = "; one call proves one step" if policy.evidence == "unique" else ""
        yield f"To mark a step done, give `evidence`: calls made since it began, such as `C12`{texts}{each}."
    if policy.approval and adds:
        yield "Work begins when the user has approved the plan. Steps that you add or retitle later wait too."
    if policy.replace is not None and _FIRST in tools:
        yield "Finish a plan before you set up another."


def _about(line: str, tools: Container[str]) -> str:
    """A line without its clauses about other tools; empty when none is left."""
    clauses = [clause for clause in line.split("; ") if all(name in tools for name in _TOOL.findall(clause))]
    kept = "; ".join(clauses)
    return kept and kept[0].upper() + kept[1:].removesuffix(".") + "."
