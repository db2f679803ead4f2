"""A workflow as the graph that the page and the pictures draw."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from planning.errors import printable
from planning.observe.deltas import Fields
from planning.observe.text import as_text, fitted, shortened
from planning.view.layout import HEIGHT, WIDTH, lay_out
from planning.workflow.drawing import called
from planning.workflow.model import Workflow, WorkflowStep

_LABEL: Final = 24  # columns of text that fit a step, at 13 px
_DETAIL: Final = 24  # the same at 11 px, beside how long it took
_LONGEST: Final = 1_000
_LONGEST_INPUTS: Final = 2_000


def graph_of(workflow: Workflow) -> Fields:
    """The graph of a workflow: its size, its nodes and its edges with their coordinates.

    Each step is below all that it depends on. What makes a workflow invalid is passed over: a dependency that
    does not exist is not drawn.
    """
    steps = workflow.steps
    edges = _edges(workflow)
    layout = lay_out(edges, _depths(edges))
    graph: Fields = {
        "width": layout.width,
        "height": layout.height,
        "nodes": [_node(step, *place) for step, place in zip(steps, layout.places, strict=True)],
        "edges": [
            {"from": steps[source].step_id, "to": steps[to].step_id, "points": points}
            for source, to, points in layout.lines
        ],
    }
    more = {"across": layout.is_across, "omitted": layout.omitted}
    return {**graph, **{name: value for name, value in more.items() if value}}


def _edges(workflow: Workflow) -> list[list[int]]:
    """By step, the numbers of the steps that it depends on."""
    numbers = {step.step_id: number for number, step in reversed(list(enumerate(workflow.steps)))}
    return [
        [numbers[each] for each in dict.fromkeys(step.depends_on) if numbers.get(each, number) != number]
        for number, step in enumerate(workflow.steps)
    ]


def _depths(edges: Sequence[Sequence[int]]) -> list[int]:
    """The layer of each step: one below the lowest of its dependencies; those in a cycle come last."""
    followers: list[list[int]] = [[] for _ in edges]
    for number, sources in enumerate(edges):
        for source in sources:
            followers[source].append(number)
    waits, depths = [len(sources) for sources in edges], [0] * len(edges)
    ready = [number for number, count in enumerate(waits) if not count]
    for number in ready:  # it grows meanwhile
        for follower in followers[number]:
            depths[follower] = max(depths[follower], depths[number] + 1)
            waits[follower] -= 1
            if not waits[follower]:
                ready.append(follower)
    lowest = max((depths[number] for number in ready), default=-1)
    for number in sorted(set(range(len(edges))).difference(ready)):
        depths[number] = lowest = lowest + 1
    return depths


def _node(step: WorkflowStep, x: int, y: int) -> Fields:
    """A step: where it is drawn, and what the document says of it, without what is empty."""
    calls = f"Calls {called(step)}." if step.name or step.agent else ""
    about = (printable(step.step_id), step.description, calls)
    limits = {"timeout": step.timeout, "retries": step.retries, "done_check": step.done_check}
    said = {
        "about": shortened(step.description, _LONGEST),
        "after": list(step.depends_on),
        "inputs": shortened(as_text(step.inputs or None), _LONGEST_INPUTS),
        "on_failure": None if step.on_failure == "fail" else step.on_failure,
        **limits,
    }
    return {
        "id": step.step_id,
        "label": fitted(step.step_id, _LABEL),
        "detail": fitted(called(step), _DETAIL),
        "text": shortened("\n".join(filter(None, about)), _LONGEST),
        "x": x,
        "y": y,
        "w": WIDTH,
        "h": HEIGHT,
        **{name: value for name, value in said.items() if value},
    }
