"""Findings about references in a step's inputs: malformed ones, unknown steps, missing dependencies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from planning.errors import show
from planning.reading.found import Found, Path
from planning.workflow.checks.malformed import foreign_forms, right_form
from planning.workflow.checks.names import named
from planning.workflow.checks.overview import Overview, found_at
from planning.workflow.drafts import Draft
from planning.workflow.references import (
    NoReference,
    Reference,
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
        reaches = self._overview.graph.reaches(pairs + [(target, at) for at, target in pairs])
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
