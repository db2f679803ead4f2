"""What all checks of one plan look up: its steps by id, and what was built of them on the way."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

from planning.workflow.checks.graph import Graph
from planning.workflow.checks.names import Speller
from planning.workflow.drafts import Draft
from planning.workflow.findings import Found, Path
from planning.workflow.references import StepIds

__all__ = ["Overview", "found_at"]

_NAME_ENDS = re.compile(r"[.\[]")


class Overview:
    """The steps of one plan, seen as a whole, each by its place among those that could be read.

    Attributes:
        drafts: The steps.
        places: By id, the place of the first step that has it.
        ids: The ids as references may name them.
        has_twins: Whether two steps have the same id, or one has none.
        speller: Finds the names that wrong ones are nearest to.
    """

    def __init__(self, drafts: Sequence[Draft]) -> None:
        """Look at the steps."""
        self.drafts = drafts
        self.places: dict[str | None, int] = {draft.step_id: at for at, draft in enumerate(drafts)}
        self.has_twins = len(self.places) < len(drafts) or None in self.places
        if self.has_twins:
            self.places = {}
            for at, draft in enumerate(drafts):
                self.places.setdefault(draft.step_id, at)
            self.places.pop(None, None)
        self.ids = StepIds(self.places)  # type: ignore[arg-type]  # None is no longer among them
        self.speller = Speller()
        self._outputs: dict[int, set[str]] = {}

    @cached_property
    def known(self) -> tuple[str, ...]:
        """The ids in the order of the plan."""
        return tuple(step_id for step_id in self.places if step_id is not None)

    @cached_property
    def lost(self) -> frozenset[str]:
        """Ids that are numbers where a text belongs: who names one is right but for that."""
        given = [draft.fields.get("step_id") for draft in self.drafts if draft.step_id is None]
        return frozenset(str(each) for each in given if type(each) is int and abs(each) < 10**15)

    @cached_property
    def graph(self) -> Graph:
        """What depends on what; ids that are no step's, and a step's own, are left out."""
        return Graph([self._edges(draft) for draft in self.drafts])

    def _edges(self, draft: Draft) -> list[int]:
        places = self.places
        return [
            places[each]
            for each in dict.fromkeys(draft.depends_on)
            if each in places and each != draft.step_id
        ]

    def declares(self, place: int, path: str) -> bool:
        """Whether a step declares the output that a path begins with, or declares none at all.

        Args:
            place: The place of the step.
            path: As it stands in a reference: ``.title``, ``[0]`` or nothing.
        """
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
        """What a step may write instead of an id that is none."""
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
