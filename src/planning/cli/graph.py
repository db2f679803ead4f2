"""``planning graph``: a workflow as Mermaid for a page, or as a tree for a person in a terminal."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping
from typing import Annotated, Final, Literal

import typer

from planning.cli.arguments import WorkflowFile
from planning.cli.source import kind_of, name_of, read_bytes, refuse_other
from planning.cli.terminal import MARKS, count, is_ascii, is_terminal, painted, wants_color
from planning.cli.usage import Refused
from planning.cli.validate import print_report
from planning.errors import cut, one_line
from planning.graph import Graph
from planning.observe.steps import RunSteps
from planning.workflow.drawing import State, called, mermaid, states_in
from planning.workflow.model import Workflow
from planning.workflow.validate import validate_workflow

# \b keeps a paragraph as it is written.
GRAPH_HELP: Final = """\b
Examples:
  planning graph report.json
  planning graph report.json --format mermaid > report.mmd
  my-agent | planning graph - | mmdc -i - -o report.svg
"""
_ORDER: Final = ("completed", "skipped", "in_progress", "failed", "blocked", "stopped", "pending")
_LONGEST: Final = 100
_DEEPEST: Final = 20


def graph(
    file: WorkflowFile = None,
    *,
    form: Annotated[
        Literal["tree", "mermaid"] | None,
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

    It is checked first, as by 'planning validate' without options; a workflow with errors is not drawn. For a
    snapshot, and for what 'planning run --json' prints, the workflow is drawn as far as it was run.
    """
    steps = _steps_in(read_bytes(file, "WORKFLOW"), file)
    if form == "tree" or (form is None and is_terminal(sys.stdout)):
        color = wants_color(sys.stdout)
        text = graph_text(steps.workflow, steps.states, color=color, ascii_only=is_ascii(sys.stdout))
        typer.echo(text, nl=False, color=color)
    else:
        typer.echo(mermaid(steps.workflow, steps.states), nl=False)


def _steps_in(data: bytes, source: str | None) -> RunSteps:
    """The steps of the workflow in the bytes of a file, or of the run in them."""
    report = validate_workflow(data)
    if report.ok:
        return RunSteps(report.workflow)
    if kind_of(data) != "snapshot":
        refuse_other(data, source, "a workflow", "workflow")
        print_report(report, source, err=True)
        raise typer.Exit(1)
    from planning.cli.opening import session_of  # takes a moment to load

    steps = RunSteps.of(session_of(data, source))
    if steps is None:
        raise Refused(f"{name_of(source)} holds no workflow run; 'planning show' shows its plan")
    steps.stop()  # nothing works on a snapshot
    return steps


def graph_text(
    workflow: Workflow,
    states: Mapping[str, State] | None = None,
    *,
    color: bool = False,
    ascii_only: bool = False,
) -> str:
    """A workflow as lines of text: its goal, how far it is, and each step below and right of those before it.

    Nothing in the workflow can act on a terminal.
    """
    states = states_in(workflow) if states is None else states
    goal, counts = workflow.goal.strip(), Counter(states.values())
    head = count(len(workflow.steps), "step")
    if set(counts) - {"pending"}:
        tally = (f"{counts[state]:,} {state.replace('_', ' ')}" for state in _ORDER if counts[state])
        head += f": {', '.join(tally)}"
    lines = [*([painted(one_line(goal), "bold", color=color)] if goal else []), head]
    steps = {step.step_id: step for step in workflow.steps}
    for step_id, level in Graph({key: steps[key].depends_on for key in steps}).levels.items():
        step = steps[step_id]
        *marks, style = MARKS[states[step_id]]
        purpose = one_line(step.description.strip())
        parts = [
            (one_line(step_id), "bold"),
            (cut(purpose, _LONGEST), ""),
            (one_line(called(step)), "cyan"),
            ("after " + ", ".join(map(one_line, step.depends_on)) if step.depends_on else "", "yellow"),
        ]
        shown = [painted(text, look, color=color) for text, look in parts if text]
        mark = "  " * min(level, _DEEPEST) + painted(marks[ascii_only], style, color=color)
        lines.append(f"{mark} {(' - ' if ascii_only else ' · ').join(shown)}")
    return "\n".join(lines) + "\n"
