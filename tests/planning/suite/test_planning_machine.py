"""The six tools of a real session beside a naive model made of dictionaries and lists."""

from __future__ import annotations

import copy
import json
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from planning import (
    AddStep,
    ClearPlan,
    MarkStep,
    NewPlanStep,
    Plan,
    PlanningToolsSection,
    ReadPlan,
    SetupPlan,
    Toolbox,
    ToolValidationError,
    UpdateStep,
)
from planning.plan.text import DETAILS, NOTE, OBJECTIVE, TITLE, TextRule
from session import Session, Snapshot, ToolInvoked, select_latest
from strategies import anything, refused_texts, texts, untrimmed_texts

Model = dict[str, Any]


class Refused(Exception):
    """The model does not allow a call."""


def one_line(text: str, limit: int) -> str:
    text = text.strip()
    if not 1 <= len(text) <= limit or any(not " " <= each <= "~" for each in text):
        raise Refused
    return text


def lines(text: str | None, limit: int) -> str | None:
    if text is None or not text.strip():
        return None
    if len(text.strip()) > limit or any(not (" " <= each <= "~" or each in "\n\t") for each in text.strip()):
        raise Refused
    return text.strip()


def mostly(rule: TextRule) -> st.SearchStrategy[str]:
    """Texts of which most are let through."""
    return st.one_of(texts(rule), texts(rule), untrimmed_texts(rule), refused_texts(rule))


some_steps = st.lists(st.builds(NewPlanStep, mostly(TITLE), st.none() | mostly(DETAILS)), max_size=3).map(
    tuple
)
doors = st.sampled_from(["invoke", "mapping", "json"])
places = st.integers(0, 4)
statuses = st.sampled_from(["pending", "in_progress", "blocked", "done", "done", "done", "bogus"])


