"""The lookups that all checks of one plan share: its steps by id, what depends on what, the nearest names."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from functools import cached_property
from itertools import islice

from planning.errors import nearest, show
from planning.graph import Graph
from planning.workflow.drafts import Draft
from planning.workflow.references import StepIds, references_in

_LISTED = 20
_MOST_COMPARED = 20_000
_NAME = re.compile(r"[!-~]{1,60}")
_NAME_ENDS = re.compile(r"[.\[]")


def named(name: str) -> str:
    """A name as it is to be written; one that could be misread is quoted, escaped and cut."""
    return name if _NAME.fullmatch(name) else show(name)


class Overview:
    """The steps of one plan, seen as a whole, each by its place among those that could be read.

    Attributes:
        drafts: The steps.
        places: By id, the place of the first step that has it.
        ids: The ids as references may name them.
    """

    def __init__(self, drafts: Sequence[Draft]) -> None:
        self.drafts = drafts
        self.places: dict[str | None, int] = {draft.step_id: at for at, draft in enumerate(drafts)}
        self._has_twins = len(self.places) < len(drafts) or None in self.places
        if self._has_twins:
            self.places = {}
            for at, draft in enumerate(drafts):
                self.places.setdefault(draft.step_id, at)
            self.places.pop(None, None)
        self.ids = StepIds(self.places)  # type: ignore[arg-type]  # None is no longer among them
        self._outputs: dict[int, set[str]] = {}
        self._comparisons = _MOST_COMPARED

    @cached_property
    def known(self) -> tuple[str, ...]:
        """The ids in the order of the plan."""
        return tuple(step_id for step_id in self.places if step_id is not None)

    @cached_property
    def twins(self) -> dict[str | None, list[int]]:
        """By id, the places of the steps whose id an earlier one has."""
        twins: dict[str | None, list[int]] = {}
        for at, draft in enumerate(self.drafts if self._has_twins else ()):
            if draft.step_id and self.places[draft.step_id] < at:
                twins.setdefault(draft.step_id, []).append(at)
        return twins

    @cached_property
    def lost(self) -> frozenset[str]:
        """The values that may be ids of steps without one: numbers, or strings in another field."""
        return frozenset(
            str(value)
            for draft in self.drafts
            if draft.step_id is None
            for value in draft.fields.values()
            if type(value) is str or (type(value) is int and abs(value) < 10**15)
        )

    @cached_property
    def renamed(self) -> dict[str, None]:
        """The ids that steps name and no step has, since some have that of another one by mistake."""
        unknown: dict[str, None] = {}
        for draft in self.drafts if self.twins else ():
            referred = [each.step_id for each in references_in(draft.inputs, self.ids)]
            for each in (*draft.depends_on, *referred):
                is_known = each is None or each in self.places or each in self.lost
                if not is_known and self.nearest(str(each), self.known) is None:
                    unknown[str(each)] = None
        return unknown if len(unknown) <= sum(map(len, self.twins.values())) else {}

    def is_missing(self, step_id: str) -> bool:
        """True if no step has this id, and not because of another mistake that is a finding already."""
        return step_id not in self.places and step_id not in self.lost and step_id not in self.renamed

    def is_own(self, step_id: str | None, draft: Draft) -> bool:
        """True if an id that a step names is its own; a step with the id of another may mean that one."""
        return step_id == draft.step_id and self.drafts[self.places[step_id]] is draft

    @cached_property
    def graph(self) -> Graph[int]:
        """The dependencies, by place; a step's own id is omitted."""
        places = self.places
        return Graph({
            at: [places[each] for each in draft.depends_on if each != draft.step_id and each in places]
            for at, draft in enumerate(self.drafts)
        })  # fmt: skip

    def declares(self, place: int, name: str | int) -> bool:
        """True if a step declares an output, or declares none; of a name with a dot its beginning counts."""
        outputs = self.drafts[place].outputs
        if outputs is None or isinstance(name, int):
            return True
        known = self._outputs.get(place)
        if known is None:
            known = self._outputs[place] = set(outputs)
        return name in known or _NAME_ENDS.split(name, maxsplit=1)[0] in known

    def suggest_step(self, step_id: str, draft: Draft) -> str:
        """A hint for an unknown id in a step."""
        return self.suggest(step_id, self.known, "step ids", but=draft.step_id)

    def suggest(self, name: str, known: Collection[str], kind: str, *, but: str | None = None) -> str:
        """A hint for a wrong name: the nearest, or else one of the known ones."""
        near = self.nearest(name, known)
        if near is not None and near != but:
            return f"did you mean {named(near)}?"
        if not known:
            return f"there are no {kind}"
        more = len(known) - _LISTED
        listed = ", ".join(map(named, islice(known, _LISTED))) + (f" and {more:,} more" if more > 0 else "")
        return f"the {kind} are {listed}"

    def nearest(self, name: str, known: Collection[str]) -> str | None:
        """The known name that was probably meant; None if there is none.

        Similarity is expensive: a plan in which everything is wrong, with thousands of tools, would take
        minutes. After a number of comparisons none is found.
        """
        if self._comparisons < len(known):
            return None
        self._comparisons -= len(known)
        return nearest(name, known)
