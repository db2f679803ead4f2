"""A workflow as the graph that the page and the pictures draw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Final

import attrs

from planning.errors import printable
from planning.graph import Graph
from planning.observe.deltas import Fields
from planning.observe.steps import answer_steps
from planning.observe.text import as_text, fitted, shortened
from planning.workflow.drawing import called
from planning.workflow.model import Workflow, WorkflowStep

MOST_EDGES: Final = 5_000
"""The most lines that are drawn: of more, the longest are omitted."""
WIDTH: Final = 208
"""The width of a step."""
HEIGHT: Final = 46
"""The height of a step."""

_GAP: Final = 24  # between steps beside each other
_ROW_GAP: Final = 16  # between rows of one layer, and between steps below each other
_LAYER_GAP: Final = 44
_CHAIN_GAP: Final = 24  # between two layers of one step each
_MARGIN: Final = 14
_SEEN: Final = (700, 620)  # the width and the height that a page usually has for a graph
_WIDEST: Final = 20  # the most steps beside each other
_MOST_BENDS: Final = 20_000  # a line bends around what is between its ends, unless there are more bends
_SWEEPS: Final = 4


@attrs.frozen
class Layout:
    """The places of everything that is drawn."""

    width: int
    height: int
    places: list[tuple[int, int]]
    lines: list[tuple[int, int, list[list[int]]]]
    omitted: int
    is_across: bool


@attrs.frozen
class _Measure:
    """The sizes of what is drawn, for layers that follow each other down."""

    width: int
    height: int
    gap: int


_DOWN: Final = _Measure(WIDTH, HEIGHT, _GAP)
_ACROSS: Final = _Measure(HEIGHT, WIDTH, _ROW_GAP)  # turned at the end


@attrs.define(eq=False)
class _Spot:
    """A step, or a bend of a line that passes its layer."""

    width: int
    above: list[_Spot] = attrs.field(factory=list, repr=False)
    below: list[_Spot] = attrs.field(factory=list, repr=False)
    x: float = 0.0
    y: int = 0
    place: int = 0


def lay_out(edges: Sequence[Sequence[int]], depths: Sequence[int]) -> Layout:
    """Place steps in layers, beside those that they are joined to."""
    drawn = sorted(
        ((depths[to] - depths[source], source, to) for to, sources in enumerate(edges) for source in sources)
    )
    omitted, drawn = len(drawn[MOST_EDGES:]), drawn[:MOST_EDGES]
    measure = _measure(depths)
    spots = [_Spot(measure.width) for _ in edges]
    layers: list[list[_Spot]] = [[] for _ in range(max(depths, default=-1) + 1)]
    for depth, spot in zip(depths, spots, strict=True):
        layers[depth].append(spot)
    is_bent = sum(length - 1 for length, _, _ in drawn if length > 1) <= _MOST_BENDS
    is_bent = is_bent and max(map(len, layers), default=0) <= _WIDEST
    lines = list[tuple[int, int, list[_Spot]]]()
    for length, source, to in drawn:
        bends = [_Spot(0) for _ in range(length - 1)] if is_bent else []
        for depth, bend in enumerate(bends, start=depths[source] + 1):
            layers[depth].append(bend)
        for upper, lower in pairwise([spots[source], *bends, spots[to]]):
            upper.below.append(lower)
            lower.above.append(upper)
        lines.append((source, to, bends))
    _order(layers)
    rows = [_rows(layer) for layer in layers]
    _align([row for layer in rows for row in layer], measure)
    width, height = _place(rows, measure)
    places = [(round(spot.x) - measure.width // 2, spot.y) for spot in spots]
    found = [
        (source, to, _line(spots[source], bends, spots[to], measure.height)) for source, to, bends in lines
    ]
    if measure is _DOWN:
        return Layout(width, height, places, found, omitted, is_across=False)
    turned = [(source, to, [[x, y] for y, x in points]) for source, to, points in found]
    return Layout(height, width, [(x, y) for y, x in places], turned, omitted, is_across=True)


def _measure(depths: Sequence[int]) -> _Measure:
    """The sizes with which more of a graph is legible at once: down, unless across is better."""
    widest, layers = max(Counter(depths).values(), default=1), max(depths, default=0) + 1

    def scale(width: int, height: int) -> float:
        return min(1, _SEEN[0] / width, _SEEN[1] / height)

    down = scale(min(widest, _WIDEST) * (WIDTH + _GAP), layers * (HEIGHT + _LAYER_GAP))
    across = scale(layers * (WIDTH + _LAYER_GAP), min(widest, _WIDEST) * (HEIGHT + _ROW_GAP))
    return _ACROSS if across > down else _DOWN


def _order(layers: Sequence[list[_Spot]]) -> None:
    """Sort each layer by the places of the neighbours of its spots, so that few lines cross."""
    for layer in layers:
        _number(layer)
    for sweep in range(_SWEEPS):
        is_down = sweep % 2 == 0
        for layer in layers if is_down else reversed(layers):
            wanted = [
                (_mean(spot.above if is_down else spot.below, "place", spot.place), spot.place, spot)
                for spot in layer
            ]
            layer[:] = [spot for _, _, spot in sorted(wanted, key=lambda each: each[:2])]
            _number(layer)


def _number(layer: Sequence[_Spot]) -> None:
    for place, spot in enumerate(layer):
        spot.place = place


def _mean(spots: Sequence[_Spot], name: str, otherwise: float) -> float:
    return fmean(getattr(spot, name) for spot in spots) if spots else otherwise


def _rows(layer: Sequence[_Spot]) -> list[Sequence[_Spot]]:
    """A layer in rows that are not too wide, nearly equal."""
    count = sum(spot.width > 0 for spot in layer)
    if count <= _WIDEST:
        return [layer]
    rows = -(-count // _WIDEST)
    size = -(-count // rows)
    return [layer[first : first + size] for first in range(0, count, size)]


def _align(rows: Sequence[Sequence[_Spot]], measure: _Measure) -> None:
    """Give each spot its ``x``: near the middle of its neighbours, beside those in its row."""
    for row in rows:
        for left, right in pairwise(row):
            right.x = left.x + _apart(left, right, measure)
        middle = row[-1].x / 2
        for spot in row:
            spot.x -= middle
    for sweep in range(_SWEEPS):
        for row in rows if sweep % 2 == 0 else reversed(rows):
            wanted = [_mean(spot.above if sweep % 2 == 0 else spot.below, "x", spot.x) for spot in row]
            lefts, rights = list(wanted), list(wanted)
            for at in range(1, len(row)):
                rights[at] = max(wanted[at], rights[at - 1] + _apart(row[at - 1], row[at], measure))
            for at in reversed(range(len(row) - 1)):
                lefts[at] = min(wanted[at], lefts[at + 1] - _apart(row[at], row[at + 1], measure))
            for spot, one, other in zip(row, lefts, rights, strict=True):
                spot.x = (one + other) / 2


def _place(rows: Sequence[Sequence[Sequence[_Spot]]], measure: _Measure) -> tuple[int, int]:
    """Move the rows of each layer below each other, from the top left; returns the width and the height."""
    every = [spot for layer in rows for row in layer for spot in row]
    left = min((spot.x - spot.width / 2 for spot in every), default=0.0) - _MARGIN
    for spot in every:
        spot.x -= left
    y, before = _MARGIN, 0
    for layer in rows:
        count = sum(map(len, layer))
        if before:
            y += _CHAIN_GAP if before == count == 1 and measure is _DOWN else _LAYER_GAP
        for number, row in enumerate(layer):
            y += _ROW_GAP if number else 0
            for spot in row:
                spot.y = y
            y += measure.height
        before = count
    width = round(max((spot.x + spot.width / 2 for spot in every), default=0.0))
    return width + _MARGIN, y + _MARGIN


def _apart(left: _Spot, right: _Spot, measure: _Measure) -> float:
    return (left.width + right.width) / 2 + measure.gap


def _line(source: _Spot, bends: Iterable[_Spot], to: _Spot, height: int) -> list[list[int]]:
    """The points of a line: straight through the layers that it passes."""
    passed = [[round(bend.x), bend.y + part] for bend in bends for part in (0, height)]
    return [[round(source.x), source.y + height], *passed, [round(to.x), to.y]]


_LABEL: Final = 24  # columns of text that fit a step, at 13 px
_DETAIL: Final = 24  # the same at 11 px, beside how long it took
_LONGEST: Final = 1_000
_LONGEST_INPUTS: Final = 2_000


def graph_of(workflow: Workflow) -> Fields:
    """The graph of a workflow: its size, its nodes and its edges with their coordinates.

    Each step is below all that it depends on. What makes a workflow invalid is passed over: a dependency that
    does not exist is not drawn.
    """
    steps, answer = workflow.steps, set(answer_steps(workflow))
    numbers = {step.step_id: number for number, step in reversed(list(enumerate(steps)))}
    found = {
        number: [numbers[each] for each in step.depends_on if numbers.get(each, number) != number]
        for number, step in enumerate(steps)
    }
    waiting = Graph(found)
    layout = lay_out([*waiting.needs.values()], [waiting.levels[number] for number in found])
    graph: Fields = {
        "width": layout.width,
        "height": layout.height,
        "nodes": [
            _node(step, *place) | ({"answer": True} if step.step_id in answer else {})
            for step, place in zip(steps, layout.places, strict=True)
        ],
        "edges": [
            {"from": steps[source].step_id, "to": steps[to].step_id, "points": points}
            for source, to, points in layout.lines
        ],
    }
    more = {"across": layout.is_across, "omitted": layout.omitted}
    return {**graph, **{name: value for name, value in more.items() if value}}


def _node(step: WorkflowStep, x: int, y: int) -> Fields:
    """A step: where it is drawn, and its fields in the document, without what is empty."""
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
