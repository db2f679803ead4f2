"""An agent under a policy, for the tests of policies."""

from __future__ import annotations

import asyncio
from typing import Any

from planning import ApprovePlan, PlanningToolsSection, PlanPolicy, Toolbox
from planning.errors import cut
from planning.tools import tool
from session import Session

EVERYTHING = PlanPolicy(
    evidence="required",
    stale_after=3,
    finish_gate=2,
    approval=True,
    replace="refuse_unfinished",
    dependencies=True,
    most_in_progress=1,
    batch_marks=True,
    agent_edits=True,
)


class Agent:
    """A model of few words: it calls, and reads what comes back."""

    def __init__(self, policy: PlanPolicy | None, session: Session | None = None) -> None:
        self.session = Session() if session is None else session
        self.section = PlanningToolsSection(session=self.session, policy=policy)
        self.toolbox = Toolbox([*self.section.tools(), tool(work), tool(broken)], session=self.session)
        self.said: list[str] = []

    def plans(self, *steps: Any, is_approved: bool = True) -> Agent:
        assert self.call("setup_plan", objective="Ship it", initial_steps=list(steps)).startswith("Plan set")
        if is_approved:
            self.session.dispatch(ApprovePlan())
        return self

    def call(self, name: str, /, **arguments: Any) -> str:
        known = self.toolbox.tools
        result = self.toolbox.call(name if name in known else f"planning_{name}", arguments)
        self.said.append(f"> {name} {cut(ascii(arguments), 100)}\n{result.message}\n")
        return result.message

    def conversation(self) -> str:
        """What the agent has called and read."""
        return "\n".join(self.said)

    def call_in(self, is_async: bool, name: str, arguments: dict[str, Any]) -> str:
        """A call in plain or in async code."""
        box = self.toolbox
        return (asyncio.run(box.acall(name, arguments)) if is_async else box.call(name, arguments)).message

    def mark(self, step_id: Any, status: str, *evidence: str) -> str:
        return self.call(
            "mark_step", step_id=step_id, status=status, **{"evidence": evidence} if evidence else {}
        )

    def marks(self, *marks: tuple[str, str]) -> str:
        return self.call("mark_step", marks=[{"step_id": step, "status": status} for step, status in marks])


def work(result: str = "fine") -> str:
    """Work."""
    return result


def broken() -> dict[str, Any]:
    """Break."""
    return {"success": False, "error": "no"}
