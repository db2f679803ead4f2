"""The semantic checks of a plan: everything that a schema cannot express."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any, NamedTuple

from planning.errors import show
from planning.graph import written
from planning.reading.found import Found, Path
from planning.workflow.checks.inputs import ToolInputs
from planning.workflow.checks.malformed import FOREIGN_MARK, foreign_forms, right_form
from planning.workflow.checks.names import named
from planning.workflow.checks.overview import Overview, found_at
from planning.workflow.codes import CODES, Severity
from planning.workflow.conditions import ConditionInvalid, check_condition
from planning.workflow.drafts import Draft
from planning.workflow.references import (
    MARK,
    NoReference,
    Reference,
    find_plain,
    has_reference,
    iter_references,
    path_of,
    references_in,
    texts_in,
)


class _Undeclared(NamedTuple):
    """A reference to a step that is not among the dependencies; the graph decides how severe that is."""

    draft: Draft
    at: int
    target: int
    path: Path
    within: tuple[int, int]


class ReferenceChecks:
    """The findings about the references of the steps that need a close check."""

    def __init__(self, overview: Overview) -> None:
        """Begin with a plan."""
        self._overview = overview
        self._undeclared: list[_Undeclared] = []
        self._forms: dict[tuple[str, str | None], str] = {}  # a mistake is seldom made once

    def findings(self, at: int) -> Iterator[Found]:
        """What can be said of the references of one step alone."""
        overview = self._overview
        draft = overview.drafts[at]
        declared = set(draft.depends_on)
        # An unknown entry is a finding already; a reference to the step that it means is not another one.
        for each in draft.depends_on:
            if each is not None and each not in overview.places:
                declared.add(overview.speller.nearest(each, overview.known) or each)
        # Where the list of dependencies cannot be read, what it lacks is unknown.
        is_known = None not in declared and isinstance(draft.fields.get(draft.depends_field, []), list)
        asked = set[int]()
        for text, link in texts_in(draft.inputs):
            path: Path | None = None
            for reference in iter_references(text, overview.ids):
                path = (draft.inputs_field, *path_of(link)) if path is None else path
                within = (reference.start, reference.end)
                if isinstance(reference, NoReference):
                    yield self._malformed(draft, reference, text, path)
                elif reference.step_id is None:
                    continue
                elif overview.is_own(reference.step_id, draft):
                    message = f"step {show(draft.step_id)} refers to its own output"
                    hint = "refer to a step that runs before it, or to ${user_prompt}"
                    yield found_at(draft, "self_reference", message, hint, path, within=within)
                else:
                    yield from self._output(draft, reference, path, within)
                    target = overview.places.get(reference.step_id)
                    is_new = target is not None and target not in asked
                    if target is not None and is_new and is_known and reference.step_id not in declared:
                        asked.add(target)  # once: adding it to the list mends all
                        self._undeclared.append(_Undeclared(draft, at, target, path, within))

    def _malformed(self, draft: Draft, found: NoReference, text: str, path: Path) -> Found:
        within = (found.start, found.end)
        shown = show(text[found.start : found.end])
        if not found.is_closed:
            return found_at(
                draft,
                "unclosed_reference",
                f"{shown} has no closing brace",
                "write } after the reference",
                path,
                within=within,
            )
        if found.is_nested:
            message = f"another reference starts inside {shown}"
            hint = "close each reference with }; references cannot be nested"
        else:
            message = f"{shown} is not a reference"
            inner = text[found.start + 2 : found.end - 1]
            key = (inner, draft.step_id)
            hint = self._forms.get(key, "")
            if not hint:
                hint = self._forms[key] = right_form(inner, self._overview, draft.step_id)
        return found_at(draft, "malformed_reference", message, hint, path, within=within)

    def _output(
        self, draft: Draft, reference: Reference, path: Path, within: tuple[int, int]
    ) -> Iterator[Found]:
        """Whether there is such a step, and whether it declares such an output."""
        overview, step_id = self._overview, str(reference.step_id)
        target = overview.places.get(step_id)
        if target is None:
            if overview.is_missing(step_id):
                message = f"a reference to step {show(step_id)}, but no step has this id"
                hint = overview.suggest(step_id, draft)
                yield found_at(draft, "unknown_reference", message, hint, path, within=within)
            return
        outputs = overview.drafts[target].outputs
        name = reference.path[0] if reference.path else 0
        if outputs is None or isinstance(name, int) or overview.declares(target, f".{name}"):
            return
        if name in outputs or step_id in overview.twin_ids:
            return  # its name has a dot, or the other step with this id may declare it
        owner = f"outputs of {named(step_id)}"
        hint = overview.speller.suggest(name, outputs, owner) if outputs else f"add it to the {owner}"
        message = f"step {show(step_id)} declares no output {show(name)}"
        yield found_at(draft, "undeclared_output", message, hint, path, within=within)

    def undeclared(self) -> Iterator[Found]:
        """The references to steps that are not among the dependencies, of all checked steps."""
        if not self._undeclared:
            return  # the graph is made when it is first asked
        pairs = [(each.at, each.target) for each in self._undeclared]
        reaches = self._overview.graph.waits(pairs + [(target, at) for at, target in pairs])
        for each in self._undeclared:
            step_id, field = str(self._overview.drafts[each.target].step_id), each.draft.depends_field
            code, why = "undeclared_dependency", f"which is not in {field}"
            if reaches[each.at, each.target]:
                code, why = "indirect_reference", "which this step depends on only through others"
            hint = f"add {named(step_id)} to {field}"
            if reaches[each.target, each.at]:
                why = "which itself depends on this step"
                hint = "refer to a step that runs before this one, or reverse the dependency"
            message = f"a reference to step {show(step_id)}, {why}"
            yield found_at(each.draft, code, message, hint, each.path, within=each.within)


def named_steps(draft: Draft, overview: Overview) -> Iterator[str]:
    """The ids that a step depends on or refers to."""
    yield from (each for each in draft.depends_on if each is not None)
    found = references_in(draft.inputs, overview.ids)
    yield from (each.step_id for each in found if each.step_id is not None)


def foreign_references(draft: Draft, overview: Overview) -> Iterator[Found]:
    """The references to steps in the notation of another format."""
    for text, link in texts_in(draft.inputs):
        for start, end, form in foreign_forms(text, overview, draft.step_id):
            message = f"{show(text[start:end])} names a step, but is plain text here"
            path = (draft.inputs_field, *path_of(link))
            yield found_at(draft, "foreign_reference", message, f"write {form}", path, within=(start, end))


def dependency_findings(draft: Draft, overview: Overview) -> Iterator[Found]:
    """What is wrong with the entries of one step's list of dependencies."""
    field = draft.depends_field
    seen = set[str]()
    for at, dependency in enumerate(draft.depends_on):
        if dependency is None:
            continue
        path = (field, at)
        if dependency in seen:
            message = f"{show(dependency)} is already in {field}"
            yield found_at(draft, "repeated_dependency", message, "remove this one", path)
        elif dependency == draft.step_id:
            if not overview.is_own(dependency, draft):
                continue
            message = f"step {show(dependency)} depends on itself"
            yield found_at(draft, "self_dependency", message, f"remove it from {field}", path)
        elif overview.is_missing(dependency):
            message = f"no step has the id {show(dependency)}"
            yield found_at(draft, "unknown_dependency", message, overview.suggest(dependency, draft), path)
        seen.add(dependency)


