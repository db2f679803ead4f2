"""The gates of a policy: work before an approval, stale plans, and the end of the work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from planning.plan.facts import PlanFacts
from planning.plan.model import Plan, listed_ids

if TYPE_CHECKING:
    from planning.policy.policy import PlanPolicy


def is_stale(policy: PlanPolicy, plan: Plan, facts: PlanFacts) -> bool:
    """True if the agent is to be reminded that the plan did not change for many calls."""
    return (
        policy.stale_after is not None
        and not facts.is_noticed
        and facts.calls - facts.changed >= policy.stale_after
        and any(step.status in {"pending", "in_progress"} for step in plan.steps)
    )


@attrs.frozen
class Finish:
    """The answer to an agent that claims to be finished.

    Attributes:
        ok: Whether it may.
        open_steps: The ids of the steps that are open.
        message: What the agent is to read where it may not; empty where it may.
    """

    ok: bool
    open_steps: tuple[str, ...] = ()
    message: str = ""


def open_steps(plan: Plan | None) -> tuple[str, ...]:
    """The ids of the steps of an active plan on which work is left: pending and in progress."""
    if plan is None or plan.status != "active":
        return ()
    return tuple([step.step_id for step in plan.steps if step.status in {"pending", "in_progress"}])


def irreplaceable(policy: PlanPolicy, plan: Plan | None) -> list[str]:
    """The ids of the steps that keep a policy from taking another plan in place of this one."""
    if policy.replace is None or plan is None or plan.status != "active":
        return []
    return [step.step_id for step in plan.steps if step.status != "done"]


def unfinished(step_ids: Sequence[str]) -> str:
    """The message for an agent that would stop with steps open."""
    verb = "is" if len(step_ids) == 1 else "are"
    return (
        f"{listed_ids(step_ids)} {verb} open. Do the work and mark what is done; mark a step blocked, with a "
        "note, if it cannot be done now."
    )


def waits(facts: PlanFacts | None, plan: Plan | None, tool: str) -> str | None:
    """Why work may not begin: the plan waits for approval, or was rejected; None when it may."""
    if facts is None or facts.approval not in {"waiting", "rejected"}:
        return None
    if plan is not None and plan.status == "abandoned":
        reason = "the plan was abandoned before it was approved; set up another plan first"
    elif facts.approval == "waiting":
        reason = "the plan waits for approval; end your turn and ask the user to approve it"
    else:
        reason = f"the plan was rejected ({facts.reason}); change the plan first"
    return f"{tool} was not called: {reason}"