class Planning(RuleBasedStateMachine):
    """Every rule does one thing to both, and then they must agree."""

    snapshots = Bundle("snapshots")

    @initialize(objective=texts(OBJECTIVE), begin=st.booleans())
    def open(self, objective: str, begin: bool) -> None:
        self.session = Session()
        section = PlanningToolsSection(session=self.session)
        self.toolbox = Toolbox(section.tools(), session=self.session)
        self.model: Model | None = None
        self.accepted = 0
        if begin:
            self.setup("invoke", objective, (NewPlanStep("Look"), NewPlanStep("Fix")))

    def step_id(self, place: int) -> str:
        steps = self.model["steps"] if self.model else []
        return str(steps[place]["step_id"]) if place < len(steps) else "S999"

    def tell(self, door: str, name: str, command: Any, after: Model | None) -> None:
        """Call a tool; ``after`` is what the model makes of it, None where it refuses."""
        before = select_latest(self.session, Plan)
        if door == "invoke":
            try:
                success = self.toolbox.invoke(f"planning_{name}", command).success
            except ToolValidationError:
                success = False
        else:
            arguments = asdict(command)
            text = json.dumps(arguments) if door == "json" else arguments
            success = self.toolbox.call(f"planning_{name}", text).success
        assert success is (after is not None)
        if after is None:
            assert select_latest(self.session, Plan) is before
        else:
            self.model = after
            self.accepted += 1

    def active(self, *statuses: str) -> Model:
        """A copy of the model's plan, which must be in one of the statuses."""
        if self.model is None or self.model["status"] not in statuses:
            raise Refused
        return copy.deepcopy(self.model)

    def added(self, steps: tuple[NewPlanStep, ...], first: int) -> list[Model]:
        return [
            {
                "step_id": "S" + str(number).rjust(3, "0"),
                "title": one_line(step.title, 160),
                "details": lines(step.details, 512),
                "status": "pending",
                "notes": [],
            }
            for number, step in enumerate(steps, first)
        ]

    @rule(door=doors, objective=mostly(OBJECTIVE), steps=some_steps)
    def setup(self, door: str, objective: str, steps: tuple[NewPlanStep, ...]) -> None:
        after: Model | None = None
        with suppress(Refused):
            text = one_line(objective, 240)
            after = {"objective": text, "status": "active", "steps": self.added(steps, 1)}
        self.tell(door, "setup_plan", SetupPlan(objective, steps), after)

    @rule(door=doors, steps=some_steps)
    def add(self, door: str, steps: tuple[NewPlanStep, ...]) -> None:
        after: Model | None = None
        with suppress(Refused):
            plan = self.active("active")
            plan["steps"] += self.added(steps, len(plan["steps"]) + 1)
            after = plan if steps else None
        self.tell(door, "add_step", AddStep(steps), after)

    @rule(door=doors, place=places, title=st.none() | mostly(TITLE), details=st.none() | mostly(DETAILS))
    def update(self, door: str, place: int, title: str | None, details: str | None) -> None:
        after: Model | None = None
        with suppress(Refused):
            plan = self.active("active")
            changes = {} if details is None else {"details": lines(details, 512)}
            changes |= {} if title is None else {"title": one_line(title, 160)}
            if place < len(plan["steps"]) and changes:
                plan["steps"][place].update(changes)
                after = plan
        self.tell(door, "update_step", UpdateStep(self.step_id(place), title, details), after)

    @rule(door=doors, place=places, status=statuses, note=st.none() | mostly(NOTE))
    def mark(self, door: str, place: int, status: Any, note: str | None) -> None:
        after: Model | None = None
        with suppress(Refused):
            plan = self.active("active", "completed")
            text = lines(note, 512)
            blank = note is not None and text is None
            if place < len(plan["steps"]) and status != "bogus" and not blank:
                step = plan["steps"][place]
                step["status"] = status
                step["notes"] += [] if text is None else [text]
                done = all(each["status"] == "done" for each in plan["steps"])
                plan["status"] = "completed" if done else "active"
                after = plan
        self.tell(door, "mark_step", MarkStep(self.step_id(place), status, note), after)

    @rule(door=doors)
    def clear(self, door: str) -> None:
        after: Model | None = None
        with suppress(Refused):
            after = {**self.active("active", "completed"), "status": "abandoned", "steps": []}
        self.tell(door, "clear_plan", ClearPlan(), after)

    @rule(door=doors)
    def read(self, door: str) -> None:
        self.tell(door, "read_plan", ReadPlan(), copy.deepcopy(self.model))

    @rule(
        arguments=st.sampled_from(["{", "[]", "7", '{"objectiv": "x"}', '{"step_id": 7}', b"\xff", " null "])
    )
    def call_with_nonsense(self, arguments: str | bytes) -> None:
        before = select_latest(self.session, Plan)
        for name in ("planning_setup_plan", "planning_mark_step", "planning_update_step", "plan"):
            assert not self.toolbox.call(name, arguments).success
        assert select_latest(self.session, Plan) is before

    @rule(arguments=anything())
    def call_with_anything(self, arguments: Any) -> None:
        before = select_latest(self.session, Plan)
        assert not self.toolbox.call("planning_mark_step", arguments).success
        assert select_latest(self.session, Plan) is before

    @rule(target=snapshots, as_json=st.booleans())
    def snapshot(self, as_json: bool) -> tuple[Snapshot, Model | None]:
        snapshot = self.session.snapshot()
        if as_json:
            snapshot = Snapshot.from_json(snapshot.to_json())
        return snapshot, copy.deepcopy(self.model)

    @rule(kept=snapshots)
    def rollback(self, kept: tuple[Snapshot, Model | None]) -> None:
        snapshot, model = kept
        self.session.rollback(snapshot)
        self.model = copy.deepcopy(model)

    @invariant()
    def the_plan_is_the_models(self) -> None:
        plan = select_latest(self.session, Plan)
        found = None if plan is None else json.loads(json.dumps(asdict(plan)))
        assert found == self.model

    @invariant()
    def there_is_one_plan_and_one_event_for_each_accepted_call(self) -> None:
        assert len(self.session.select_all(Plan)) == (self.model is not None)
        assert len(self.session.select_all(ToolInvoked)) == self.accepted


TestPlanning = Planning.TestCase
TestPlanning.settings = settings(max_examples=40, stateful_step_count=20)
