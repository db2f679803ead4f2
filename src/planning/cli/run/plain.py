"""A run as lines of text: one for each change of a step, and what came of it all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from planning.cli.printable import one_line, printable
from planning.cli.run.progress import Progress, StepView
from planning.workflow.failures import StepError
from planning.workflow.run.result import WorkflowResult

__all__ = ["begin_line", "change_line", "end_lines", "seconds_text", "stopping_text"]

_WIDEST_ID: Final = 24
_STATE: Final = 8  # "retrying"
_MINUTE: Final = 60


def begin_line(progress: Progress) -> str:
    """What is run."""
    count = len(progress.steps)
    told = f"{count} step{'' if count == 1 else 's'}"
    if progress.before:
        told += f", {progress.before} done before"
    return f"{one_line(progress.goal)} ({told})" if progress.goal else told


def change_line(progress: Progress, view: StepView) -> str:
    """What became of one step."""
    is_again = view.state == "running" and view.attempt > 1
    width = min(_WIDEST_ID, progress.widest_id)
    parts = [f"{'retrying' if is_again else view.state:<{_STATE}}  {printable(view.step_id):<{width}}"]
    if view.state == "running":
        parts.append(view.note or one_line(view.description))
    else:
        parts += [seconds_text(view.seconds)] if view.seconds is not None else []
        parts += [one_line(view.note)] if view.note else []
    return "  ".join(parts).rstrip()


def end_lines(progress: Progress, result: WorkflowResult | None) -> Iterator[str]:
    """What came of a run.

    Args:
        progress: Its steps.
        result: What it gave back; None where it was stopped.
    """
    if result is not None:
        for step_id, error in result.errors.items():
            yield from _error_lines(step_id, error)
        for warning in result.warnings:
            yield f"warning: {one_line(warning)}"
    status = "stopped" if result is None else result.status
    yield f"{status}: {progress.tally()}, in {seconds_text(progress.seconds)}"


def stopping_text(running: int) -> str:
    """What to say when a run is about to stop, and so many steps still run."""
    steps = f"{running} running step{'' if running == 1 else 's'}"
    return f"stopping: waiting for {steps}; press Ctrl-C again to stop at once"


def seconds_text(seconds: float) -> str:
    """A time for a person: ``0.3 s``, ``12 s``, ``3:07 min``."""
    if seconds < _MINUTE:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), _MINUTE)
    if minutes < _MINUTE:
        return f"{minutes}:{rest:02} min"
    hours, minutes = divmod(minutes, _MINUTE)
    return f"{hours}:{minutes:02} h"


def _error_lines(step_id: str, error: StepError) -> Iterator[str]:
    yield f"error: step {printable(step_id)}: {one_line(error.message)}"
    if error.cause is not None:
        yield f"  cause: {one_line(error.cause)}"