def cycle_findings(overview: Overview) -> Iterator[Found]:
    """The first cycle of dependencies, where its earliest step begins it."""
    steps = [overview.drafts[at] for at in overview.graph.cycle]
    if steps:
        shown = written([named(str(step.step_id)) for step in steps])
        message = f"steps depend on each other in a cycle: {shown}"
        field = steps[0].depends_field
        path = (field, steps[0].depends_on.index(steps[1].step_id))
        hint = f"remove one of these dependencies from {field}"
        yield found_at(steps[0], "dependency_cycle", message, hint, path)


def condition_findings(draft: Draft) -> list[Found]:
    """What is wrong with a step's condition."""
    condition = draft.fields.get("done_check")
    if not isinstance(condition, str) or not condition:  # the schema checks that
        return []
    try:
        check_condition(condition)
    except ConditionInvalid as error:
        what, _, hint = str(error).partition("; ")
        message = f"done_check ignored: {what}"
        return [found_at(draft, "bad_condition", message, hint, ("done_check",))]
    return []


_CALLS = frozenset({"type", "name", "agent", "tool"})
_MOST_KEPT = 20_000
_MOST_NAMED = 5
_ARTICLES = {"tool": "a tool", "handler": "a handler", "agent": "an agent"}
KINDS = tuple(_ARTICLES)
"""What a step may name."""


