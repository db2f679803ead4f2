"""The semantic checks of a plan, all that a schema cannot express: names, dependencies, references."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from planning.errors import show
from planning.graph import written
from planning.reading import Found
from planning.workflow.checks.inputs import ToolInputs
from planning.workflow.checks.overview import Overview, named
from planning.workflow.codes import CODES, Severity
from planning.workflow.conditions import ConditionInvalid, check_condition
from planning.workflow.drafts import Draft
from planning.workflow.references import (
    MARK,
    OUTPUT,
    NoReference,
    Reference,
    parse_references,
    path_of,
    texts_in,
)

# What a reference in another program's notation begins with.
_FOREIGN_MARK = re.compile(r"[<#]|\{\{|\{(?<!\$\{)[^{}:,]{1,200}+\}|\$(?!\{)")

_LONGEST = 200
_MOST_FOREIGN = 20_000
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
_ONLY_WHOLE = {_BRACES, 3, 4, 5}  # {m}, $(ls), <b> and $a may be anything, unless they are all of the string
# steps.STEP, tasks.STEP, $node["STEP"] and #STEP: what other formats write in front of an id
_PREFIX = re.compile(
    r"[#$@.]*(?:(?:steps?|tasks?|nodes?|jobs?|needs|outputs?|results?)(?=[.\[(]))?"
    r"(?:\.|[\[(]([\"'])(.+?)\1[\])])?",
    re.IGNORECASE,
)


class _Undeclared(NamedTuple):
    """A reference to a step that is not among the dependencies; the graph decides how severe that is."""

    draft: Draft
    at: int
    target: int
    link: Any
    within: tuple[int, int]


class ReferenceChecks:
    """The findings about the references of the steps of one plan."""

    def __init__(self, overview: Overview) -> None:
        self._overview = overview
        self._undeclared: list[_Undeclared] = []
        self._forms: dict[tuple[str, str | None], str] = {}  # a mistake is seldom made once
        self._foreign = 0

    def of_step(self, at: int, draft: Draft, declared: set[str | None]) -> Iterator[Found]:
        """The findings about the references of one step by itself; ``declared`` is what it depends on."""
        overview, is_whole = self._overview, False
        for text, link in texts_in(draft.inputs):
            for reference in parse_references(text, overview.ids) if MARK in text else ():
                if isinstance(reference, NoReference):
                    yield self._malformed(draft, reference, text, link)
                    continue
                step_id, path, start, end = reference
                target = overview.places.get(step_id)
                if target is None or target == at:
                    yield from self._not_another(draft, step_id, link, (start, end))
                    continue
                if step_id not in declared and not is_whole:
                    declared, is_whole = self._find_declared(draft), True
                if step_id not in declared:
                    declared.add(step_id)  # once: adding it to the list mends all
                    self._undeclared.append(_Undeclared(draft, at, target, link, (start, end)))
                # The other step with this id may declare it.
                if path and not overview.declares(target, path[0]) and step_id not in overview.twins:
                    yield self._output(draft, target, str(path[0]), link, (start, end))
            if self._foreign < _MOST_FOREIGN and _FOREIGN_MARK.search(text):
                for start, end, form in _foreign_forms(text, overview, draft.step_id):
                    self._foreign += 1
                    message = f"{show(text[start:end])} names a step, but is plain text here"
                    hint = f"write {form}"
                    yield _place(draft, "foreign_reference", message, hint, link, (start, end))

    def _find_declared(self, draft: Draft) -> set[str | None]:
        """The ids that a step depends on; all if they cannot be read: what is missing is unknown then."""
        overview, declared = self._overview, set(draft.depends_on)
        if None in declared or not isinstance(draft.fields.get(draft.depends_field, []), list):
            return set(overview.places)
        # An unknown entry is a finding already; the step that it means does not count as missing.
        unknown = [str(each) for each in declared if each not in overview.places]
        return declared | {overview.nearest(each, overview.known) for each in unknown}

    def _malformed(self, draft: Draft, found: NoReference, text: str, link: Any) -> Found:
        within = (found.start, found.end)
        shown = show(text[found.start : found.end])
        if not found.is_closed:
            message, hint = f"{shown} has no closing brace", "write } after the reference"
            return _place(draft, "unclosed_reference", message, hint, link, within)
        if found.is_nested:
            message = f"another reference starts inside {shown}"
            hint = "close each reference with }; references cannot be nested"
        else:
            message = f"{shown} is not a reference"
            inner = text[found.start + 2 : found.end - 1]
            key = (inner, draft.step_id)
            hint = self._forms.get(key, "")
            if not hint:
                hint = self._forms[key] = _right_form(inner, self._overview, draft.step_id)
        return _place(draft, "malformed_reference", message, hint, link, within)

    def _not_another(
        self, draft: Draft, step_id: str | None, link: Any, within: tuple[int, int]
    ) -> Iterator[Found]:
        """A reference to the step itself, or to one that does not exist; none if it is to the prompt."""
        if step_id in self._overview.places:
            message = f"step {show(step_id)} refers to its own output"
            hint = "refer to a step that runs before it, or to ${user_prompt}"
            yield _place(draft, "self_reference", message, hint, link, within)
        elif step_id is not None and self._overview.is_missing(step_id):
            message = f"a reference to step {show(step_id)}, but no step has this id"
            hint = self._overview.suggest_step(step_id, draft)
            yield _place(draft, "unknown_reference", message, hint, link, within)

    def _output(self, draft: Draft, target: int, name: str, link: Any, within: tuple[int, int]) -> Found:
        """A reference to an output that its step does not declare."""
        step = self._overview.drafts[target]
        owner = f"outputs of {named(str(step.step_id))}"
        hint = self._overview.suggest(name, step.outputs, owner) if step.outputs else f"add it to the {owner}"
        message = f"step {show(step.step_id)} declares no output {show(name)}"
        return _place(draft, "undeclared_output", message, hint, link, within)

    def undeclared(self) -> Iterator[Found]:
        """The references to steps that are not among the dependencies, of all steps that were checked."""
        if not self._undeclared:
            return  # the graph is made when it is first asked
        pairs = [(each.at, each.target) for each in self._undeclared]
        waits = self._overview.graph.waits(pairs + [(target, at) for at, target in pairs])
        for each in self._undeclared:
            step_id, field = str(self._overview.drafts[each.target].step_id), each.draft.depends_field
            code, why = "undeclared_dependency", f"which is not in {field}"
            if waits[each.at, each.target]:
                code, why = "indirect_reference", "which this step depends on only through others"
            hint = f"add {named(step_id)} to {field}"
            if waits[each.target, each.at]:
                why = "which itself depends on this step"
                hint = "refer to a step that runs before this one, or reverse the dependency"
            message = f"a reference to step {show(step_id)}, {why}"
            yield _place(each.draft, code, message, hint, each.link, each.within)


def _place(draft: Draft, code: str, message: str, hint: str, link: Any, within: tuple[int, int]) -> Found:
    return draft.found(code, message, hint, (draft.inputs_field, *path_of(link)), within=within)


def _right_form(inner: str, overview: Overview, own: str | None) -> str:
    """A replacement for text between braces, which does not mean the step that it is in."""
    general = "write ${user_prompt}, or ${STEP.output.FIELD} with the id of a step for STEP"
    if _VARIABLE.fullmatch(inner) and inner not in overview.places:
        return f"{general}; $${{{inner}}} is plain text"
    text = inner.strip("{} ")
    is_plain = len(text) <= _LONGEST and text.isascii() and text.isprintable()
    meant = _resolve(text, overview) if is_plain else None
    if meant is None or meant[0] == own:
        return general
    step_id, rest, is_prefixed = meant
    form = _with_output(step_id, rest, overview, is_prefixed=is_prefixed)
    return f"write ${{{form}}}" if _is_read(form, overview) else general


def _foreign_forms(text: str, overview: Overview, own: str | None) -> Iterator[tuple[int, int, str]]:
    """The start, the end and the right form of each reference to a step in another program's notation."""
    for found in _FOREIGN.finditer(text):
        group = found.lastindex or 0
        meant = _resolve(found[group].strip(" #"), overview)
        if meant is None or meant[0] == own:
            continue
        step_id, rest, is_prefixed = meant
        # Code and prose have {a.b}; only {a.output.b} is a reference without more in front of it.
        is_sure = is_prefixed or (rest.startswith(OUTPUT) if group == _BRACES else bool(rest))
        if is_sure or group not in _ONLY_WHOLE or found[0] == text.strip():
            form = _with_output(step_id, rest, overview, is_prefixed=is_prefixed)
            kept = form if _is_read(form, overview) else step_id + OUTPUT
            yield *found.span(), "${" + kept + "}"


