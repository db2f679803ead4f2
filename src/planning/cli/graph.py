"""``planning graph``: a workflow as Mermaid for a page, or as a tree for a person in a terminal."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Final

import attrs
import typer

from planning.cli.source import WorkflowFile, name_of, read_bytes
from planning.cli.terminal import (
    MARKS,
    columns,
    count,
    is_ascii,
    is_terminal,
    painted,
    wants_color,
    wrapped,
)
from planning.cli.usage import EXIT_CODES, Refused
from planning.errors import one_line

if TYPE_CHECKING:
    from planning.workflow.drawing import State as WorkflowState
    from planning.workflow.drawing import TreeLine
    from planning.workflow.model import Workflow

__all__ = ["GRAPH_HELP", "graph", "tree_text"]

# \b keeps a paragraph as it is written.
GRAPH_HELP: Final = f"""\b
Examples:
  planning graph plan.json
  planning graph plan.json --format mermaid > plan.mmd
  my-agent --plan-only | planning graph - | mmdc -i - -o plan.svg

\b
The tree:
  Each step comes after everything that it depends on. Behind an arrow
  it follows the step above it; on a branch, the step that the branch
  grows from. "after" names what else it depends on.

{EXIT_CODES}"""
# state -> how it is marked
_MARK_OF: Final[Mapping[WorkflowState, str]] = MappingProxyType({
    "completed": "done", "skipped": "skipped", "in_progress": "running", "failed": "failed",
    "pending": "pending",
})  # fmt: skip
_ASCII_LEADS: Final = str.maketrans("├└│─↓", "|`|-v")
_LEVELS: Final = 12
_LEVEL: Final = 10  # in a terminal, the columns for each level of the tree
_NARROWEST: Final = 20
_STAYS: Final = "\u00a0"  # a blank at which no line is broken


class GraphFormat(StrEnum):
    """What a workflow is drawn as."""

    TREE = "tree"
    MERMAID = "mermaid"


def graph(
    plan: WorkflowFile = None,
    *,
    form: Annotated[
        GraphFormat | None,
        typer.Option(
            "--format",
            case_sensitive=False,
            help="tree: for a person; mermaid: the text of a flowchart, for a page or a picture. Without it,"
            " a tree in a terminal and Mermaid elsewhere.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Draw a workflow: its steps, what they call, and which waits for which.

    It is checked first, as by 'planning validate' without options; a workflow with errors is not drawn. Of a
    snapshot, and of what 'planning run --json' prints, the workflow is drawn as far as it was run.
    """
    workflow = _workflow_in(read_bytes(plan, "WORKFLOW"), plan)
    if form is GraphFormat.TREE or (form is None and is_terminal(sys.stdout)):
        color = wants_color(sys.stdout)
        text = tree_text(workflow, width=columns(sys.stdout), color=color, ascii_only=is_ascii(sys.stdout))
        typer.echo(text, nl=False, color=color)
    else:
        _print_mermaid(workflow)


def _workflow_in(data: bytes, source: str | None) -> Workflow:
    """The workflow in the bytes of a file, or that of the run in them."""
    from planning.cli.kinds import kind_of, refuse_other
    from planning.cli.validate import print_report
    from planning.workflow.validate import validate_workflow

    report = validate_workflow(data)
    if report.ok:
        return report.workflow
    if kind_of(data) != "snapshot":
        refuse_other(data, source, "a workflow", "workflow")
        print_report(report, source, err=True)
        raise typer.Exit(1)
    from planning.cli.loading import session_of
    from planning.workflow.model import Workflow
    from planning.workflow.run.records import register_workflow

    session = session_of(data, source)
    register_workflow(session)
    workflow = session.select_latest(Workflow)
    if workflow is None:
        raise Refused(f"{name_of(source)} holds no workflow run; 'planning show' shows its plan")
    return workflow


def _print_mermaid(workflow: Workflow) -> None:
    from planning.workflow.drawing import MOST_CHARACTERS, MOST_EDGES, mermaid

    text = mermaid(workflow)
    typer.echo(text, nl=False)
    edges = sum(len(set(step.depends_on)) for step in workflow.steps)
    if edges > MOST_EDGES or len(text) > MOST_CHARACTERS:
        typer.echo(
            f"planning: the chart has {edges:,} edges and {len(text):,} characters; by default Mermaid draws"
            f" {MOST_EDGES:,} and {MOST_CHARACTERS:,}, so raise its maxEdges and maxTextSize",
            err=True,
        )


