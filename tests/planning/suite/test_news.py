"""What others have changed in a plan: an agent under a policy reads it once, with its next call."""

from __future__ import annotations

from typing import Any

import pytest

from planning import PlanningToolsSection, PlanPolicy, RemoveStep, Toolbox
from planning.tools.context import AGENT
from session import Session

LOOKED = "Since you last looked: "


class Planned:
    """A session with a plan, and the agents that call its tools."""

    def __init__(self) -> None:
        self.session = Session()
        section = PlanningToolsSection(session=self.session, policy=PlanPolicy())
        self.box = Toolbox(section.tools(), session=self.session)
        self.mark("host", None, 1, setup=["A", "B", "C"])

    def mark(self, actor: str | None, agent: Any, step_id: Any, **more: Any) -> str:
        context = {"actor": actor, AGENT: agent}
        if setup := more.get("setup"):
            arguments = {"objective": "Ship it", "initial_steps": setup}
            return self.box.call("planning_setup_plan", arguments, context=context).message
        arguments = {"step_id": step_id, "status": more.get("status", "done")}
        return self.box.call("planning_mark_step", arguments, context=context).message


def test_an_agent_that_has_not_looked_yet_hears_nothing_and_then_each_change_once() -> None:
    planned = Planned()
    assert planned.mark("ann", "1", 1) == "S001 done. Next: S002 B"
    assert planned.mark("bob", "1", 2) == "S002 done. Next: S003 C"
    assert (
        planned.mark("ann", "1", 3, status="blocked")
        == f"{LOOKED}S002 done. S003 blocked. No other step is open."
    )
    assert planned.mark("ann", "1", 3, status="pending") == "S003 pending."
    assert planned.mark("bob", "1", 3, status="blocked") == "S003 blocked. No other step is open."


def test_a_refusal_has_the_news_too() -> None:
    planned = Planned()
    planned.mark("ann", "1", 1)
    planned.session.dispatch(RemoveStep("S003"))
    refused = "Refused, nothing changed. step_id: the plan has no step S003; its steps are S001 to S002"
    assert planned.mark("ann", "1", "S003") == f"{refused}. {LOOKED}S003 was removed."
    assert planned.mark("ann", "1", "S003") == refused
    assert planned.mark("ann", "1", 2) == "S002 done. Plan completed."


ONE, TWO = object(), object()


@pytest.mark.parametrize(("first", "second"), [("1", "2"), (ONE, TWO), (ONE, "1")])
def test_agents_of_one_name_hear_of_each_other_and_a_new_one_resumes(first: Any, second: Any) -> None:
    planned = Planned()
    planned.mark("ann", first, 1)
    assert planned.mark("ann", second, 2) == "S002 done. Next: S003 C"
    planned.session.dispatch(RemoveStep("S003"))
    assert planned.mark("ann", first, 1) == (
        f"{LOOKED}S002 done. S003 was removed. Plan completed. S001 is already done. Plan completed."
    )
    assert planned.mark("ann", object(), 1) == "S001 is already done. Plan completed."


def test_without_a_plan_there_is_nothing_to_compare() -> None:
    planned = Planned()
    planned.mark("ann", "1", 1)
    planned.session.reset()
    removed = "Refused, nothing changed. no plan yet; call planning_setup_plan first"
    assert planned.mark("ann", "1", 1) == f"{removed}. {LOOKED}Plan removed."
    assert planned.mark("ann", "1", 1) == removed
    assert planned.mark("ann", "1", 1, setup=["A"]) == "Plan set: S001. Next: S001 A"


@pytest.mark.parametrize(("others", "hears"), [(99, True), (100, False)])
def test_of_very_many_agents_the_latest_are_known(others: int, hears: bool) -> None:
    planned = Planned()
    for actor in ("ann", *map(str, range(others))):
        planned.mark(actor, "1", 1)
    planned.session.dispatch(RemoveStep("S003"))
    assert planned.mark("ann", "1", 1).startswith(LOOKED) is hears