def check_steps(
    drafts: Sequence[Draft],
    known: Mapping[str, Collection[str] | None] | None = None,
    inputs: Mapping[str, ToolInputs] | None = None,
) -> list[Found]:
    """Find every problem in the steps that a schema cannot express; never raises.

    A correct step needs one quick look, which builds no path and no message; a suspicious one is checked
    again in detail.

    Args:
        drafts: The steps.
        known: The names that exist, by kind (see ``KINDS``). Names of a kind that is None
            or missing are not checked.
        inputs: By name of a tool, what inputs of it are checked against.

    Returns:
        The findings, in no particular order.
    """
    look = _Look(Overview(drafts), known or {}, inputs or {})
    for at, draft in enumerate(drafts):
        look.at(at, draft)
    return look.findings()


class _Look:
    """One look at each step: what is odd is noted."""

    __slots__ = (
        "_checked",
        "_depending",
        "_errors",
        "_foreign",
        "_found",
        "_is_forward",
        "_kinds",
        "_overview",
        "_referring",
    )

    def __init__(
        self,
        overview: Overview,
        known: Mapping[str, Collection[str] | None],
        inputs: Mapping[str, ToolInputs],
    ) -> None:
        self._overview = overview
        self._kinds: dict[str | None, Collection[str] | None] = dict(known.items())
        self._checked = inputs
        self._found = list[Found]()
        self._depending = dict[int, None]()  # the steps whose dependencies are odd
        self._referring = list[int]()  # those whose references are
        self._foreign = list[int]()  # those that may have some in another notation
        self._errors = 0
        self._is_forward = False  # only where one depends on a later one can there be a cycle

    def at(self, at: int, draft: Draft) -> None:
        """Look at one step."""
        _, _, _, _, kind, name, _, _, _, _, depends_on, _ = draft
        declared: Collection[str | None] = depends_on
        if len(depends_on) > 1:
            declared = set(depends_on)
            if len(declared) < len(depends_on):
                self._depending[at] = None
        places = self._overview.places
        for dependency in depends_on:
            place = places.get(dependency, at)
            if place == at:  # itself, or unknown
                self._depending[at] = None
            elif place > at:
                self._is_forward = True

        if draft.inputs:
            self._inputs(at, draft, declared)
        if "done_check" in draft.fields:
            self._found += condition_findings(draft)
        known = self._kinds.get(kind)
        if known is not None and name:
            if name not in known:
                self._found.append(_unknown_name(draft, self._overview, self._kinds))
            elif kind == "tool" and name in self._checked:
                self._found += self._checked[name].check(draft)

    def _inputs(self, at: int, draft: Draft, declared: Collection[str | None]) -> None:
        """Look at the inputs of one step."""
        if draft.type is None and _CALLS.isdisjoint(draft.fields):
            self._found.append(_calls_nothing(draft))
        texts = _texts(draft.inputs)
        together = "\n".join(texts)
        if FOREIGN_MARK.search(together):
            self._foreign.append(at)
        if MARK in together:
            texts = [text for text in texts if has_reference(text)]
            if texts and not self._is_plain(draft, texts, declared):
                self._referring.append(at)

    def _is_plain(self, draft: Draft, texts: list[str], declared: Collection[str | None]) -> bool:
        """Whether all references are plainly right, as far as a fast look can tell."""
        overview = self._overview
        if overview.ids.lengths:
            return False
        for text in texts:
            read = find_plain(text)
            if len(read) != text.count(MARK):
                return False
            for target, path in read:
                if target and (
                    target not in declared
                    or target == draft.step_id
                    or target not in overview.places
                    or not overview.declares(overview.places[target], path)
                ):
                    return False
        return True

    def findings(self) -> list[Found]:
        """Look closely at what was odd."""
        overview = self._overview
        if overview.has_twins:  # then an id's place is not enough
            self._keep(_duplicates(overview))
            self._depending = dict.fromkeys(range(len(overview.drafts)))
            self._is_forward = True
        for at in self._depending:
            self._keep(dependency_findings(overview.drafts[at], overview))
        if self._is_forward:
            self._keep(cycle_findings(overview))
        if self._referring:
            references = ReferenceChecks(overview)
            for at in self._referring:
                self._keep(references.findings(at))
            self._keep(references.undeclared())
        foreign = (foreign_references(overview.drafts[at], overview) for at in self._foreign)
        self._keep(islice(chain.from_iterable(foreign), _MOST_KEPT))
        return self._found

    def _keep(self, found: Iterable[Found]) -> None:
        """Keep findings, but no more errors or warnings than anyone reads."""
        for each in found:
            if CODES[each.code].severity is Severity.ERROR:
                self._errors += 1
                if self._errors > _MOST_KEPT:
                    return
            elif len(self._found) > 2 * _MOST_KEPT:
                continue
            self._found.append(each)


