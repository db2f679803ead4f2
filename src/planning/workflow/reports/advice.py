"""The report as a model reads it: one problem per line, and what to send back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from planning.workflow.findings import Finding
from planning.workflow.reports.wording import item, listed, place

_MOST = 40  # problems
_LONG = 1_000  # characters: beyond them
_ALIKE = 3  # problems of one kind are enough, and always places of one problem


def prompt_text(errors: Sequence[Finding], warnings: Sequence[Finding]) -> str:
    """What a model reads about its workflow; of many problems of one kind the first three, and a count."""
    if not (errors or warnings):
        return "The workflow was accepted."
    text = _text(errors, warnings, _MOST)
    return text if len(text) <= _LONG else _text(errors, warnings, _ALIKE, " like these")


def _text(errors: Sequence[Finding], warnings: Sequence[Finding], alike: int, like: str = "") -> str:
    wrong, errors_left = _lines(errors, _MOST, alike)
    also, warnings_left = _lines(warnings, _MOST - len(wrong), alike)
    if errors:
        count = listed(len(errors), len(warnings))
        lines = [
            f"The workflow was not accepted: {count}."
            " Send the whole corrected workflow as JSON, without any other text.",
            *wrong,
            *(["Warnings:"] if also else []),
        ]
    else:
        lines = [f"The workflow was accepted, with {listed(0, len(warnings))}:"]
    left = listed(errors_left, warnings_left, more="more ")
    return "\n".join([*lines, *also, *([f"...and {left}{like}."] if left else [])])


def _lines(findings: Sequence[Finding], most: int, alike: int) -> tuple[list[str], int]:
    """A line for each problem, and how many findings are on none.

    The same problem at several places, and several problems at one, are one line.
    """
    problems: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        problems.setdefault((finding.message, finding.hint), []).append(finding)
    kinds = Counter[str]()
    lines: dict[str, list[str]] = {}
    left = len(findings)
    for words, found in problems.items():
        code = found[0].code
        if kinds.total() < most and kinds[code] < alike:
            kinds[code] += 1
            left -= len(found)
            lines.setdefault(_places(found), []).append(item(words))
    return [
        f"- {at}: {'. '.join(all_)}" if at else f"- {'. '.join(all_)}" for at, all_ in lines.items()
    ], left


def _places(found: Sequence[Finding]) -> str:
    places = list(dict.fromkeys(filter(None, map(place, found))))
    more = len(places) - _ALIKE
    return "; ".join(places[:_ALIKE] + [f"and {more} more place{'' if more == 1 else 's'}"] * (more > 0))
