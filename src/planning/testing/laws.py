"""The laws of a plan, as one assertion."""

from __future__ import annotations

import json
from typing import get_args

from planning.plan.diff import diff_plans
from planning.plan.facts import HasPlan
from planning.plan.model import STEP_STATUSES, Plan, PlanStatus
from planning.plan.render import plan_to_dict
from session import Session, VersionError


def check_plan_laws(source: Plan | HasPlan | None) -> None:
    """Check that a plan is one that the planning tools can make.

    Its strings keep their rules, no step id occurs twice, it is completed when every step is done, and an
    abandoned plan has no steps. For a session, this holds for each version that it keeps, and the
    difference between two versions leads from one to the other. No plan at all is fine.

    Args:
        source: A plan, a session, ``session.at(version)`` or a snapshot.

    Raises:
        AssertionError: A law is broken; the message names the law and the plan.
    """
    if isinstance(source, Session):
        _check_history(source)
    plan = source if isinstance(source, Plan) or source is None else source.select_latest(Plan)
    if plan is not None:
        _check(plan)


def _check(plan: Plan) -> None:
    try:
        Plan.check_slice([plan])
    except (ValueError, TypeError, AttributeError) as error:
        raise AssertionError(f"{error}: {plan!r}") from None
    statuses = [step.status for step in plan.steps]
    _hold(plan.status in get_args(PlanStatus), f"unknown status {plan.status!r}", plan)
    _hold(set(statuses) <= set(STEP_STATUSES), f"unknown status of a step among {statuses}", plan)
    _hold(plan.status != "abandoned" or not statuses, "an abandoned plan has steps", plan)
    is_done = bool(statuses) and set(statuses) == {"done"}
    _hold(
        not is_done or plan.status == "completed", "every step is done, and the plan is not completed", plan
    )
    data = plan_to_dict(plan)
    _hold(json.loads(json.dumps(data)) == data, "its JSON form changes on the way", plan)


def _check_history(session: Session) -> None:
    after = session.select_latest(Plan)
    for version in range(session.version - 1, -1, -1):
        try:
            before = session.at(version).select_latest(Plan)
        except VersionError:  # the session keeps its last changes only
            return
        if before is not None and before is not after:
            _check(before)
        if diff_plans(before, after).apply(before) != after:
            raise AssertionError(
                f"the difference from version {version} does not lead to the next: {after!r}"
            )
        after = before


def _hold(law: object, broken: str, plan: Plan) -> None:
    if not law:
        raise AssertionError(f"{broken}: {plan!r}")