def _texts(inputs: Mapping[str, Any] | None) -> list[str]:
    """The strings in a step's inputs, at any depth, in no particular order."""
    texts: list[str] = []
    containers: list[Any] = [inputs or {}]
    for each in containers:
        for value in each if isinstance(each, list) else each.values():
            if isinstance(value, str):
                texts.append(value)
            elif isinstance(value, (dict, list)):
                containers.append(value)
    return texts


def _duplicates(overview: Overview) -> Iterator[Found]:
    """Each step whose id an earlier one has; the ids that others use instead are not separate errors."""
    unknown = {
        step_id: None
        for draft in overview.drafts
        for step_id in named_steps(draft, overview)
        if overview.is_missing(step_id) and overview.speller.nearest(step_id, overview.known) is None
    }
    hint = "give it another id"
    if 0 < len(unknown) <= len(overview.twins):
        overview.renamed = frozenset(unknown)
        names = ", ".join(map(show, islice(unknown, _MOST_NAMED))) + " and others" * (
            len(unknown) > _MOST_NAMED
        )
        hint = f"{hint}; other steps name {names}, which no step has"
    for at in overview.twins:
        draft = overview.drafts[at]
        first = overview.drafts[overview.places[draft.step_id]].number + 1
        message = f"step {draft.number + 1} has the same id as step {first}: {show(draft.step_id)}"
        yield found_at(draft, "duplicate_step_id", message, hint, ("step_id",))


def _calls_nothing(draft: Draft) -> Found:
    """A step with inputs for nothing: mostly one that names its tool as another format does."""
    is_older = draft.depends_field == "dependencies"
    names = '"tool" or "agent"' if is_older else '"type" and "name", or "agent"'
    message = f"the step has {draft.inputs_field}, but calls nothing"
    hint = f"add {names}, or remove {draft.inputs_field}"
    return found_at(draft, "calls_nothing", message, hint, (draft.inputs_field,), at_key=True)


def _unknown_name(
    draft: Draft, overview: Overview, kinds: Mapping[str | None, Collection[str] | None]
) -> Found:
    """A name that none of its kind has."""
    kind, name, path = str(draft.type), str(draft.name), (draft.name_field,)
    for other, names in kinds.items():
        if other is not None and other != kind and names is not None and name in names:
            message = f"{show(name)} is {_ARTICLES[other]}, not {_ARTICLES[kind]}"
            return found_at(draft, "wrong_capability", message, _instead(draft, other), path)
    hint = overview.speller.suggest(name, kinds[kind] or (), f"{kind}s")
    return found_at(draft, f"unknown_{kind}", f"no {kind} is named {show(name)}", hint, path)


def _instead(draft: Draft, kind: str) -> str:
    """How a step names something of another kind than it says."""
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
