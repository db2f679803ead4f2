"""The errors of runs and of steps."""

from __future__ import annotations

from dataclasses import dataclass

from planning.errors import ToolError
from planning.tools.errors import SORRY, ErrorKind


class WorkflowError(ToolError, ValueError):
    """A workflow cannot be run or changed like this; nothing was started. The message says what to fix."""


class WorkflowLocked(WorkflowError):
    """The workflow may not be changed: its ``can_modify`` is False."""


@dataclass(slots=True, frozen=True)
class StepFailure:
    """Why a step failed.

    Attributes:
        message: What went wrong, for the model: it has the text of an exception only where that was raised
            for the model to read.
        user_message: What to show to the user.
        code: A stable word, as in ``ErrorKind``; or ``missing_value``, ``not_sent``, ``too_large``,
            ``worker_lost``, ``interrupted``.
        cause: The text of the exception behind it, for the developer; None if there is none, and always
            for a tool with private data.
    """

    message: str
    user_message: str = SORRY
    code: str = ErrorKind.TOOL.value
    cause: str | None = None

    def __str__(self) -> str:
        return self.message


class StepFailed(ToolError):
    """A step failed for a reason outside its tool.

    Attributes:
        code: See ``StepFailure``.
    """

    def __init__(self, message: str, code: str) -> None:
        super().__init__(message)
        self.code = str(code)

    @property
    def error(self) -> StepFailure:
        """The failure as a value."""
        return StepFailure(self.message, SORRY, self.code)


class WorkerLost(StepFailed):
    """The worker that ran a step is gone, and the outcome of the step is unknown."""

    def __init__(self, message: str = "the worker was lost", code: str = "worker_lost") -> None:
        super().__init__(message, code)
