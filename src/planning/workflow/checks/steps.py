"""The semantic checks of a plan: everything that a schema cannot say."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from planning.errors import show
from planning.workflow.capabilities import Capabilities
from planning.workflow.checks.conditions import condition_findings
from planning.workflow.checks.dependencies import circle_findings, dependency_findings
from planning.workflow.checks.inputs import DEEP, LITERAL, REFERRING, ToolInputs
from planning.workflow.checks.names import named
from planning.workflow.checks.overview import Overview, found_at
from planning.workflow.checks.references import ReferenceChecks
from planning.workflow.drafts import Draft
from planning.workflow.findings import Found
from planning.workflow.references import MARK, find_plain

__all__ = ["check_steps"]

_CONTAINERS = (dict, list, tuple)
_ARTICLES = {"tool": "a tool", "handler": "a handler", "agent": "an agent"}


def check_steps(drafts: Sequence[Draft], capabilities: Capabilities | None) -> list[Found]:
    """Find all that is wrong with steps, beyond what a schema says; never raises.

    A step that is right costs one look, without a path or a message made; one with anything odd about it
    is looked at again, closely.

    Args:
        drafts: The steps.
        capabilities: What exists; None where that is not known, and then no name is checked.

    Returns:
        The findings, in no particular order.
    """
    look = _Look(Overview(drafts), capabilities)
    for at, draft in enumerate(drafts):
        look.at(at, draft)
    return look.findings()


class _Look:
    """One look at each step: what is odd is noted."""

    __slots__ = ("_checked", "_depending", "_found", "_is_forward", "_kinds", "_overview", "_referring")

    def __init__(self, overview: Overview, capabilities: Capabilities | None) -> None:
        self._overview = overview
        self._kinds: dict[str | None, Collection[str] | None] = {}
        self._checked: Mapping[str, ToolInputs] = {}
        if capabilities is not None:
            known = (capabilities.tools, capabilities.handlers, capabilities.agents)
            self._kinds = dict(zip(_ARTICLES, known, strict=True))
            self._checked = capabilities.inputs
        self._found = list[Found]()
        self._depending = dict[int, None]()  # the steps whose dependencies are odd
        self._referring = list[int]()  # those whose references are
        self._is_forward = False  # only where one depends on a later one can there be a circle

    def at(self, at: int, draft: Draft) -> None:
        """Look at one step."""
        _, _, _, _, kind, name, _, inputs, _, _, depends_on, _ = draft
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

        deep: list[Any] = []
        texts: list[str] = []
        if inputs:
            values = inputs.values()
            texts = [text for text in values if isinstance(text, str) and MARK in text]
            deep = [value for value in values if isinstance(value, _CONTAINERS)]
            if deep:
                texts += _texts_in(deep)
            if texts and not self._is_plain(draft, texts, declared):
                self._referring.append(at)

        if "done_check" in draft.fields:
            self._found += condition_findings(draft)
        known = self._kinds.get(kind)
        if known is not None and name:
            if name not in known:
                self._found.append(_unknown_name(draft, self._overview, self._kinds))
            elif kind == "tool" and name in self._checked:
                form = DEEP if deep else REFERRING if texts else LITERAL
                self._found += self._checked[name].check(draft, form)

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
        found, overview = self._found, self._overview
        if overview.has_twins:  # then an id's place is not all that must be looked at
            found += _duplicates(overview)
            self._depending = dict.fromkeys(range(len(overview.drafts)))
            self._is_forward = True
        for at in self._depending:
            found += dependency_findings(overview.drafts[at], overview)
        if self._is_forward:
            found += circle_findings(overview)
        if self._referring:
            references = ReferenceChecks(overview)
            for at in self._referring:
                found += references.findings(at)
            found += references.undeclared()
        return found


def _texts_in(containers: list[Any]) -> list[str]:
    """The texts with references in arrays and objects, at any depth."""
    texts, todo = list[str](), containers.copy()
    while todo:
        container = todo.pop()
        for value in container.values() if isinstance(container, dict) else container:
            if isinstance(value, str):
                if MARK in value:
                    texts.append(value)
            elif isinstance(value, _CONTAINERS):
                todo.append(value)
    return texts


def _duplicates(overview: Overview) -> list[Found]:
    """Each step whose id an earlier one has."""
    found = []
    for at, draft in enumerate(overview.drafts):
        step_id = draft.step_id
        if step_id and overview.places[step_id] < at:  # that it is empty, the schema says
            first = overview.drafts[overview.places[step_id]].number + 1
            told = f"step {draft.number + 1} has the id {show(step_id)}, which step {first} has already"
            found.append(found_at(draft, "duplicate_step_id", told, "give it another id", ("step_id",)))
    return found


def _unknown_name(
    draft: Draft, overview: Overview, kinds: Mapping[str | None, Collection[str] | None]
) -> Found:
    """A name that none of its kind has."""
    kind, name, path = str(draft.type), str(draft.name), (draft.name_field,)
    for other, names in kinds.items():
        if other is not None and other != kind and names is not None and name in names:
            told = f"{show(name)} is {_ARTICLES[other]}, not {_ARTICLES[kind]}"
            return found_at(draft, "wrong_capability", told, _instead(draft, other), path)
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
