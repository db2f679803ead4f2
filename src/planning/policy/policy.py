"""The host's rules for a plan, as one value, and the parameters of the planning tools under them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import MISSING, field, fields, make_dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, get_type_hints

import attrs

from planning.plan.commands import (
    AddStep,
    MarkStep,
    NewPlanStep,
    SetupPlan,
    UpdateStep,
)
from planning.plan.model import PlanStep, StepStatus, as_text, spelled_status
from planning.plan.text import ASCII, TextRules, rules_for
from planning.policy.reducers import OPTIONAL_TOOLS, SEED_TOOLS

Verify = Callable[[PlanStep, str], bool | Awaitable[bool]]
"""A function that says whether text proves that a step is done."""

_LONGEST_WAIT = 3_600.0
_EVIDENCE = (None, "required", "unique")  # each stricter than the one before


def _short(name: object) -> str:
    """The short name of a tool: ``mark`` for ``planning_mark_step``."""
    return str(name).removeprefix("planning_").partition("_")[0]


def _tool_names(names: Iterable[str] | None) -> tuple[str, ...] | None:
    if isinstance(names, str):
        raise TypeError(f'tools must be several names, such as ("mark", "read"), got {names!r}')
    return None if names is None else tuple(map(_short, names))


def _at_least_one(_policy: Any, field: attrs.Attribute[Any], value: object) -> None:
    if value is not None and not (type(value) is int and value >= 1):
        raise ValueError(f"{field.name} must be a whole number of at least 1, or None; got {value!r}")


def _is_flag(_policy: Any, field: attrs.Attribute[Any], value: object) -> None:
    if type(value) is not bool:
        raise TypeError(f"{field.name} must be True or False, got {value!r}")


def _one_of(*options: str | None) -> Callable[[Any, attrs.Attribute[Any], object], None]:
    def check(_policy: Any, field: attrs.Attribute[Any], value: object) -> None:
        if value not in options:
            named = ", ".join(map(repr, options))
            raise ValueError(f"{field.name} must be one of {named}; got {value!r}")

    return check


@attrs.frozen(kw_only=True)
class PlanPolicy:
    """The host's demands on a plan; ``PlanningToolsSection(session=..., policy=PlanPolicy(...))``.

    Tools, evidence, approval and the gates apply to the agent, which calls the section's tools. Dependencies
    and ``most_in_progress`` apply to every change of the session's plan, except where it shows a workflow's
    run. Each setting is off by default.

    Attributes:
        tools: The planning tools that the agent gets: of ``setup``, ``add``, ``update``, ``mark``, ``clear``
            and ``read``, and with ``agent_edits`` also ``remove`` and ``move``; None for all of them.
        evidence: ``"required"``: a step is marked done only with evidence: a successful call that was made
            since the step began, or text that ``verify`` accepts. ``"unique"``: the same, and a call proves
            only one step.
        verify: Called with ``(step, text)`` for evidence that is not a call, plain or async. It returns
            whether the text proves that the step is done.
        verify_timeout: The timeout of ``verify``, in seconds.
        stale_after: After this number of tool calls without a change of the plan, the reminder says so once.
        finish_gate: How often ``section.may_finish()`` refuses, without a change of the plan in between,
            because steps are open; None for never.
        approval: Whether a new plan waits for ``ApprovePlan`` before other tools run, and a step that is
            added or retitled later waits before it may begin.
        replace: ``"refuse_unfinished"``: a plan with open steps cannot be replaced by a new one.
        dependencies: Whether steps may depend on others (``depends_on``).
        most_in_progress: How many steps may be in progress at once.
        batch_marks: Whether one call may mark several steps, all or none (``marks``).
        agent_edits: Whether the agent may remove and move steps.
        text: ``"ascii"``, or ``"unicode"`` for titles and notes in any language.
        offer: ``"possible"``: the definitions of each request hold only the planning tools that the plan
            takes then, with its step ids as an enum; without a plan, only ``setup``. ``"all"``: always the
            same, so that a provider can cache them.

    Raises:
        ValueError: A setting has an invalid value; the message names the valid ones.
        TypeError: A setting has the wrong type.
    """

    tools: tuple[str, ...] | None = attrs.field(default=None, converter=_tool_names)
    evidence: Literal["required", "unique"] | None = attrs.field(default=None, validator=_one_of(*_EVIDENCE))
    verify: Verify | None = attrs.field(default=None)
    verify_timeout: float = attrs.field(default=30.0)
    stale_after: int | None = attrs.field(default=None, validator=_at_least_one)
    finish_gate: int | None = attrs.field(default=None, validator=_at_least_one)
    approval: bool = attrs.field(default=False, validator=_is_flag)
    replace: Literal["refuse_unfinished"] | None = attrs.field(
        default=None, validator=_one_of(None, "refuse_unfinished")
    )
    dependencies: bool = attrs.field(default=False, validator=_is_flag)
    most_in_progress: int | None = attrs.field(default=None, validator=_at_least_one)
    batch_marks: bool = attrs.field(default=False, validator=_is_flag)
    agent_edits: bool = attrs.field(default=False, validator=_is_flag)
    text: Literal["ascii", "unicode"] = attrs.field(default="ascii", validator=_one_of("ascii", "unicode"))
    offer: Literal["all", "possible"] = attrs.field(default="all", validator=_one_of("all", "possible"))

    @tools.validator
    def _check_tools(self, _field: attrs.Attribute[Any], value: tuple[str, ...] | None) -> None:
        names = self.offered
        unknown = [name for name in value or () if name not in names]
        if unknown:
            more = "" if self.agent_edits else "; remove and move need agent_edits=True"
            raise ValueError(f"tools: no planning tool is named {unknown[0]!r}; use {', '.join(names)}{more}")
        if value is not None and not value:
            raise ValueError("tools is empty: name at least one, or disable the section")

    @verify.validator
    def _check_verify(self, _field: attrs.Attribute[Any], value: object) -> None:
        if value is not None and (self.evidence is None or not callable(value)):
            raise ValueError('verify must be a function (step, text) -> bool, and needs evidence="required"')

    @verify_timeout.validator
    def _check_timeout(self, _field: attrs.Attribute[Any], value: object) -> None:
        if type(value) not in {int, float} or not 0 < value <= _LONGEST_WAIT:  # type: ignore[operator]  # a number
            raise ValueError(f"verify_timeout must be seconds of more than 0, at most {_LONGEST_WAIT:g}")

    @property
    def offered(self) -> tuple[str, ...]:
        """The short names of the tools that the agent may have."""
        return tuple(map(_short, SEED_TOOLS + OPTIONAL_TOOLS if self.agent_edits else SEED_TOOLS))

    @property
    def names(self) -> frozenset[str]:
        """The full names of the tools that the agent gets."""
        short = self.offered if self.tools is None else self.tools
        return frozenset(f"planning_{name}" for name in SEED_TOOLS + OPTIONAL_TOOLS if _short(name) in short)


def strictest(policy: PlanPolicy, other: PlanPolicy | None) -> PlanPolicy:
    """The stricter of each demand of two policies; the tools, and what they take, are those of the first."""
    if other is None or other == policy:
        return policy
    judges = [each.verify for each in (policy, other) if each.evidence is not None]
    return attrs.evolve(
        policy,
        evidence=max(policy.evidence, other.evidence, key=_EVIDENCE.index),
        verify=None if None in judges else next(iter(judges), None),
        stale_after=_strictest(min, policy.stale_after, other.stale_after),
        finish_gate=_strictest(max, policy.finish_gate, other.finish_gate),
        approval=policy.approval or other.approval,
        replace=policy.replace or other.replace,
        dependencies=policy.dependencies or other.dependencies,
        most_in_progress=_strictest(min, policy.most_in_progress, other.most_in_progress),
    )


def _strictest(pick: Callable[[list[int]], int], *numbers: int | None) -> int | None:
    demanded = [number for number in numbers if number is not None]
    return pick(demanded) if demanded else None


Parameters = Mapping[str, type[Any]]


def parameters_of(policy: PlanPolicy) -> Parameters:
    """The type of a tool's parameters, a subclass of the command, by the name of each tool that has some."""
    return _made(
        has_evidence=policy.evidence is not None,
        has_dependencies=policy.dependencies,
        is_batched=policy.batch_marks,
        rules=rules_for(policy.text),
    )


