"""The lookups that all checks of one plan share, such as its steps by id."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

from planning.graph import Graph
from planning.reading.found import Found, Path
from planning.workflow.checks.names import Speller
from planning.workflow.drafts import Draft
from planning.workflow.references import StepIds

_NAME_ENDS = re.compile(r"[.\[]")


class Overview:
    """The steps of one plan, seen as a whole, each by its place among those that could be read.

    Attributes:
        drafts: The steps.
        places: By id, the place of the first step that has it.
        ids: The ids as references may name them.
        has_twins: Whether two steps have the same id, or one has none.
        renamed: Ids that steps name and no step has, since it has that of another one by mistake.
        speller: Finds the names that wrong ones are nearest to.
    """

    def __init__(self, drafts: Sequence[Draft]) -> None:
        self.drafts = drafts
        self.places: dict[str | None, int] = {draft.step_id: at for at, draft in enumerate(drafts)}
        self.has_twins = len(self.places) < len(drafts) or None in self.places
        if self.has_twins:
            self.places = {}
            for at, draft in enumerate(drafts):
                self.places.setdefault(draft.step_id, at)
            self.places.pop(None, None)
        self.ids = StepIds(self.places)  # type: ignore[arg-type]  # None is no longer among them
        self.renamed: frozenset[str] = frozenset()
        self.speller = Speller()
        self._outputs: dict[int, set[str]] = {}

    @cached_property
    def known(self) -> tuple[str, ...]:
        """The ids in the order of the plan."""
        return tuple(step_id for step_id in self.places if step_id is not None)

    @cached_property
    def twins(self) -> tuple[int, ...]:
        """The places of the steps whose id an earlier one has."""
        if not self.has_twins:
            return ()
        ids = ((at, draft.step_id) for at, draft in enumerate(self.drafts))
        return tuple(at for at, step_id in ids if step_id and self.places[step_id] < at)

    @cached_property
    def twin_ids(self) -> frozenset[str | None]:
        """The ids that several steps have."""
        return frozenset(self.drafts[at].step_id for at in self.twins)

    @cached_property
    def lost(self) -> frozenset[str]:
        """What may be the ids of steps without one: numbers instead of texts, or texts in another field."""
        return frozenset(
            str(value)
            for draft in self.drafts
            if draft.step_id is None
            for value in draft.fields.values()
            if type(value) is str or (type(value) is int and abs(value) < 10**15)
        )

    def is_missing(self, step_id: str) -> bool:
        """Whether no step has this id, and not because of another mistake that is a finding already."""
        return step_id not in self.places and step_id not in self.lost and step_id not in self.renamed

    def is_own(self, step_id: str | None, draft: Draft) -> bool:
        """Whether an id that a step names is its own; a step with the id of another may mean that one."""
        return step_id == draft.step_id and self.drafts[self.places[step_id]] is draft

    @cached_property
    def graph(self) -> Graph[int]:
        """What depends on what, by place; a step's own id is omitted."""
        places = self.places
        return Graph(
            {
                at: [places[each] for each in draft.depends_on if each != draft.step_id and each in places]
                for at, draft in enumerate(self.drafts)
            }
        )

    def declares(self, place: int, path: str) -> bool:
        """Whether a step declares the output that a path (``.title``) begins with, or declares none."""
        outputs = self.drafts[place].outputs
        if outputs is None or path[:1] != ".":
            return True
        known = self._outputs.get(place)
        if known is None:
            known = self._outputs[place] = set(outputs)
        name = path[1:]
        if "." in name or "[" in name:
            name = _NAME_ENDS.split(name, maxsplit=1)[0]
        return name in known

    def suggest(self, step_id: str, draft: Draft) -> str:
        """What a step may write instead of an unknown id."""
        return self.speller.suggest(step_id, self.known, "step ids", but=draft.step_id)


def found_at(
    draft: Draft,
    code: str,
    message: str,
    hint: str,
    path: Path,
    *,
    at_key: bool = False,
    within: tuple[int, int] | None = None,
) -> Found:
    """A finding in a step, at a path below it."""
    return Found(
        code,
        message,
        hint,
        (*draft.path, *path),
        at_key=at_key,
        within=within,
        step_index=draft.number,
        step_id=draft.step_id,
    )
