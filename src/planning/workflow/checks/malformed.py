"""The correct form of a malformed reference, exactly where it can be guessed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from planning.workflow.checks.overview import Overview
from planning.workflow.references import OUTPUT, Reference, iter_references

FOREIGN_MARK = re.compile(r"[<#]|\{\{|(?<!\$)\{[^{}:,]{1,200}+\}|\$(?!\{)")
"""What a reference in the notation of another format begins with."""

_LONGEST = 200
_END = re.compile(r"[.\[]|\Z")
_PART = re.compile(r"[^.\[]+")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OUTPUTS = ("output",)
_RESULTS = ("output", "result", "json")  # behind a prefix
# {{step.output}}, {step.output}, $(step.output), <step.output>, $step.output, #step and <GENERATED>-step
_FOREIGN = re.compile(
    r"(?<!\$)\{\{([^{}]{1,200}+)\}\}|(?<![{$])\{([^{}:,]{1,200}+)\}|(?<!\$)\$\(([^()]{1,200}+)\)"
    r"|<([^<>\s]{1,200}+)>(?!-)|(?<![\w$])\$\.?([\w-]++(?:\.[\w-]++|\[[0-9]++\]|\[\"[^\"\n]{1,200}+\"\])*+)"
    r"|(?<!\w)#([\w-]++)|<GENERATED>-([\w-]++)"
)
_BRACES = 2
_ONLY_WHOLE = {_BRACES, 3, 4, 5}  # {m}, $(ls), <b> and $a may be anything, unless they are all of a text
# steps.STEP, tasks.STEP, $node["STEP"] and #STEP: what other formats write in front of an id
_PREFIX = re.compile(
    r"[#$@.]*(?:(?:steps?|tasks?|nodes?|jobs?|needs|outputs?|results?)(?=[.\[(]))?"
    r"(?:\.|[\[(]([\"'])(.+?)\1[\])])?",
    re.IGNORECASE,
)


def right_form(inner: str, overview: Overview, own: str | None) -> str:
    """What to write instead of a text between braces, which does not mean the step that it is in."""
    general = "write ${user_prompt}, or ${STEP.output.FIELD} with the id of a step for STEP"
    if _VARIABLE.fullmatch(inner) and inner not in overview.places:
        return f"{general}; $${{{inner}}} is plain text"
    text = inner.strip("{} ")
    is_plain = len(text) <= _LONGEST and text.isascii() and text.isprintable()
    meant = _meant_by(text, overview) if is_plain else None
    if meant is None or meant[0] == own:
        return general
    step_id, rest, is_prefixed = meant
    form = _with_output(step_id, rest, overview, is_prefixed=is_prefixed)
    return f"write ${{{form}}}" if _is_read(form, overview) else general


def foreign_forms(text: str, overview: Overview, own: str | None) -> Iterator[tuple[int, int, str]]:
    """The start, the end and the right form of each reference to a step in another format's notation."""
    for found in _FOREIGN.finditer(text):
        group = found.lastindex or 0
        meant = _meant_by(found[group].strip(" #"), overview)
        if meant is None or meant[0] == own:
            continue
        step_id, rest, is_prefixed = meant
        # Code and prose have {a.b}; only {a.output.b} is a reference without more in front of it.
        is_sure = is_prefixed or (rest.startswith(OUTPUT) if group == _BRACES else bool(rest))
        if is_sure or group not in _ONLY_WHOLE or found[0] == text.strip():
            form = _with_output(step_id, rest, overview, is_prefixed=is_prefixed)
            kept = form if _is_read(form, overview) else step_id + OUTPUT
            yield *found.span(), "${" + kept + "}"


def _meant_by(text: str, overview: Overview) -> tuple[str, str, bool] | None:
    """The step that a text begins with, the path behind its id, and whether a prefix is in front of it."""
    found = _step_in(text, overview)
    if found is not None:
        return found, text[len(found) :], False
    prefix = _PREFIX.match(text)
    if prefix is None or not prefix[0]:
        return None
    rest = text[prefix.end() :]
    if prefix[2] in overview.places:
        return prefix[2], rest, True
    found = _step_in(rest, overview)
    return None if found is None else (found, rest[len(found) :], True)


def _step_in(inner: str, overview: Overview) -> str | None:
    """The longest id of a step that a text begins with."""
    ends = sorted((found.start() for found in _END.finditer(inner)), reverse=True)
    return next((inner[:end] for end in ends if inner[:end] in overview.places), None)


def _is_read(inner: str, overview: Overview) -> bool:
    return isinstance(next(iter_references("${" + inner + "}", overview.ids)), Reference)


def _with_output(step_id: str, rest: str, overview: Overview, *, is_prefixed: bool) -> str:
    """The reference to a step's output, with as much of the path as can be kept."""
    part = _PART.match(rest, 1)
    if part is not None and overview.speller.nearest(part[0], _RESULTS if is_prefixed else _OUTPUTS):
        rest = rest[part.end() :]  # .outputs, .Output, .results
    kept = rest.rstrip(".[ ")
    kept = re.sub(r"\.([0-9]{1,15})(?=[.\[]|$)", r"[\1]", kept)  # items.0, as other languages write it
    return step_id + OUTPUT + kept
