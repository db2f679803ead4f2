"""The right form of what was meant as a reference, to the letter where it can be guessed."""

from __future__ import annotations

import re

from planning.workflow.checks.overview import Overview
from planning.workflow.references import OUTPUT, PROMPT, Reference, parse_references

__all__ = ["right_form"]

_LONGEST = 200
_PRINTED = re.compile(r"[ -~]+")
_END = re.compile(r"[.\[]|\Z")
_PART = re.compile(r"[^.\[]+")
_OUTPUTS = ("output",)


def right_form(inner: str, overview: Overview, own: str | None) -> str:
    """What to write instead of a text between braces that is no reference.

    Args:
        inner: The text, without the braces.
        overview: The plan that it stands in.
        own: The id of the step that it stands in, whose output cannot be meant.
    """
    general = "write ${user_prompt}, or ${STEP.output.FIELD} with the id of a step for STEP"
    if len(inner) > _LONGEST:
        return general
    guess = _guess(inner.strip(), overview)
    if guess is None or not _PRINTED.fullmatch(guess):
        return general
    text = "${" + guess + "}"
    read = parse_references(text, overview.ids)[0]
    is_right = isinstance(read, Reference) and (read.step_id is None or read.step_id != own)
    return f"write {text}" if is_right else general


def _guess(inner: str, overview: Overview) -> str | None:
    """What was meant, between the braces; whether that is a reference is not known yet."""
    if _is_read(inner, overview):
        return inner  # but for spaces around it
    for end in sorted((found.start() for found in _END.finditer(inner)), reverse=True):
        if inner[:end] in overview.places:
            return _with_output(inner[:end], inner[end:], overview)
    first = _END.split(inner, maxsplit=1)[0].strip()
    rest = inner[len(first) :]
    near = overview.speller.nearest(first, (PROMPT, *overview.known))
    if near == PROMPT:
        return PROMPT
    return None if near is None else _with_output(near, rest, overview)


def _is_read(inner: str, overview: Overview) -> bool:
    return isinstance(parse_references("${" + inner + "}", overview.ids)[0], Reference)


def _with_output(step_id: str, rest: str, overview: Overview) -> str:
    """The reference to a step's output, with as much of the path as can be kept."""
    part = _PART.match(rest, 1)
    if part is not None and overview.speller.nearest(part[0], _OUTPUTS):
        rest = rest[part.end() :]  # .outputs, .Output
    kept = rest.rstrip(".[ ")
    kept = re.sub(r"\.([0-9]{1,15})(?=[.\[]|$)", r"[\1]", kept)  # items.0, as other languages write it
    return step_id + OUTPUT + kept