@cache
def _made(*, has_evidence: bool, has_dependencies: bool, is_batched: bool, rules: TextRules) -> Parameters:
    """The same; at most 16 for a program, as it takes half a millisecond to read one."""
    step = NewPlanStep
    if has_dependencies:
        about = "Steps to do first: ids, titles, or places in this call from 1"
        step = _extend(step, rules, depends_on=(tuple[str | int, ...], (), {"description": about}))
    elif rules is not ASCII:
        step = _extend(step, rules)
    several: Any = tuple[step, ...]  # type: ignore[valid-type]  # a class that was made above
    repair = {"repair": _each(depends_on=_wrap_in_list)}
    evidence = {"description": "To mark it done: calls that show it, such as C12", "repair": _wrap_in_list}
    mark = _extend(MarkStep, rules, **{"evidence": (tuple[str, ...], (), evidence)} if has_evidence else {})
    return MappingProxyType({
        "planning_setup_plan": _extend(SetupPlan, rules, initial_steps=(several, (), repair)),
        "planning_add_step": _extend(AddStep, rules, steps=(several, MISSING, repair)),
        "planning_update_step": _extend(UpdateStep, rules),
        "planning_mark_step": _batch(mark, rules) if is_batched else mark,
    })  # fmt: skip


def _extend(command: type[Any], rules: TextRules, **more: tuple[Any, Any, Mapping[str, Any]]) -> type[Any]:
    """A subclass of a command, whose instances it can be given as well: with other rules, and more fields.

    A field is its type, its default and its metadata, beside that of the command's own field.
    """
    own, hints = {each.name: each for each in fields(command)}, get_type_hints(command)
    wanted: dict[str, tuple[Any, Any, Mapping[str, Any]]] = {
        name: (hints[name], own[name].default, getattr(rules, name).about(own[name].metadata["description"]))
        for name in own
        if hasattr(rules, name)
    }
    made: list[Any] = []
    for name, (kind, default, metadata) in (wanted | more).items():
        known = own[name].metadata if name in own else {}
        made.append((name, kind, field(default=default, metadata={**known, **metadata})))
    return make_dataclass(command.__name__, made, bases=(command,), frozen=True, slots=True)


def _wrap_in_list(sent: Any) -> Any:
    """One item that was sent without its array, in one; anything else as it is."""
    return [sent] if type(sent) in {str, int} else sent


def _each(**repairs: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Repairs fields of each object in an array, as they are repaired in a single one."""

    def repaired(item: Any) -> Any:
        if not isinstance(item, dict):
            return item
        return item | {name: repair(item[name]) for name, repair in repairs.items() if name in item}

    return lambda items: list(map(repaired, items)) if isinstance(items, list) else items


def _batch(mark: type[Any], rules: TextRules) -> type[Any]:
    """One mark, or several under ``marks``."""
    repair = _each(step_id=as_text, status=spelled_status, evidence=_wrap_in_list)
    about = {"description": "Several marks in place of one, all or none", "repair": repair}
    several: Any = tuple[mark, ...]  # type: ignore[valid-type]  # a class that was made above
    return _extend(
        mark,
        rules,
        step_id=(str | None, None, {}),
        status=(StepStatus | None, None, {}),
        marks=(several, (), about),
    )