def _resolve(text: str, overview: Overview) -> tuple[str, str, bool] | None:
    """The step that a string begins with, the path behind its id, and whether a prefix is in front of it."""
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
    """The longest id of a step that a string begins with."""
    ends = sorted((found.start() for found in _END.finditer(inner)), reverse=True)
    return next((inner[:end] for end in ends if inner[:end] in overview.places), None)


def _is_read(inner: str, overview: Overview) -> bool:
    return isinstance(next(parse_references("${" + inner + "}", overview.ids)), Reference)


def _with_output(step_id: str, rest: str, overview: Overview, *, is_prefixed: bool) -> str:
    """The reference to a step's output, with as much of the path as can be kept."""
    part = _PART.match(rest, 1)
    if part is not None and overview.nearest(part[0], _RESULTS if is_prefixed else _OUTPUTS):
        rest = rest[part.end() :]  # .outputs, .Output, .results
    kept = rest.rstrip(".[ ")
    kept = re.sub(r"\.([0-9]{1,15})(?=[.\[]|$)", r"[\1]", kept)  # items.0, as other languages write it
    return step_id + OUTPUT + kept


Known = Mapping[str, Collection[str] | None]

_CALLS = frozenset({"type", "name", "agent", "tool"})
_MOST_KEPT = 20_000
_MOST_NAMED = 5
_ARTICLES = {"tool": "a tool", "handler": "a handler", "agent": "an agent"}
KINDS = tuple(_ARTICLES)
"""The names that a step may use."""