def tree_text(
    workflow: Workflow, *, width: int | None = None, color: bool = False, ascii_only: bool = False
) -> str:
    """The tree of a workflow as lines of text, below its goal and how far it is.

    Nothing in the workflow can act on a terminal. In a terminal a step takes as many lines as its id, what it
    calls and what it waits for need; only its description is cut.

    Args:
        workflow: A valid workflow.
        width: The columns of the terminal; None for lines of any length.
        color: Whether to colour it.
        ascii_only: Whether to draw with ASCII alone; texts stay as they are.
    """
    from planning.workflow.drawing import tree_lines

    pen = _Pen(None if width is None else max(width, _NARROWEST), color, ascii_only)
    levels = _LEVELS if pen.width is None else pen.width // _LEVEL
    lines = [
        *pen.head(workflow),
        *(text for line in tree_lines(workflow, levels=levels) for text in pen.step(line)),
    ]
    return "\n".join(lines) + "\n"


@attrs.frozen
class _Pen:
    """What all lines of one tree have in common.

    Attributes:
        width: The columns of the terminal; None for lines of any length.
        color: Whether to colour it.
        ascii_only: Whether to draw with ASCII alone.
    """

    width: int | None
    color: bool
    ascii_only: bool

    def head(self, workflow: Workflow) -> Iterator[str]:
        """The goal, how many steps there are, and in which states: with the marks of these states."""
        from planning.workflow.drawing import state_of

        if goal := workflow.goal.strip():
            yield from (self._paint(line, "bold") for line in self._wrapped(one_line(goal)))
        text = count(len(workflow.steps), "step")
        states = Counter(map(state_of, workflow.steps))
        if set(states) - {"pending"}:
            # A mark, its number and its words stay on one line.
            counts = (
                f"{self._mark(_MARK_OF[each])} {states[each]:,} {each}" for each in _MARK_OF if states[each]
            )
            text += ": " + ", ".join(each.replace("_", " ").replace(" ", _STAYS) for each in counts)
        yield from (line.replace(_STAYS, " ") for line in self._wrapped(text))
        if workflow.steps:
            yield ""

    def step(self, line: TreeLine) -> Iterator[str]:
        """One step: its id, what it is for, what it calls, and what else it waits for."""
        from planning.workflow.drawing import called, state_of

        state = _MARK_OF[state_of(line.step)]
        lead, below = (self._lead(each) for each in (line.lead, line.below))
        parts = [
            (one_line(line.step.step_id), "bold"),
            (self._purpose(line), ""),
            (one_line(called(line.step)), "cyan"),
        ]
        if line.after:
            parts.append(("after " + ", ".join(map(one_line, line.after)), "yellow"))
        room = None if self.width is None else max(1, self.width - len(lead) - 2)
        rows = self._rows([(text, style) for text, style in parts if text], room)
        dim = self._paint(lead, "dim") + self._paint(self._mark(state), MARKS[state][2]) + " "
        for row in rows:
            yield dim + row
            dim = self._paint(below, "dim") + "  "

    def _rows(self, parts: list[tuple[str, str]], room: int | None) -> Iterator[str]:
        """The parts beside each other, on as many lines as they need."""
        between = " - " if self.ascii_only else " · "
        row, used = "", 0
        for text, style in parts:
            for index, piece in enumerate(wrapped(text, room)):
                wide = _width(piece)
                joint = between if used and index == 0 else ""
                if used and (index > 0 or (room is not None and used + len(joint) + wide > room)):
                    yield row
                    row, used, joint = "", 0, ""
                row += self._paint(joint, "dim") + self._paint(piece, style)
                used += len(joint) + wide
        yield row

    def _purpose(self, line: TreeLine) -> str:
        """The description of a step; in a terminal what fits beside its id, or on a line of its own."""
        text = one_line(line.step.description[:1_000].strip())
        if self.width is None:
            return one_line(line.step.description.strip())
        room = max(1, self.width - len(line.lead) - 2)
        return text if _width(text) <= room else _cut(text, room, "..." if self.ascii_only else "…")

    def _wrapped(self, text: str) -> list[str]:
        return [text] if self.width is None else list(wrapped(text, self.width))

    def _lead(self, lead: str) -> str:
        return lead.translate(_ASCII_LEADS) if self.ascii_only else lead

    def _mark(self, state: str) -> str:
        return MARKS[state][1 if self.ascii_only else 0]

    def _paint(self, text: str, style: str) -> str:
        return painted(text, style, color=self.color)


def _width(text: str) -> int:
    from rich.cells import cell_len

    return cell_len(text)


def _cut(text: str, width: int, tail: str) -> str:
    from rich.cells import set_cell_size

    return set_cell_size(text, max(0, width - len(tail))).rstrip() + tail
