"""The facts of a policy about a plan: values next to it, which snapshots include.

They are loaded with the package, so that a program without a policy can read them back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from planning.plan.model import Plan, PlanStep

Approval = Literal["none", "waiting", "approved", "rejected"]


@dataclass(slots=True, frozen=True)
class Proof:
    """The evidence that a step is done.

    Attributes:
        evidence: Calls by their alias, such as ``C12``, and strings.
        verified: Whether the host's ``verify`` accepted one of the strings; else it is reported by the agent.
        tools: The tool of each call, by its alias.
    """

    evidence: tuple[str, ...]
    verified: bool = False
    tools: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """As a person reads it: ``verified with C4 (run_tests)``."""
        shown = [f"{each} ({self.tools[each]})" if each in self.tools else each for each in self.evidence]
        return f"{'verified' if self.verified else 'reported'} with {', '.join(shown)}"


@dataclass(slots=True, frozen=True)
class PlanFacts:
    """The facts about a plan that are not in it. Its mappings are never changed.

    Attributes:
        highest: The highest number that a step's id has had.
        calls: How many tool calls were made, planning calls not counted.
        changed: How many there were at the last change of the plan.
        begun: The moment at which a step last began; None in records that do not have it.
        began: The moment at which each step began: when it was last marked in progress, or else added. This
            is the number of calls by then, or more if several steps began since the last of them.
        depends_on: The ids of the steps that must be done first, by the step that waits for them.
        proofs: What shows that a step is done.
        approval: Whether the host has approved the plan; ``"none"`` if the plan was not submitted.
        reason: Why it was rejected.
        waiting: The steps that wait for approval by themselves.
        is_noticed: Whether the agent was reminded that the plan is stale.
        asked: How often the agent asked to finish since the last change.
    """

    highest: int = 0
    calls: int = 0
    changed: int = 0
    begun: int | None = None
    began: Mapping[str, int] = field(default_factory=dict)
    depends_on: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    proofs: Mapping[str, Proof] = field(default_factory=dict)
    approval: Approval = "none"
    reason: str | None = None
    waiting: tuple[str, ...] = ()
    is_noticed: bool = False
    asked: int = 0

    @property
    def next_begin(self) -> int:
        """The moment of a step that begins now: after every call that has begun."""
        return max(self.calls, self._last_begin + 1)

    @property
    def next_call(self) -> int:
        """The moment of a call that begins now: that of the step that began last, or just before the next."""
        return max(self.calls - 1, self._last_begin)

    @property
    def _last_begin(self) -> int:
        return max(self.began.values(), default=-1) if self.begun is None else self.begun


@dataclass(slots=True, frozen=True)
class EvidenceCall:
    """A call that was made on the present branch; its alias is ``C`` and its place in the slice, from 1.

    Attributes:
        tool: The tool's name.
        call_id: The id that the provider gave the call, when there is one.
        success: Whether it succeeded.
        began: The moment at which it began; None in records that do not have it.
    """

    tool: str
    call_id: str | None
    success: bool
    began: int | None = field(default=None, compare=False)


class HasPlan(Protocol):
    """The sources that the selectors take: a session, ``session.at(version)``, a snapshot."""

    def select_latest(self, slice_type: type[Any], /) -> Any:
        """The newest item of a slice, or None."""
        ...


def ready_steps(source: HasPlan | Plan) -> tuple[PlanStep, ...]:
    """The pending steps whose prerequisites are all done, in the plan's order.

    Args:
        source: A session, ``session.at(version)`` or a snapshot; a plan has no dependencies in itself.
    """
    facts: PlanFacts | None = None if isinstance(source, Plan) else source.select_latest(PlanFacts)
    plan: Plan | None = source if isinstance(source, Plan) else source.select_latest(Plan)
    if plan is None:
        return ()
    depends_on = {} if facts is None else facts.depends_on
    open_ = {step.step_id for step in plan.steps if step.status != "done"} if depends_on else set()
    return tuple(
        [
            step
            for step in plan.steps
            if step.status == "pending" and open_.isdisjoint(depends_on.get(step.step_id, ()))
        ]
    )