def check_steps(
    drafts: Sequence[Draft], known: Known | None = None, inputs: Mapping[str, ToolInputs] | None = None
) -> list[Found]:
    """Find every problem in the steps that a schema cannot express; never raises."""
    kept, counts = list[Found](), dict.fromkeys(Severity, 0)
    for each in _find(Overview(drafts), known or {}, inputs or {}):
        severity = CODES[each.code].severity
        counts[severity] += 1
        if counts[severity] <= _MOST_KEPT:
            kept.append(each)
        elif severity is Severity.ERROR:
            break
    return kept


def _find(overview: Overview, known: Known, inputs: Mapping[str, ToolInputs]) -> Iterator[Found]:
    references, twins, ids = ReferenceChecks(overview), overview.twins, overview.places.keys()
    for at, draft in enumerate(overview.drafts):
        if draft.inputs and draft.type is None and _CALLS.isdisjoint(draft.fields):
            yield _calls_nothing(draft)
        if "done_check" in draft.fields:
            yield from _condition(draft)
        names = known.get(draft.type or "")
        if names is not None and draft.name:
            if draft.name not in names:
                yield _unknown_name(draft, overview, known)
            elif draft.type == "tool" and draft.name in inputs:
                yield from inputs[draft.name].check(draft)
        if twins:
            yield from _duplicate(at, draft, overview)
        declared = set(draft.depends_on)
        is_plain = len(declared) == len(draft.depends_on) and draft.step_id not in declared
        if not (is_plain and declared <= ids):  # saves 5 % of the check of a large plan
            yield from _dependencies(draft, overview)
        if draft.inputs:
            yield from references.of_step(at, draft, declared)
    yield from _cycle(overview)
    yield from references.undeclared()


