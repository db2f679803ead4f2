"""Random changes, rewinds, forks and reopenings of a session in a store, against a list of plans."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from unittest.mock import patch
from uuid import uuid4

from planning.plan.commands import NewPlanStep, SetupPlan
from planning.plan.model import Plan
from planning.prompt import PlanningToolsSection
from planning.tools import Toolbox
from session import Session, Snapshot, stored
from session.stores import Store

try:
    from hypothesis import strategies as st
    from hypothesis.stateful import (
        RuleBasedStateMachine,
        invariant,
        precondition,
        rule,
        run_state_machine_as_test,
    )
except ImportError:
    raise ImportError("the suite needs hypothesis: pip install 'session-planning[testing]'") from None

__all__ = ["STEPS", "new_id", "opened", "run_machine"]

STEPS = tuple(NewPlanStep(f"Step {number}") for number in range(3))
"""The steps of the plans."""


def new_id() -> str:
    """The id of a session that no place has."""
    return f"suite:{uuid4()}"


def opened(store: Store, name: str) -> tuple[Session, Toolbox]:
    """A session in a store, and the planning tools on it."""
    session = Session(session_id=name, store=store)
    return session, Toolbox(PlanningToolsSection(session=session).tools(), session=session)


def run_machine(open_: Callable[[], Store]) -> None:
    """Change sessions at random, and hold each version of them to the plan that it had.

    Args:
        open_: Opens the store, as another process would.

    Raises:
        AssertionError: A version has another plan.
    """

    class Machine(_Machine):
        def open(self) -> Store:
            return open_()

    run_state_machine_as_test(Machine)


class _Machine(RuleBasedStateMachine):
    """A session in a store, and the plan that it had at each version."""

    def __init__(self) -> None:
        super().__init__()
        self.patch = patch.object(stored, "CHECKPOINT", 3)
        self.patch.start()
        self.plans: list[Plan | None] = [None]
        self.kept: list[tuple[Snapshot, Plan | None]] = []
        self.name = new_id()
        self.reopen()

    def open(self) -> Store:
        raise NotImplementedError

    def note(self) -> None:
        self.plans.append(self.session.select_latest(Plan))

    @rule()
    def reopen(self) -> None:
        self.session, self.toolbox = opened(self.open(), self.name)

    @rule()
    def set_up(self) -> None:
        self.toolbox.invoke("planning_setup_plan", SetupPlan(f"Plan {len(self.plans)}", STEPS))
        self.note()

    @rule(
        step=st.integers(1, 5),
        status=st.sampled_from(["pending", "in_progress", "blocked", "done"]),
        key=st.none() | st.integers(1, 9).map(str),
    )
    def mark(self, step: int, status: str, key: str | None) -> None:
        before = self.session.version
        arguments = {"step_id": f"S{step:03}", "status": status}
        context = {} if key is None else {"idempotency_key": f"{key} {len(self.plans)}"}
        result = self.toolbox.call("planning_mark_step", arguments, context=context)
        assert self.session.version == before + 1
        self.note()
        if result.success and context:
            again = self.toolbox.call("planning_mark_step", arguments, context=context)
            assert (again.message, self.session.version) == (result.message, before + 1)

    @rule()
    def fail(self) -> None:
        with suppress(ZeroDivisionError), self.session.transaction() as transaction:
            transaction.dispatch(SetupPlan("Never seen"))
            raise ZeroDivisionError

    @rule(data=st.data())
    def rewind(self, data: st.DataObject) -> None:
        version = data.draw(st.integers(0, len(self.plans) - 1))
        self.session.rewind(version)
        self.plans.append(self.plans[version])

    @rule()
    def snapshot(self) -> None:
        self.kept.append((Snapshot.from_json(self.session.snapshot().to_json()), self.plans[-1]))

    @precondition(lambda self: self.kept)
    @rule(data=st.data())
    def roll_back(self, data: st.DataObject) -> None:
        snapshot, plan = data.draw(st.sampled_from(self.kept))
        self.session.rollback(snapshot)
        self.plans.append(plan)

    @rule()
    def reset(self) -> None:
        self.session.reset()
        self.plans.append(None)

    @rule(data=st.data())
    def fork(self, data: st.DataObject) -> None:
        version = data.draw(st.integers(0, len(self.plans) - 1))
        self.name = new_id()
        self.session = self.session.fork(version, session_id=self.name)
        self.toolbox = Toolbox(PlanningToolsSection(session=self.session).tools(), session=self.session)
        self.plans = self.plans[: version + 1]

    @rule()
    def another_writer(self) -> None:
        other, toolbox = opened(self.open(), self.name)
        toolbox.call("planning_add_step", {"steps": [{"title": f"Theirs {len(self.plans)}"}]})
        assert self.session.refresh() == other.version
        self.plans.append(other.select_latest(Plan))

    @invariant()
    def is_true(self) -> None:
        assert self.session.version == len(self.plans) - 1
        assert self.session.select_latest(Plan) == self.plans[-1]

    def teardown(self) -> None:
        self.reopen()
        versions = range(len(self.plans))
        assert [self.session.at(version).select_latest(Plan) for version in versions] == self.plans
        if self.session.version:
            assert self.open().verify(self.name) == self.session.version
        self.patch.stop()
