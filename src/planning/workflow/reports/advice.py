"""The report as a model reads it: one problem per line, and what to send back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from planning.workflow.findings import Finding
from planning.workflow.reports.wording import item, listed, place

__all__ = ["prompt_text"]

_MOST = 40


def prompt_text(errors: Sequence[Finding], warnings: Sequence[Finding]) -> str:
    """What a model reads about its workflow.

    Args:
        errors: In the order of the document.
        warnings: In the order of the document.
    """
    if not (errors or warnings):
        return "The workflow was accepted."
    shown = errors[:_MOST]
    also = warnings[: _MOST - len(shown)]
    lines: list[str] = []
    if errors:
        lines.append(
            f"The workflow was not accepted: {listed(len(errors), len(warnings))}."
            " Send the whole corrected workflow as JSON, without any other text."
        )
        lines.extend(_lines(shown))
        if also:
            lines.append("Warnings:")
    else:
        lines.append(f"The workflow was accepted, with {listed(0, len(warnings))}:")
    lines.extend(_lines(also))
    left = listed(len(errors) - len(shown), len(warnings) - len(also), more="more ")
    if left:
        lines.append(f"...and {left}.")
    return "\n".join(lines)


def _lines(findings: Sequence[Finding]) -> Iterator[str]:
    """A line for each problem; the same one at several places, and several at one, are one line."""
    places: dict[tuple[str, str], list[str]] = {}
    for finding in findings:
        places.setdefault((finding.message, finding.hint), []).append(place(finding))
    problems: dict[str, list[str]] = {}
    for words, found in places.items():
        problems.setdefault("; ".join(dict.fromkeys(filter(None, found))), []).append(item(words))
    for at, messages in problems.items():
        yield f"- {at}: {'. '.join(messages)}" if at else f"- {'. '.join(messages)}"
