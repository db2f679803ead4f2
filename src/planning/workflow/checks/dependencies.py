"""Findings about dependencies: unknown steps, the step itself, repetitions and cycles."""

from __future__ import annotations

from collections.abc import Iterator

from planning.errors import show
from planning.reading.found import Found
from planning.workflow.checks.names import named
from planning.workflow.checks.overview import Overview, found_at
from planning.workflow.drafts import Draft

_LONGEST_CYCLE = 8
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
    """Each cycle of dependencies, where its earliest step begins it."""
    for cycle in overview.graph.cycles:
        first = cycle.index(min(cycle))
        steps = [overview.drafts[at] for at in (*cycle[first:], *cycle[:first])]
        draft, following = steps[0], steps[1].step_id
        message = f"steps depend on each other in a cycle: {_path(steps)}"
        hint = f"remove one of these dependencies from {draft.depends_field}"
        path = (draft.depends_field, draft.depends_on.index(following))
        yield found_at(draft, "dependency_cycle", message, hint, path)


def _path(cycle: list[Draft]) -> str:
    names = cycle
    middle = list[str]()
    tail = list[Draft]()
    if len(cycle) > _LONGEST_CYCLE:
        middle = [f"... {len(cycle) - _HEAD - _TAIL:,} more ..."]
        names, tail = cycle[:_HEAD], cycle[-_TAIL:]
    shown = [named(str(step.step_id)) for step in (*names, *tail, cycle[0])]
    return " -> ".join([*shown[: len(names)], *middle, *shown[len(names) :]])
