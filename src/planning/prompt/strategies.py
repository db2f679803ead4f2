"""The copy of the planning section, as data: one text for all strategies, one mindset for each."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from enum import Enum, auto
from types import MappingProxyType
from typing import Final

from planning.model import STEP_STATUSES
from planning.step_ids import format_id
from planning.text import NOTE, OBJECTIVE, TITLE

__all__ = ["PlanningStrategy", "section_body"]


class PlanningStrategy(Enum):
    """The mindset that the planning section nudges a model toward."""

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


def section_body(strategy: PlanningStrategy, tools: Container[str] | None = None) -> str:
    """The section's text below its heading.

    Args:
        strategy: The mindset.
        tools: The planning tools that the agent has, if not all of them: the text names no other.
    """
    lines = _GUIDANCE if tools is None else filter(None, (_about(line, tools) for line in _GUIDANCE))
    guidance = "\n".join(f"{number}. {line}" for number, line in enumerate(lines, start=1))
    return f"{_WHEN}\n\n{_MINDSETS[strategy]}\n\n{guidance}"


def _about(line: str, tools: Container[str]) -> str:
    """A line without its clauses about other tools; empty when none is left."""
    clauses = [clause for clause in line.split("; ") if all(name in tools for name in _TOOL.findall(clause))]
    kept = "; ".join(clauses)
    return kept and kept[0].upper() + kept[1:].removesuffix(".") + "."
