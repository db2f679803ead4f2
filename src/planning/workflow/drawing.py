"""A workflow as a picture: the text of a Mermaid flowchart, and the lines of a tree."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, Literal

from planning.errors import printable, show
from planning.workflow.model import Workflow, WorkflowStep

__all__ = [
    "MOST_CHARACTERS",
    "MOST_EDGES",
    "State",
    "TreeLine",
    "called",
    "mermaid",
    "state_of",
    "tree_lines",
]

State = Literal["pending", "in_progress", "completed", "failed", "skipped"]

MOST_CHARACTERS: Final = 50_000
"""The characters that Mermaid draws by default (``maxTextSize``)."""
MOST_EDGES: Final = 500
"""The edges that Mermaid draws by default (``maxEdges``)."""

_LONGEST_NAME = 60
_LONGEST_DESCRIPTION = 80
_CHECK = "call validate_workflow first: it says where"
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
})  # fmt: skip
# What Mermaid, or the Markdown and HTML in its labels, could take for something else than text: all that is
# no letter, digit or plain sign; signs that are one of those within a word alone; "1." and "1)", which begin
# a list; the dot of "www.", which begins a link; the blank of "direction LR", which it finds even in a label.
_ACTS = re.compile(
    r"[^\w ,'()?!.-]|(?<!\w)[-_]|[-_](?!\w)|(?<=\d)[.)](?!\w)|(?<=www)\.|(?<=direction) ", re.IGNORECASE
)
_MERMAIDS_OWN = "\u00b0\u00b6"  # it writes entities with these for itself


@dataclass(slots=True, frozen=True)
class TreeLine:
    """One step in the tree.

    Attributes:
        lead: What is drawn before it: rails to the step it is under, and to the ones beside it.
        below: What is drawn before further lines about it.
        step: The step.
        after: The ids of its dependencies that its place in the tree does not show.
    """

    lead: str
    below: str
    step: WorkflowStep
    after: tuple[str, ...]


@dataclass(slots=True, frozen=True)
class _Place:
    """The place of a step in the tree.

    Attributes:
        index: The index of the step.
        base: The rails of the levels above its own.
        level: How many levels these are; 0 for a root and what follows it in a chain.
        is_open: Whether a step beside it comes further down, so that its rail goes on.
        how: How it hangs on the step above.
        under: The index of the step above it, where that is shown.
    """

    index: int
    base: str = ""
    level: int = 0
    is_open: bool = False
    how: Literal["root", "branch", "chain", "flat"] = "root"
    under: int | None = None

    @property
    def lead(self) -> str:
        if self.how == "branch":
            return self.base + ("├─ " if self.is_open else "└─ ")
        if self.how == "chain":
            rail = "" if self.level == 0 else "│" if self.is_open else " "
            return f"{self.base}{rail}↓ "
        return self.rails

    @property
    def rails(self) -> str:
        """The rails of the levels above the steps that stand under it."""
        if self.level == 0:
            return "  "
        return self.base + ("│  " if self.is_open else "   ")


def called(step: WorkflowStep) -> str:
    """What a step calls, with its kind before it: ``tool search``; ``thinking`` where it calls nothing."""
    kind, name = _called(step)
    return f"{kind} {name}" if name else kind


def _called(step: WorkflowStep) -> tuple[str, str]:
    if step.agent is not None:
        return "agent", step.agent
    if step.type is not None and step.name is not None:
        return step.type, step.name
    return "thinking", ""


def state_of(step: WorkflowStep) -> State:
    """How far a step is, in one word."""
    return "skipped" if step.skipped else step.status


def mermaid(workflow: Workflow) -> str:
    """The workflow as a Mermaid flowchart: a node for each step, an edge for each dependency.

    The nodes are ``n0``, ``n1`` and so on, in the order of the steps. No text of the workflow can act in
    Mermaid, in Markdown or in HTML. Long texts are cut. Takes linear time.

    Args:
        workflow: A valid workflow.

    Raises:
        ValueError: Two steps have the same id, or one depends on a step that does not exist.
    """
    edges = _edges(workflow)
    states = [state_of(step) for step in workflow.steps]
    is_begun = any(state != "pending" for state in states)
    lines = ["flowchart TD"]
    for number, (step, state) in enumerate(zip(workflow.steps, states, strict=True)):
        lines.append(f"    n{number}{_node(step)}{f':::{state}' if is_begun else ''}")
    lines += [f"    n{other} --> n{number}" for number, others in enumerate(edges) for other in others]
    if is_begun:
        shown = set(states)
        lines += [f"    classDef {state} {style}" for state, style in _CLASSES.items() if state in shown]
    return "\n".join(lines) + "\n"


def _node(step: WorkflowStep) -> str:
    kind, name = _called(step)
    opening, closing = _SHAPES[kind]
    texts = (
        _short(step.step_id, _LONGEST_NAME),
        _short(step.description, _LONGEST_DESCRIPTION),
        f"{kind} {_short(name, _LONGEST_NAME)}",  # never empty: Mermaid takes no empty label
    )
    label = "<br/>".join(_escaped(text.strip()) for text in texts if text)
    return f'{opening}"{label}"{closing}'


def _short(text: str, most: int) -> str:
    """The beginning of a text, its white space made single blanks."""
    beginning = text[: 10 * most]
    short = " ".join(beginning.split())
    if len(short) <= most and len(beginning) == len(text):
        return short
    return short[: most - 1].rstrip() + "…"


def _escaped(text: str) -> str:
    """The text as Mermaid shows it, and takes none of it for its own."""
    return _ACTS.sub(_entity, printable(text))


def _entity(found: re.Match[str]) -> str:
    character = found[0]
    return f"#{ord(character)};" if character.isascii() or character in _MERMAIDS_OWN else character


def tree_lines(workflow: Workflow, *, levels: int) -> Iterator[TreeLine]:
    """The workflow as a tree: each step on one line, behind all of its dependencies.

    A step is below the last of its dependencies: the others are in ``after``. Where it is the only one
    there, it follows on the next line beside an arrow, so that a chain does not move to the right. Nor does
    what would stand deeper than ``levels``, whose ``after`` holds all of its dependencies. Takes linear time.

    Args:
        workflow: A valid workflow.
        levels: How many levels there are at most under the first steps; each takes 3 columns.

    Raises:
        ValueError: Two steps have the same id, one depends on a step that does not exist, or steps depend
            on each other in a circle.
    """
    edges = _edges(workflow)
    followers: list[list[int]] = [[] for _ in edges]
    for number, others in enumerate(edges):
        for other in others:
            followers[other].append(number)
    waits = [len(others) for others in edges]
    places = [_Place(number) for number in reversed(range(len(edges))) if not waits[number]]
    drawn = 0
    while places:
        place = places.pop()
        drawn += 1
        after = (other for other in edges[place.index] if other != place.under)
        ids = tuple(workflow.steps[other].step_id for other in after)
        yield TreeLine(place.lead, place.rails, workflow.steps[place.index], ids)
        ready = list[int]()
        for number in followers[place.index]:
            waits[number] -= 1
            if not waits[number]:
                ready.append(number)
        places += reversed(_under(place, ready, levels))
    if drawn < len(edges):
        raise ValueError(f"steps depend on each other in a circle; {_CHECK}")


def _under(place: _Place, ready: Sequence[int], levels: int) -> list[_Place]:
    """Where the steps stand that follow one step."""
    if len(ready) == 1:
        return [replace(place, index=ready[0], how="chain", under=place.index)]
    if place.level == levels:
        return [replace(place, index=number, how="flat", under=None) for number in ready]
    last = len(ready) - 1
    return [
        _Place(number, place.rails, place.level + 1, at < last, "branch", place.index)
        for at, number in enumerate(ready)
    ]


def _edges(workflow: Workflow) -> list[list[int]]:
    """By step, the indexes of the steps that it depends on, each once."""
    numbers = {step.step_id: number for number, step in enumerate(workflow.steps)}
    if len(numbers) < len(workflow.steps):
        raise ValueError(f"two steps have the same id; {_CHECK}")
    try:
        return [[numbers[each] for each in dict.fromkeys(step.depends_on)] for step in workflow.steps]
    except KeyError as error:
        raise ValueError(f"no step has the id {show(error.args[0])}; {_CHECK}") from None
