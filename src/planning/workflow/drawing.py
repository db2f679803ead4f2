"""A workflow as a picture: a Mermaid flowchart, and the words that every drawing uses."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal

from planning.errors import printable
from planning.workflow.model import Workflow, WorkflowStep

State = Literal["pending", "in_progress", "completed", "failed", "skipped", "blocked", "stopped"]
"""The state of a step; ``blocked`` by one that failed, or ``stopped`` with its run before it was done."""

_LONGEST_NAME = 60
_LONGEST_DESCRIPTION = 80
# kind -> the brackets around the label of a node
_SHAPES: Final = MappingProxyType({
    "tool": ("[", "]"),
    "handler": ("[[", "]]"),
    "agent": ("{{", "}}"),
    "thinking": ("([", "])"),
})  # fmt: skip
# Dark text on light grounds: it can be read on a light page and on a dark one.
_CLASSES: Final = MappingProxyType[State, str]({
    "pending": "fill:#f6f8fa,stroke:#8c959f,color:#24292f",
    "in_progress": "fill:#fff8c5,stroke:#bf8700,color:#24292f,stroke-width:3px",
    "completed": "fill:#dafbe1,stroke:#1a7f37,color:#24292f",
    "failed": "fill:#ffebe9,stroke:#cf222e,color:#24292f,stroke-width:3px",
    "skipped": "fill:#f6f8fa,stroke:#8c959f,color:#57606a,stroke-dasharray:5 5",
    "blocked": "fill:#fbefff,stroke:#8250df,color:#24292f",
    "stopped": "fill:#f6f8fa,stroke:#8c959f,color:#24292f,stroke-width:3px",
})  # fmt: skip
# What Mermaid, or the Markdown and HTML in its labels, could take for something else than text: every sign,
# what it writes its own entities with, and the blank of "direction LR", which it finds even in a label.
_ACTS = re.compile(r"[^\w \u0080-\U0010ffff]|[_\u00b0\u00b6]|(?<=direction) ", re.IGNORECASE)


def called(step: WorkflowStep) -> str:
    """The target of a step, with its kind before it: ``tool search``; ``thinking`` if it calls nothing."""
    kind, name = _name_call(step)
    return f"{kind} {name}" if name else kind


def _name_call(step: WorkflowStep) -> tuple[str, str]:
    if step.agent is not None:
        return "agent", step.agent
    if step.type is not None and step.name is not None:
        return step.type, step.name
    return "thinking", ""


def state_of(step: WorkflowStep) -> State:
    """The state of a step, in one word."""
    return "skipped" if step.skipped else step.status


def states_in(workflow: Workflow) -> dict[str, State]:
    """The states of the steps, as the workflow has them, by their ids."""
    return {step.step_id: state_of(step) for step in workflow.steps}


def mermaid(workflow: Workflow, states: Mapping[str, State] | None = None) -> str:
    """The workflow as a Mermaid flowchart: a node for each step, an edge for each dependency.

    The nodes are ``n0``, ``n1`` and so on, in the order of the steps. No text of the workflow can act in
    Mermaid, in Markdown or in HTML. Long text is cut.
    """
    numbers = {step.step_id: number for number, step in enumerate(workflow.steps)}
    states = states_in(workflow) if states is None else states
    shown = set(states.values())
    is_begun = bool(shown - {"pending"})
    lines = ["flowchart TD"]
    for number, step in enumerate(workflow.steps):
        lines.append(f"    n{number}{_node(step)}{f':::{states[step.step_id]}' if is_begun else ''}")
    for number, step in enumerate(workflow.steps):
        lines += [f"    n{numbers[other]} --> n{number}" for other in dict.fromkeys(step.depends_on)]
    if is_begun:
        lines += [f"    classDef {state} {style}" for state, style in _CLASSES.items() if state in shown]
    return "\n".join(lines) + "\n"


def _node(step: WorkflowStep) -> str:
    kind, name = _name_call(step)
    opening, closing = _SHAPES[kind]
    texts = (
        _short(step.step_id, _LONGEST_NAME),
        _short(step.description, _LONGEST_DESCRIPTION),
        f"{kind} {_short(name, _LONGEST_NAME)}",  # never empty: Mermaid takes no empty label
    )
    label = "<br/>".join(_escape(text.strip()) for text in texts if text)
    return f'{opening}"{label}"{closing}'


def _short(text: str, limit: int) -> str:
    """The beginning of a string, its white space made single blanks."""
    beginning = text[: 10 * limit]
    short = " ".join(beginning.split())
    if len(short) <= limit and len(beginning) == len(text):
        return short
    return short[: limit - 1].rstrip() + "…"


def _escape(text: str) -> str:
    """The text as Mermaid shows it, and takes none of it for its own."""
    return _ACTS.sub(lambda found: f"#{ord(found[0])};", printable(text))
