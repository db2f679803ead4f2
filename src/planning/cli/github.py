"""A report as workflow commands: what GitHub shows beside the lines of a file."""

from __future__ import annotations

import attrs

from planning.cli.printable import printable
from planning.workflow.findings import Finding
from planning.workflow.reports.report import Report
from planning.workflow.reports.wording import sentence

__all__ = ["github_text"]


def github_text(report: Report, file: str | None) -> str:
    """A workflow command for each finding, one a line; empty where there are none.

    Args:
        report: What was found.
        file: The file from the root of the repository; None where the plan stands in no file, and
            a place in it is no place in the repository.
    """
    return "\n".join(_command(finding, file) for finding in (*report.errors, *report.warnings))


def _command(finding: Finding, file: str | None) -> str:
    properties = [f"title={_property(finding.code)}"]
    said = sentence(finding)
    if file is not None:
        place = [f"file={_property(file)}"]
        if finding.line is not None:
            place += [f"line={finding.line}", f"col={finding.column}"]
            said = sentence(attrs.evolve(finding, line=None))  # the annotation stands there
        properties = [*place, *properties]
    return f"::{finding.severity} {','.join(properties)}::{_data(said)}"


def _data(text: str) -> str:
    text = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return printable(text)


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
