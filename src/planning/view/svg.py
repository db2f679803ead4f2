"""A plan and a workflow as SVG, for READMEs and reports: self-contained, light or dark as readers prefer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final
from xml.sax.saxutils import escape, quoteattr

from planning.observe.fact_words import NO_FACTS, approval_words
from planning.observe.text import fitted, one_line, shortened
from planning.plan.facts import PlanFacts
from planning.plan.model import Plan, PlanStep
from planning.plan.render import remarks_of
from planning.view.states import RunStates

_WIDTH: Final = 760  # of a plan
_ROW: Final = 30
_TOP: Final = 96
_MARGIN: Final = 24
_TITLE: Final = 78  # columns of text that fit a row, at 14 px
_REMARK: Final = 36  # the same at 13 px, at the end of a row
_OBJECTIVE: Final = 72  # the same at 17 px
_LONGEST: Final = 1_000
_MARKS: Final = {
    "pending": "○",
    "in_progress": "▶",
    "done": "✓",
    "completed": "✓",
    "blocked": "■",
    "failed": "✗",
    "skipped": "-",
}
_STATES: Final = {"done": "completed", "blocked": "failed"}  # whose colours are the same
# By state: the ground, the line and the text, in the light and in the dark.
_COLORS: Final = {
    "pending": (("#f6f8fa", "#6e7781", "#24292f"), ("#161b22", "#8b949e", "#e6edf3")),
    "in_progress": (("#fff8c5", "#7d4e00", "#24292f"), ("#3b2e00", "#e3b341", "#e6edf3")),
    "completed": (("#dafbe1", "#116329", "#24292f"), ("#04260f", "#56d364", "#e6edf3")),
    "failed": (("#ffebe9", "#a40e26", "#24292f"), ("#490202", "#ff7b72", "#e6edf3")),
    "skipped": (("#f6f8fa", "#6e7781", "#57606a"), ("#161b22", "#8b949e", "#adbac7")),
}
_PAGE: Final = (("#ffffff", "#57606a", "#1f2328"), ("#0d1117", "#9198a1", "#f0f6fc"))


def plan_svg(plan: Plan, facts: PlanFacts = NO_FACTS) -> str:
    """A plan as a picture: its objective, how far it is, and a row for each step.

    Args:
        plan: The plan.
        facts: What a policy knows of it.
    """
    done, total = plan.progress
    remarks, approval = remarks_of(plan, facts), approval_words(facts)
    state = f"{plan.status}, {done} of {total} done{f'. {approval}' if approval else ''}"
    height = _TOP + _ROW * total + _MARGIN // 2
    parts = [
        _text(_MARGIN, 38, plan.objective, _OBJECTIVE, "objective"),
        _text(_MARGIN, 62, state, _TITLE, "quiet"),
        f'<rect class="track" x="{_MARGIN}" y="74" width="{_WIDTH - 2 * _MARGIN}" height="6" rx="3"/>',
    ]
    if done:
        width = (_WIDTH - 2 * _MARGIN) * done // total
        parts.append(f'<rect class="bar" x="{_MARGIN}" y="74" width="{width}" height="6" rx="3"/>')
    for row, step in enumerate(plan.steps):
        parts += _step(step, _TOP + _ROW * row, remarks.get(step.step_id, "").removeprefix(", "))
    return _svg(_WIDTH, height, f"Plan: {plan.objective} ({state})", parts)


def graph_svg(run: RunStates) -> str:
    """A workflow as a picture: a box for each step with its state, a line for each dependency.

    Args:
        run: The run, or a workflow that has not run; it has a workflow.
    """
    graph: Any = run.graph()
    parts = [_line(edge["points"], is_across="across" in graph) for edge in graph["edges"]]
    for node in graph["nodes"]:
        state = run.states.get(node["id"], "pending")
        x, y, middle = node["x"], node["y"], node["x"] + node["w"] // 2
        parts += [
            f'<g class="{state}"><title>{_escaped(node["text"])}\n{state}</title>',
            f'<rect x="{x}" y="{y}" width="{node["w"]}" height="{node["h"]}" rx="6"/>',
            f'<text class="label" x="{middle}" y="{y + 21}">{_escaped(node["label"])}</text>',
            f'<text class="detail" x="{middle}" y="{y + 37}">{_escaped(node["detail"])}</text>',
            f'<text class="mark" x="{x + 8}" y="{y + 19}">{_MARKS[state]}</text></g>',
        ]
    goal = "" if run.workflow is None else run.workflow.goal
    count = len(graph["nodes"])
    return _svg(graph["width"], graph["height"], f"Workflow of {count} steps: {goal}", parts)


def _step(step: PlanStep, y: int, remark: str) -> Iterator[str]:
    state, shown = _STATES.get(step.status, step.status), fitted(remark, _REMARK)
    said = f", {remark}" if remark else ""
    about = "\n".join(
        filter(None, (f"{step.step_id} {step.status}{said}: {step.title}", step.details, *step.notes))
    )
    yield f'<g class="{state}"><title>{_escaped(about)}</title>'
    yield f'<rect x="{_MARGIN}" y="{y}" width="{_WIDTH - 2 * _MARGIN}" height="{_ROW - 4}" rx="5"/>'
    yield f'<text class="mark" x="{_MARGIN + 10}" y="{y + 18}">{_MARKS[step.status]}</text>'
    yield _text(_MARGIN + 32, y + 18, f"{step.step_id}  {step.title}", _TITLE - len(shown), "title")
    if shown:
        place = f'x="{_WIDTH - _MARGIN - 10}" y="{y + 18}"'
        yield f'<text class="quiet" text-anchor="end" {place}>{_escaped(shown)}</text>'
    yield "</g>"


def _line(points: list[list[int]], *, is_across: bool) -> str:
    """A line with an arrow at its end; it is curved where it changes its direction."""
    (x, y), *rest = points
    path = f"M{x} {y}"
    for to_x, to_y in rest:
        if is_across:
            middle = (x + to_x) // 2
            path += f"C{middle} {y} {middle} {to_y} {to_x} {to_y}"
        else:
            middle = (y + to_y) // 2
            path += f"C{x} {middle} {to_x} {middle} {to_x} {to_y}"
        x, y = to_x, to_y
    return f'<path d="{path}" marker-end="url(#arrow)"/>'


def _text(x: int, y: int, text: str, columns: int, kind: str) -> str:
    return f'<text class="{kind}" x="{x}" y="{y}">{_escaped(fitted(text, columns))}</text>'


def _escaped(text: str) -> str:
    return escape("\n".join(map(one_line, shortened(text, _LONGEST).split("\n"))))


def _svg(width: int, height: int, name: str, parts: Iterable[str]) -> str:
    label = quoteattr(one_line(shortened(name, _LONGEST)))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
            f' viewBox="0 0 {width} {height}" role="img" aria-label={label}>',
            f"<style>{_style()}</style>",
            '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"'
            ' orient="auto"><path class="arrow" d="M0 0L8 4L0 8z"/></marker></defs>',
            '<rect class="page" width="100%" height="100%" rx="8"/>',
            *parts,
            "</svg>\n",
        ]
    )


def _style() -> str:
    rules = [
        "text{font-family:system-ui,-apple-system,'Segoe UI',sans-serif}",
        ".objective{font-size:17px;font-weight:600}.quiet{font-size:13px}.title,.mark{font-size:14px}",
        ".label{font-size:13px;font-weight:600;text-anchor:middle}.detail{font-size:11px;text-anchor:middle}",
        "path{fill:none;stroke-width:1.5}.skipped rect{stroke-dasharray:5 4}",
        *_colors(0),
        "@media (prefers-color-scheme:dark){",
        *_colors(1),
        "}",
    ]
    return "".join(rules)


def _colors(scheme: int) -> Iterator[str]:
    page, quiet, text = _PAGE[scheme]
    yield f".page{{fill:{page}}}.objective{{fill:{text}}}.quiet,.arrow{{fill:{quiet}}}path{{stroke:{quiet}}}"
    yield f".track{{fill:{_COLORS['pending'][scheme][0]}}}.bar{{fill:{_COLORS['completed'][scheme][1]}}}"
    for state, schemes in _COLORS.items():
        ground, line, words = schemes[scheme]
        yield f".{state} rect{{fill:{ground};stroke:{line}}}.{state} text{{fill:{words}}}"
        yield f".{state} .mark{{fill:{line}}}"