def _dependencies(draft: Draft, overview: Overview) -> Iterator[Found]:
    """The problems in the entries of one step's list of dependencies."""
    field, seen = draft.depends_field, set[str]()
    for at, dependency in enumerate(draft.depends_on):
        if dependency is None:
            continue
        if dependency in seen:
            message = f"{show(dependency)} is already in {field}"
            yield draft.found("repeated_dependency", message, "remove this one", (field, at))
        elif dependency == draft.step_id:
            if not overview.is_own(dependency, draft):
                continue
            message = f"step {show(dependency)} depends on itself"
            yield draft.found("self_dependency", message, f"remove it from {field}", (field, at))
        elif overview.is_missing(dependency):
            message, hint = f"no step has the id {show(dependency)}", overview.suggest_step(dependency, draft)
            yield draft.found("unknown_dependency", message, hint, (field, at))
        seen.add(dependency)


def _cycle(overview: Overview) -> Iterator[Found]:
    """The first cycle of dependencies, where its earliest step begins it."""
    places, drafts = overview.places, overview.drafts
    # Only where a step depends on a later one can there be a cycle.
    if any(places.get(each, at) > at for at, draft in enumerate(drafts) for each in draft.depends_on):
        steps = [drafts[at] for at in overview.graph.cycle]
        if steps:
            shown = written([named(str(step.step_id)) for step in steps])
            message = f"steps depend on each other in a cycle: {shown}"
            field = steps[0].depends_field
            path = (field, steps[0].depends_on.index(steps[1].step_id))
            hint = f"remove one of these dependencies from {field}"
            yield steps[0].found("dependency_cycle", message, hint, path)


def _condition(draft: Draft) -> Iterator[Found]:
    """The problems of a step's condition."""
    condition = draft.fields["done_check"]
    if isinstance(condition, str) and condition:  # the schema checks that
        try:
            check_condition(condition)
        except ConditionInvalid as error:
            what, _, hint = str(error).partition("; ")
            yield draft.found("bad_condition", f"done_check ignored: {what}", hint, ("done_check",))


def _duplicate(at: int, draft: Draft, overview: Overview) -> Iterator[Found]:
    """A step whose id an earlier one has; the ids that others use instead are not separate errors."""
    first = overview.places.get(draft.step_id, at)
    if first != at:
        hint = "give it another id"
        if overview.renamed:
            names = ", ".join(map(show, islice(overview.renamed, _MOST_NAMED)))
            names += " and others" * (len(overview.renamed) > _MOST_NAMED)
            hint = f"{hint}; other steps name {names}, which no step has"
        number = overview.drafts[first].number + 1
        message = f"step {draft.number + 1} has the same id as step {number}: {show(draft.step_id)}"
        yield draft.found("duplicate_step_id", message, hint, ("step_id",))


def _calls_nothing(draft: Draft) -> Found:
    """A step with inputs for nothing: mostly one that names its tool as another format does."""
    is_older = draft.depends_field == "dependencies"
    names = '"tool" or "agent"' if is_older else '"type" and "name", or "agent"'
    message = f"the step has {draft.inputs_field}, but calls nothing"
    hint = f"add {names}, or remove {draft.inputs_field}"
    return draft.found("calls_nothing", message, hint, (draft.inputs_field,), at_key=True)


def _unknown_name(draft: Draft, overview: Overview, known: Known) -> Found:
    """A name that none of its kind has."""
    kind, name, path = str(draft.type), str(draft.name), (draft.name_field,)
    for other, names in known.items():
        if other != kind and names is not None and name in names:
            message = f"{show(name)} is {_ARTICLES[other]}, not {_ARTICLES[kind]}"
            return draft.found("wrong_capability", message, _instead(draft, other), path)
    hint = overview.suggest(name, known[kind] or (), f"{kind}s")
    return draft.found(f"unknown_{kind}", f"no {kind} is named {show(name)}", hint, path)


def _instead(draft: Draft, kind: str) -> str:
    """A message about a step whose name is that of a tool, a handler or an agent, but not of its type."""
    name = named(str(draft.name))
    if draft.depends_field == "dependencies":  # the older form, which has no handlers
        return (
            f"name a {draft.type}" if kind == "handler" else f"name it in {kind}, not in {draft.name_field}"
        )
    if kind == "agent":
        return f'write "agent": "{name}" in place of type and name, which schema version 2 has'
    if draft.type == "agent":
        return f'write "type": "{kind}" and "name": "{name}" in place of agent'
    return f'write "type": "{kind}"'
