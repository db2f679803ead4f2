"""Findings about what steps depend on: unknown steps, the step itself, repetitions and circles."""

from __future__ import annotations

from collections.abc import Iterator

from planning.errors import show
from planning.workflow.checks.names import named
from planning.workflow.checks.overview import Overview, found_at
from planning.workflow.drafts import Draft
from planning.workflow.findings import Found

__all__ = ["circle_findings", "dependency_findings"]

_LONGEST_CIRCLE = 8
_HEAD, _TAIL = 3, 2


def dependency_findings(draft: Draft, overview: Overview) -> Iterator[Found]:
    """What is wrong with the entries of one step's list of dependencies."""
    field = draft.depends_field
    seen = set[str]()
    for at, dependency in enumerate(draft.depends_on):
        if dependency is None:
            continue
        path = (field, at)
        if dependency in seen:
            told = f"{show(dependency)} stands in {field} already"
            yield found_at(draft, "repeated_dependency", told, "leave out this one", path)
        elif dependency == draft.step_id:
            if not overview.is_own(dependency, draft):
                continue
            told = f"step {show(dependency)} depends on itself"
            yield found_at(draft, "self_dependency", told, f"leave it out of {field}", path)
        elif overview.is_missing(dependency):
            told = f"no step has the id {show(dependency)}"
            yield found_at(draft, "unknown_dependency", told, overview.suggest(dependency, draft), path)
        seen.add(dependency)


def circle_findings(overview: Overview) -> Iterator[Found]:
    """Each circle of dependencies, where its earliest step begins it."""
    for circle in overview.graph.circles:
        first = circle.index(min(circle))
        steps = [overview.drafts[at] for at in (*circle[first:], *circle[:first])]
        draft, following = steps[0], steps[1].step_id
        told = f"steps depend on each other in a circle: {_path(steps)}"
        hint = f"take one of these dependencies out of {draft.depends_field}"
        path = (draft.depends_field, draft.depends_on.index(following))
        yield found_at(draft, "dependency_cycle", told, hint, path)


def _path(circle: list[Draft]) -> str:
    names = circle
    middle = list[str]()
    tail = list[Draft]()
    if len(circle) > _LONGEST_CIRCLE:
        middle = [f"... {len(circle) - _HEAD - _TAIL:,} more ..."]
        names, tail = circle[:_HEAD], circle[-_TAIL:]
    told = [named(str(step.step_id)) for step in (*names, *tail, circle[0])]
    return " -> ".join([*told[: len(names)], *middle, *told[len(names) :]])
