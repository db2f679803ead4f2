"""The right form of what was meant as a reference, to the letter where it can be guessed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from planning.workflow.checks.overview import Overview
from planning.workflow.references import OUTPUT, PROMPT, Reference, iter_references

__all__ = ["FOREIGN_MARK", "foreign_forms", "right_form"]

FOREIGN_MARK = re.compile(r"[<#]|\{\{|\$(?!\{)")
"""What a reference in the notation of another format begins with."""

_LONGEST = 200
_PRINTED = re.compile(r"[ -~]+")
_END = re.compile(r"[.\[]|\Z")
_PART = re.compile(r"[^.\[]+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OUTPUTS = ("output",)
# {{step.output}}, <step.output>, $step.output and #step
_FOREIGN = re.compile(
    r"\{\{([^{}]{1,200}+)\}\}|<([^<>\s]{1,200}+)>"
    r"|(?<![\w$])\$([\w-]++(?:\.[\w-]++|\[[0-9]++\])*+)|(?<!\w)#([\w-]++)"
)
_ONLY_WHOLE = {2, 3}  # <b> and $a may be anything, unless they are all of a text


def right_form(inner: str, overview: Overview, own: str | None) -> str:
    """What to write instead of a text between braces that is not a reference.

    Args:
        inner: The text, without the braces.
        overview: The plan that it is in.
        own: The id of the step that it is in, whose output cannot be meant.
    """
    general = "write ${user_prompt}, or ${STEP.output.FIELD} with the id of a step for STEP"
    if len(inner) > _LONGEST:
        return general
    guess = _guess(inner.strip(), overview)
    if guess is None and _VARIABLE.fullmatch(inner):
        return f"{general}; $${{{inner}}} is plain text"
    if guess is None or not _PRINTED.fullmatch(guess):
        return general
    text = "${" + guess + "}"
    read = next(iter_references(text, overview.ids))
    is_right = isinstance(read, Reference) and (read.step_id is None or read.step_id != own)
    return f"write {text}" if is_right else general


def _guess(inner: str, overview: Overview) -> str | None:
    """What was meant, between the braces; whether that is a reference is not known yet."""
    if _is_read(inner, overview):
        return inner  # but for spaces around it
    step_id = _step_in(inner, overview)
    if step_id is not None:
        return _with_output(step_id, inner[len(step_id) :], overview)
    first = _END.split(inner, maxsplit=1)[0].strip()
    rest = inner[len(first) :]
    near = overview.speller.nearest(first, (PROMPT, *overview.known))
    if near == PROMPT:
        return PROMPT
    return None if near is None else _with_output(near, rest, overview)


def foreign_forms(text: str, overview: Overview, own: str | None) -> Iterator[tuple[int, int, str]]:
    """The start, the end and the right form of each reference to a step in another format's notation.

    Args:
        text: A text.
        overview: The plan that it is in.
        own: The id of the step that it is in, whose output cannot be meant.
    """
    for found in _FOREIGN.finditer(text):
        group = found.lastindex or 0
        inner = found[group].strip()
        step_id = _step_in(inner, overview)
        if step_id is None or step_id == own:
            continue
        rest = inner[len(step_id) :]
        if rest or group not in _ONLY_WHOLE or found[0] == text.strip():
            form = _with_output(step_id, rest, overview)
            kept = form if _is_read(form, overview) else step_id + OUTPUT
            yield *found.span(), "${" + kept + "}"


def _step_in(inner: str, overview: Overview) -> str | None:
    """The longest id of a step that a text begins with."""
    ends = sorted((found.start() for found in _END.finditer(inner)), reverse=True)
    return next((inner[:end] for end in ends if inner[:end] in overview.places), None)


def _is_read(inner: str, overview: Overview) -> bool:
    return isinstance(next(iter_references("${" + inner + "}", overview.ids)), Reference)


def _with_output(step_id: str, rest: str, overview: Overview) -> str:
    """The reference to a step's output, with as much of the path as can be kept."""
    part = _PART.match(rest, 1)
    if part is not None and overview.speller.nearest(part[0], _OUTPUTS):
        rest = rest[part.end() :]  # .outputs, .Output
    kept = rest.rstrip(".[ ")
    kept = re.sub(r"\.([0-9]{1,15})(?=[.\[]|$)", r"[\1]", kept)  # items.0, as other languages write it
    return step_id + OUTPUT + kept
