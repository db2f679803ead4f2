"""The semantic checks of a plan: everything that a schema cannot express."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice

from planning.errors import show
from planning.graph import written
from planning.reading import Found
from planning.workflow.checks.inputs import ToolInputs
from planning.workflow.checks.overview import Overview, named
from planning.workflow.checks.references import ReferenceChecks
from planning.workflow.codes import CODES, Severity
from planning.workflow.conditions import ConditionInvalid, check_condition
from planning.workflow.drafts import Draft

Known = Mapping[str, Collection[str] | None]

_CALLS = frozenset({"type", "name", "agent", "tool"})
_MOST_KEPT = 20_000
_MOST_NAMED = 5
_ARTICLES = {"tool": "a tool", "handler": "a handler", "agent": "an agent"}
KINDS = tuple(_ARTICLES)
"""What a step may name."""


def check_steps(
    drafts: Sequence[Draft], known: Known | None = None, inputs: Mapping[str, ToolInputs] | None = None
) -> list[Found]:
    """Find every problem in the steps that a schema cannot express; never raises."""
    kept, counts = list[Found](), dict.fromkeys(Severity, 0)
    for each in _found(Overview(drafts), known or {}, inputs or {}):
        severity = CODES[each.code].severity
        counts[severity] += 1
        if counts[severity] <= _MOST_KEPT:
            kept.append(each)
        elif severity is Severity.ERROR:
            break
    return kept


def _found(overview: Overview, known: Known, inputs: Mapping[str, ToolInputs]) -> Iterator[Found]:
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
    """What is wrong with the entries of one step's list of dependencies."""
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
    """What is wrong with a step's condition."""
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
