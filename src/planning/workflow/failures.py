"""What a run refuses, and what a step fails with."""

from __future__ import annotations

from dataclasses import dataclass

from planning.tools.errors import SORRY, ErrorKind, ToolError

__all__ = ["StepError", "StepFailed", "WorkerLost", "WorkflowError", "WorkflowLocked"]


class WorkflowError(ToolError, ValueError):
    """A workflow cannot be run or changed so; nothing was begun. The text says what to mend."""


class WorkflowLocked(WorkflowError):
    """The workflow may not be changed: its ``can_modify`` is False."""


@dataclass(slots=True, frozen=True)
class StepError:
    """Why a step failed.

    Attributes:
        message: What went wrong, for whoever plans: the text of an exception is in it only where that
            was raised to be read.
        user_message: What a person may be told.
        code: A stable word, as in ``ErrorKind``; or ``missing_value``, ``not_sent``, ``too_large``,
            ``worker_lost``, ``interrupted``.
        cause: The text of the exception behind it, for the developer's eyes; None where there is none,
            and always for a tool with private data.
    """

    message: str
    user_message: str = SORRY
    code: str = ErrorKind.TOOL.value
    cause: str | None = None

    def __str__(self) -> str:
        return self.message


class StepFailed(ToolError):
    """A step fails for a reason that lies outside of its tool.

    Attributes:
        code: See ``StepError``.
    """

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = str(code)

    @property
    def error(self) -> StepError:
        """The same as a value."""
        return StepError(self.message, SORRY, self.code)


class WorkerLost(StepFailed):
    """The worker that ran a step is gone, and nobody knows what came of the step."""

    def __init__(self, message: str = "the worker was lost", code: str = "worker_lost") -> None:
        super().__init__(message, code)
