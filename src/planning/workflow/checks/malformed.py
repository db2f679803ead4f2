"""The correct form of a malformed reference, exactly where it can be guessed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from planning.workflow.checks.overview import Overview
from planning.workflow.references import OUTPUT, Reference, iter_references

__all__ = ["FOREIGN_MARK", "foreign_forms", "right_form"]

FOREIGN_MARK = re.compile(r"[<#]|\{\{|\$(?!\{)")
"""What a reference in the notation of another format begins with."""

_LONGEST = 200
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
    if _VARIABLE.fullmatch(inner) and inner not in overview.places:
        return f"{general}; $${{{inner}}} is plain text"
    meant = inner.strip()
    is_plain = len(meant) <= _LONGEST and meant.isascii() and meant.isprintable()
    step_id = _step_in(meant, overview) if is_plain else None
    if step_id is None or step_id == own:
        return general
    form = _with_output(step_id, meant[len(step_id) :], overview)
    return f"write ${{{form}}}" if _is_read(form, overview) else general


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
