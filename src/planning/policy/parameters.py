"""The parameters of the planning tools under a policy: the commands, with the policy's arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, make_dataclass
from functools import cache
from types import MappingProxyType
from typing import Any

from planning.plan.commands import (
    AddStep,
    ClearPlan,
    MarkStep,
    MoveStep,
    NewPlanStep,
    ReadPlan,
    RemoveStep,
    SetupPlan,
    UpdateStep,
)
from planning.plan.model import StepStatus, plain_status
from planning.plan.step_ids import as_text
from planning.plan.text import TextRules, rules_for
from planning.policy.policy import PlanPolicy

Parameters = Mapping[str, type[Any]]


def parameters_of(policy: PlanPolicy) -> Parameters:
    """The type of each tool's parameters, by the tool's name: the command itself, or a subclass of it."""
    return _made(
        has_evidence=policy.evidence is not None,
        has_dependencies=policy.dependencies,
        is_batched=policy.batch_marks,
        text=policy.text,
    )


@cache
def _made(*, has_evidence: bool, has_dependencies: bool, is_batched: bool, text: str) -> Parameters:
    """The same; at most 16 for a program, for to read one takes half a millisecond."""
    rules = rules_for(text)
    step = _step(rules, has_dependencies=has_dependencies, is_same=text == "ascii")
    steps = {"setup": _steps(step, "initial_steps", SetupPlan), "add": _steps(step, "steps", AddStep)}
    same = text == "ascii" and not has_dependencies
    objective = _text("objective", rules.objective.about("The goal, one line"))
    setup = SetupPlan if same else _extended(SetupPlan, objective, steps["setup"])
    add = AddStep if same else _extended(AddStep, steps["add"])
    title = _optional("title", rules.title.about("New title"))
    details = _optional("details", rules.details.about('New details; "" clears them'))
    note = _optional("note", rules.note.about("What was observed"))
    step_id = ("step_id", str, field(metadata=rules.step_id.about("S### id") | {"repair": as_text}))
    update, remove, move, more = UpdateStep, RemoveStep, MoveStep, list[Any]()
    if text != "ascii":
        update, more = _extended(UpdateStep, step_id, title, details), [step_id, note]
        remove, move = _extended(RemoveStep, step_id), _extended(MoveStep, step_id)
    if has_evidence:
        said = {
            "description": "To mark it done: calls that show it, such as C12",
            "repair": _listed,
        }
        more.append(("evidence", tuple[str, ...], field(default=(), metadata=said)))
    mark = _extended(MarkStep, *more) if more else MarkStep
    if is_batched:
        mark = _batched(mark)
    return MappingProxyType({
        "planning_setup_plan": setup,
        "planning_add_step": add,
        "planning_update_step": update,
        "planning_mark_step": mark,
        "planning_clear_plan": ClearPlan,
        "planning_read_plan": ReadPlan,
        "planning_remove_step": remove,
        "planning_move_step": move,
    })  # fmt: skip


def _extended(command: type[Any], *fields: Any) -> type[Any]:
    """A subclass of a command, whose instances it can be given as well."""
    return make_dataclass(command.__name__, fields, bases=(command,), frozen=True, slots=True)


def _text(name: str, metadata: Mapping[str, Any]) -> Any:
    return (name, str, field(metadata=metadata))


def _optional(name: str, metadata: Mapping[str, Any]) -> Any:
    return (name, str | None, field(default=None, metadata=metadata))


def _step(rules: TextRules, *, has_dependencies: bool, is_same: bool) -> type[Any]:
    if is_same and not has_dependencies:
        return NewPlanStep
    fields = [
        _text("title", rules.title.about("What to do, one line")),
        _optional("details", rules.details.about("More, if needed")),
    ]
    if has_dependencies:
        said = {
            "description": "Steps to do first: ids, titles, or places in this call from 1",
        }
        fields.append(("depends_on", tuple[str | int, ...], field(default=(), metadata=said)))
    return _extended(NewPlanStep, *fields)


def _steps(step: type[Any], name: str, command: type[Any]) -> Any:
    metadata = command.__dataclass_fields__[name].metadata | {"repair": _each(depends_on=_listed)}
    kind: Any = tuple[step, ...]  # type: ignore[valid-type]  # a class that was made above
    if command is SetupPlan:
        return (name, kind, field(default=(), metadata=metadata))
    return (name, kind, field(metadata=metadata))


def _listed(given: Any) -> Any:
    """One item that was sent without its array, in one; anything else as it is."""
    return [given] if type(given) in {str, int} else given


def _each(**repairs: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Repairs fields of each object in an array, as they are repaired in a single one."""

    def repaired(item: Any) -> Any:
        known = repairs.items() if isinstance(item, dict) else ()
        return (
            {**item, **{name: repair(item[name]) for name, repair in known if name in item}}
            if known
            else item
        )

    return lambda items: list(map(repaired, items)) if isinstance(items, list) else items


def _batched(mark: type[Any]) -> type[Any]:
    """One mark, or several under ``marks``."""
    known = mark.__dataclass_fields__
    step_id = ("step_id", str | None, field(default=None, metadata=known["step_id"].metadata))
    status = ("status", StepStatus | None, field(default=None, metadata=known["status"].metadata))
    repair = _each(step_id=as_text, status=plain_status, evidence=_listed)
    said = {"description": "Several marks in place of one, all or none", "repair": repair}
    marks: Any = ("marks", tuple[mark, ...], field(default=(), metadata=said))  # type: ignore[valid-type]  # as above
    return _extended(mark, step_id, status, marks)
