"""The result of checking a workflow, in the forms that its readers need."""

from __future__ import annotations

from typing import Any

import attrs

from planning.reading import Source
from planning.workflow.findings import Finding
from planning.workflow.model import Workflow
from planning.workflow.reports.advice import prompt_text
from planning.workflow.reports.response import response_of
from planning.workflow.reports.terminal import rendered


@attrs.frozen
class Report:
    """All findings in a workflow, each once and with its place.

    Attributes:
        errors: The errors, in the order of the document.
        warnings: The warnings, which do not make it invalid, in the order of the document.
        workflow: The workflow, when there are no errors; otherwise the JSON value that could be
            parsed, or None.
        parsed_plan: The steps as far as they could be parsed.
        source: The original text; None where the workflow came parsed.
    """

    errors: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()
    workflow: Workflow | Any = attrs.field(default=None, hash=False)
    parsed_plan: list[Any] = attrs.field(factory=list, hash=False)
    source: Source | None = attrs.field(default=None, eq=False, repr=False)

    @property
    def ok(self) -> bool:
        """Whether the workflow has no errors."""
        return not self.errors

    def to_dict(self) -> dict[str, Any]:
        """The report as the response of the validation handler; every key is always there.

        It can be written as JSON whenever ``parsed_plan`` can.
        """
        return response_of(self.errors, self.warnings, self.parsed_plan)

    def to_prompt(self) -> str:
        """What a model gets in order to repair its workflow: every problem, one a line, in plain ASCII.

        At most 40 findings are written out; then it says how many more there are.
        """
        return prompt_text(self.errors, self.warnings)

    def render(self, *, color: bool = False, name: str = "workflow", width: int | None = None) -> str:
        """What a person reads in a terminal: the source line of each finding with carets under the place.

        At most 100 findings are shown; then it says how many more there are. Nothing in the workflow can
        act on the terminal.

        Args:
            color: Whether to colour it with ANSI escape sequences; without, it holds none.
            name: What the workflow is called, such as its file's name.
            width: The columns that a source line is cut to, around the place; 100 where it is None.
        """
        steps = len(self.workflow.steps) if isinstance(self.workflow, Workflow) else None
        return rendered(
            self.errors, self.warnings, self.source, steps=steps, color=color, name=name, width=width
        )
