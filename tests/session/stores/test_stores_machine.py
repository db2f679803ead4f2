"""Random changes, rewinds, forks, rollbacks and reopenings against a list of plans."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from store_cases import openers

from planning import Plan, PlanningToolsSection, Toolbox
from planning.commands import NewPlanStep, SetupPlan
from session import Session, Snapshot, stored

STEPS = tuple(NewPlanStep(f"Step {number}") for number in range(3))
STATUSES = st.sampled_from(["pending", "in_progress", "blocked", "done"])


class StoreMachine(RuleBasedStateMachine):
    """A session in a store, and the plan that it had at each version."""

    name = "sqlite"

    def __init__(self) -> None:
        super().__init__()
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(stored, "CHECKPOINT", 3)
        self.folder = Path(tempfile.mkdtemp())
        self.opener = openers(self.folder)[self.name]
        self.plans: list[Plan | None] = [None]
        self.kept: list[tuple[Snapshot, Plan | None]] = []
        self.forks = 0
        self.session_id = "run-0"
        self.open()

    def open(self) -> None:
        self.session = Session(session_id=self.session_id, store=self.opener())
        section = PlanningToolsSection(session=self.session)
        self.toolbox = Toolbox(section.tools(), session=self.session)

    def note(self) -> None:
        self.plans.append(self.session.select_latest(Plan))

    @rule()
    def set_up(self) -> None:
        self.toolbox.invoke("planning_setup_plan", SetupPlan(f"Plan {len(self.plans)}", STEPS))
        self.note()

    @rule(step=st.integers(1, 5), status=STATUSES, key=st.none() | st.integers(1, 9).map(str))
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
    def add(self) -> None:
        self.toolbox.call("planning_add_step", {"steps": [{"title": f"More {len(self.plans)}"}]})
        self.note()

    @rule()
    def fail(self) -> None:
        with pytest.raises(ZeroDivisionError), self.session.transaction() as transaction:
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
        self.forks += 1
        self.session_id = f"run-{self.forks}"
        self.session = self.session.fork(version, session_id=self.session_id)
        self.toolbox = Toolbox(PlanningToolsSection(session=self.session).tools(), session=self.session)
        self.plans = self.plans[: version + 1]

    @rule()
    def reopen(self) -> None:
        if len(self.plans) > 1:
            self.open()

    @rule()
    def another_writer(self) -> None:
        other = Session(session_id=self.session_id, store=self.opener())
        toolbox = Toolbox(PlanningToolsSection(session=other).tools(), session=other)
        toolbox.call("planning_add_step", {"steps": [{"title": f"Theirs {len(self.plans)}"}]})
        assert self.session.refresh() == other.version
        self.plans.append(other.select_latest(Plan))

    @invariant()
    def is_true(self) -> None:
        assert self.session.version == len(self.plans) - 1
        assert self.session.select_latest(Plan) == self.plans[-1]

    def teardown(self) -> None:
        if len(self.plans) > 1:
            self.open()
        assert [
            self.session.at(version).select_latest(Plan) for version in range(len(self.plans))
        ] == self.plans
        assert self.session.store is not None
        if self.session.version:
            assert self.session.store.verify(self.session_id) == self.session.version
        self.patch.undo()
        shutil.rmtree(self.folder)


class MemoryMachine(StoreMachine):
    """The same in memory."""

    name = "memory"


class PostgresMachine(StoreMachine):
    """The same in a database."""

    name = "postgres"


TestSqliteStore = StoreMachine.TestCase
TestPostgresStore = pytest.mark.postgres(PostgresMachine.TestCase)
TestMemoryStore = MemoryMachine.TestCase
