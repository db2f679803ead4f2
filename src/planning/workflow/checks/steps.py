"""The semantic checks of a plan: everything that a schema cannot express."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from planning.errors import show
from planning.reading.found import Found
from planning.workflow.checks.conditions import condition_findings
from planning.workflow.checks.dependencies import cycle_findings, dependency_findings
from planning.workflow.checks.inputs import ToolInputs
from planning.workflow.checks.malformed import FOREIGN_MARK
from planning.workflow.checks.names import named
from planning.workflow.checks.overview import Overview, found_at
from planning.workflow.checks.references import ReferenceChecks, foreign_references, named_steps
from planning.workflow.codes import CODES, Severity
from planning.workflow.drafts import Draft
from planning.workflow.references import MARK, find_plain, has_reference

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
