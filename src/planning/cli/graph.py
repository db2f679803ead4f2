"""``planning graph``: a workflow as Mermaid for a page, or as a tree for a person in a terminal."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Final

import typer

from planning.cli.source import WorkflowFile, name_of, read_bytes
from planning.cli.terminal import MARKS, count, is_ascii, is_terminal, painted, wants_color
from planning.cli.usage import EXIT_CODES, Refused
from planning.errors import one_line
from planning.graph import Graph

if TYPE_CHECKING:
    from planning.workflow.drawing import State as WorkflowState
    from planning.workflow.model import Workflow

# \b keeps a paragraph as it is written.
GRAPH_HELP: Final = f"""\b
Examples:
  planning graph report.json
  planning graph report.json --format mermaid > report.mmd
  my-agent | planning graph - | mmdc -i - -o report.svg

{EXIT_CODES}"""
# state -> how it is marked
_MARK_OF: Final[Mapping[WorkflowState, str]] = MappingProxyType({
    "completed": "done", "skipped": "skipped", "in_progress": "running", "failed": "failed",
    "pending": "pending",
})  # fmt: skip
_LONGEST: Final = 100
_DEEPEST: Final = 20


class GraphFormat(StrEnum):
    """What a workflow is drawn as."""

    TREE = "tree"
    MERMAID = "mermaid"


def graph(
    file: WorkflowFile = None,
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
    workflow = _workflow_in(read_bytes(file, "WORKFLOW"), file)
    if form is GraphFormat.TREE or (form is None and is_terminal(sys.stdout)):
        color = wants_color(sys.stdout)
        typer.echo(graph_text(workflow, color=color, ascii_only=is_ascii(sys.stdout)), nl=False, color=color)
    else:
        from planning.workflow.drawing import mermaid

        typer.echo(mermaid(workflow), nl=False)


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


def graph_text(workflow: Workflow, *, color: bool = False, ascii_only: bool = False) -> str:
    """A workflow as lines of text: its goal, how far it is, and each step below and right of those before it.

    Nothing in the workflow can act on a terminal.

    Args:
        workflow: A valid workflow.
        color: Whether to colour it.
        ascii_only: Whether to draw with ASCII alone; texts stay as they are.
    """
    from planning.workflow.drawing import called, state_of

    states = Counter(map(state_of, workflow.steps))
    head = count(len(workflow.steps), "step")
    if set(states) - {"pending"}:
        head += ": " + ", ".join(f"{states[each]:,} {each}" for each in _MARK_OF if states[each])
    lines = [painted(one_line(workflow.goal.strip()), "bold", color=color)] if workflow.goal.strip() else []
    lines.append(head.replace("in_progress", "in progress"))
    steps = {step.step_id: step for step in workflow.steps}
    for step_id, level in Graph({key: steps[key].depends_on for key in steps}).levels.items():
        step = steps[step_id]
        *marks, style = MARKS[_MARK_OF[state_of(step)]]
        purpose = one_line(step.description.strip())
        parts = [
            (one_line(step_id), "bold"),
            (purpose if len(purpose) <= _LONGEST else f"{purpose[: _LONGEST - 3]}...", ""),
            (one_line(called(step)), "cyan"),
            ("after " + ", ".join(map(one_line, step.depends_on)) if step.depends_on else "", "yellow"),
        ]
        shown = [painted(text, look, color=color) for text, look in parts if text]
        mark = "  " * min(level, _DEEPEST) + painted(marks[ascii_only], style, color=color)
        lines.append(f"{mark} {(' - ' if ascii_only else ' · ').join(shown)}")
    return "\n".join(lines) + "\n"
