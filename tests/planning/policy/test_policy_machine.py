"""Policies drawn at random beside a naive model: no sequence of calls reaches what the policy forbids.

One class, over 400 lines: all its rules share one model. Two sections share the session.
"""

from __future__ import annotations

import asyncio
import copy
import json
import re
import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

from attrs import evolve
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from planning import ApprovePlan, Plan, PlanningToolsSection, PlanPolicy, RejectPlan, RemoveStep, Toolbox
from planning.plan.facts import EvidenceCall, PlanFacts
from planning.tools import Tool, ToolResult, tool
from session import Session
from session.stores import SqliteStore

BEGINS = ("in_progress", "done")
policies = st.builds(
    PlanPolicy,
    evidence=st.sampled_from([None, "required", "unique"]),
    approval=st.booleans(),
    replace=st.sampled_from([None, "refuse_unfinished"]),
    dependencies=st.booleans(),
    most_in_progress=st.sampled_from([None, 1, 2]),
    batch_marks=st.just(True),
    agent_edits=st.just(True),
)
rarely, mostly = st.sampled_from([False, False, True]), st.sampled_from([True, True, True, False])
pairs = st.tuples(policies, st.one_of(policies, policies, st.none()))
limits = st.tuples(policies, policies).map(
    lambda pair: tuple(evolve(each, most_in_progress=most) for most, each in enumerate(pair, 1))
)
doors = st.tuples(st.sampled_from(["call", "text", "acall"]), st.integers(0, 1))
"""How a call is made, and of which of two sections."""
Door = tuple[str, int]
LOOSE = PlanPolicy()
places = st.sampled_from([*range(4)] * 2 + [4, 5])
statuses = st.sampled_from(["pending", "in_progress", "in_progress", "blocked", "done", "done", "done"])
spellings = st.sampled_from(["{}", "plain", "number", "digits"])
numbers = st.lists(st.integers(1, 9), max_size=2)
marks = st.tuples(doors, places, statuses, spellings, numbers)
Mark = tuple[Door, int, str, str, list[int]]


@tool
def work(fails: bool = False) -> dict[str, Any]:
    """Work."""
    return {"success": not fails, "error": "no"} if fails else {"success": True}


@tool
def look() -> str:
    """Look, and change nothing."""
    return "seen"


LOOK = Tool("look", "Look.", lambda: "seen", read_only=True)


BEGINNING: list[Mark] = [
    (("call", 0), 2, "in_progress", "{}", []),
    (("call", 1), 3, "in_progress", "{}", []),
    (("call", 0), 1, "in_progress", "{}", []),  # it depends on another
    (("call", 0), 4, "in_progress", "{}", []),  # it was added after the approval
    (("call", 1), 2, "done", "{}", [9]),
    (("call", 0), 2, "done", "{}", [9]),
]
"""Marks that most policies refuse, each for another reason."""
WORDS = (
    "needs evidence, which this tool does not take",
    "is not evidence for",
    "waits for approval",
    "depends on",
    "may be in progress",
    "finish the plan, or drop it",
    "Since you last looked",
)
"""What is said only where a policy holds."""


class Refused(Exception):
    """The model does not allow a call."""


class Policed(RuleBasedStateMachine):
    """Every rule does one thing to both, and then they must agree."""

    reached: ClassVar = Counter[str]()

    @initialize(
        sections=st.one_of(pairs, pairs, limits).flatmap(st.permutations),
        is_stored=rarely,
        marks=st.lists(marks, min_size=4, max_size=8),
        begins=mostly,
    )
    def open(
        self, sections: list[PlanPolicy | None], is_stored: bool, marks: list[Mark], begins: bool
    ) -> None:
        self.sections = sections
        self.policy = self.strictest(*[each or LOOSE for each in sections])
        self.folder = Path(tempfile.mkdtemp()) if is_stored else None
        self.stores = [SqliteStore(self.folder / "plans.db") for _ in range(3)] if self.folder else []
        *sessions, self.observer = [Session(store=store, session_id="one") for store in self.stores] or [
            Session()
        ]
        self.sessions = sessions or [self.observer]
        self.box(self.observer)
        self.boxes = [self.box(session) for session in self.sessions]
        self.turn = 0
        self.model: dict[str, Any] = {"plan": None, "highest": 0, "calls": [], "approval": "none"}
        self.known = [(0, copy.deepcopy(self.model))]
        self.message = ""
        if begins:
            self.setup(("call", 0), [[], [1], [], []])
            self.do_work(("call", 0), fails=False)
            self.approve()
            self.add(("call", 1), [[], []])
            self.mark([*BEGINNING, *marks])
            self.setup(("call", 1), [[], []])

    def teardown(self) -> None:
        for store in getattr(self, "stores", ()):
            store.close()
        if getattr(self, "folder", None):
            shutil.rmtree(str(self.folder))

    def strictest(self, one: PlanPolicy, other: PlanPolicy) -> PlanPolicy:
        """The policy that demands what either does."""
        most = [each.most_in_progress for each in (one, other) if each.most_in_progress]
        kinds = {one.evidence, other.evidence}
        return PlanPolicy(
            evidence="unique" if "unique" in kinds else "required" if "required" in kinds else None,
            approval=one.approval or other.approval,
            replace="refuse_unfinished" if one.replace or other.replace else None,
            dependencies=one.dependencies or other.dependencies,
            most_in_progress=min(most) if most else None,
        )

    def box(self, session: Session) -> list[Toolbox]:
        """The toolboxes of the two sections, which are made in their order."""
        made = [PlanningToolsSection(session=session, policy=policy) for policy in self.sections]
        return [Toolbox([*section.tools(), work, LOOK], session=session) for section in made]

    def own(self, door: Door) -> PlanPolicy:
        """The policy of the section of a call, which says what arguments its tools take."""
        return self.sections[door[1]] or LOOSE

    @property
    def session(self) -> Session:
        """That of the process whose turn it is."""
        return self.sessions[self.turn % len(self.sessions)]

    def state(self) -> Any:
        """All that a refusal must leave as it was."""
        self.observer.refresh()
        return self.observer.select_latest(Plan), self.observer.select_latest(PlanFacts)

    def tell(self, door: Door, name: str, arguments: dict[str, Any], after: dict[str, Any] | None) -> bool:
        """Make a call; ``after`` is what the model makes of it, None where it refuses."""
        self.turn += 1
        before, version = self.state(), self.observer.version
        result = self.call(door, name, arguments)
        self.message = result.message
        self.reached.update(each for each in WORDS if each in result.message)
        most = {each and each.most_in_progress for each in self.sections}
        self.reached["the lower of two limits"] += "may be in progress" in result.message and most == {1, 2}
        assert result.success is (after is not None), (name, arguments, result.message, self.model)
        if after is None:
            assert self.state() == before
            assert self.session.version <= version + 1
        else:
            self.model = after
        self.known.append((self.session.version, copy.deepcopy(self.model)))
        return result.success

    def call(self, door: Door, name: str, arguments: dict[str, Any]) -> ToolResult:
        how, section = door
        box = self.boxes[self.turn % len(self.boxes)][section]
        if how == "acall":
            return asyncio.run(box.acall(name, arguments))
        return box.call(name, json.dumps(arguments) if how == "text" else arguments)

    # The model

    def plan(self, model: dict[str, Any], *allowed: str) -> dict[str, Any]:
        plan: dict[str, Any] | None = model["plan"]
        if plan is None or plan["status"] not in allowed:
            raise Refused
        return plan

    def step(self, model: dict[str, Any], place: int) -> dict[str, Any]:
        steps: list[dict[str, Any]] = self.plan(model, "active", "completed")["steps"]
        if place >= len(steps):
            raise Refused
        return steps[place]

    def settled(self, plan: dict[str, Any]) -> None:
        done = bool(plan["steps"]) and all(each["status"] == "done" for each in plan["steps"])
        plan["status"] = "completed" if done else "active"

    def spelled(self, place: int, spelling: str) -> Any:
        steps = self.model["plan"]["steps"] if self.model["plan"] else []
        number = int(steps[place]["id"][1:]) if place < len(steps) else 99
        return {"plain": f"s{number}", "number": number, "digits": str(number)}.get(
            spelling, f"S{number:03d}"
        )

    def marked(self, model: dict[str, Any], place: int, status: str, evidence: list[str]) -> None:
        """One mark, or a refusal; evidence is checked at the end of a call, so after the others."""
        step, plan = self.step(model, place), model["plan"]
        if step["status"] == status and not evidence:
            return  # nothing changes
        others = {each["id"]: each for each in plan["steps"]}
        if status in BEGINS and step["waits"]:
            raise Refused
        is_open = any(others[each]["status"] != "done" for each in step["needs"])
        if self.policy.dependencies and status in BEGINS and is_open:
            raise Refused
        running = sum(each["status"] == "in_progress" and each is not step for each in plan["steps"])
        if status == "in_progress" and running >= (self.policy.most_in_progress or 99):
            raise Refused
        if status == "in_progress" != step["status"]:  # one that says again what is so begins nothing
            step["began"] = len(model["calls"])
        if status != "done":
            step["proof"] = None
        step["status"] = status
        if self.policy.evidence is not None and status == "done":
            self.proved(model, step, evidence)
        self.settled(plan)

    def proved(self, model: dict[str, Any], step: dict[str, Any], evidence: list[str]) -> None:
        others = [each for each in model["plan"]["steps"] if each is not step]
        used = {each for other in others for each in other["proof"] or ()}
        for each in evidence:
            number = int(each[1:])
            is_used = self.policy.evidence == "unique" and f"C{number}" in used
            if not step["began"] < number <= len(model["calls"]) or not model["calls"][number - 1] or is_used:
                raise Refused
        if not evidence:
            raise Refused
        step["proof"] = list(dict.fromkeys(f"C{int(each[1:])}" for each in evidence))

    def added(
        self, sender: PlanPolicy, model: dict[str, Any], needs: list[list[int]], *, is_more: bool
    ) -> list[dict[str, Any]]:
        """New steps; a number is a place in the call, or else the id of a step."""
        old = [each["id"] for each in model["plan"]["steps"]] if is_more else []
        first = model["highest"] + 1 if is_more else 1
        fresh = [f"S{first + place:03d}" for place in range(len(needs))]
        meant: dict[str, list[str]] = {}
        for own, each in zip(fresh, needs, strict=True):
            ids = [fresh[at - 1] if at <= len(fresh) else f"S{at:03d}" for at in each]
            meant[own] = list(dict.fromkeys(ids)) if sender.dependencies else []
            if any(needed not in old + fresh for needed in meant[own]):
                raise Refused
        free = set(old)
        for _ in fresh:
            free |= {own for own in fresh if free.issuperset(meant[own])}
        if not free.issuperset(fresh):
            raise Refused  # they wait for each other
        model["highest"] = first + len(needs) - 1
        began = len(model["calls"])
        new = {"title": "", "began": began, "status": "pending", "proof": None, "waits": 0}
        return [{"id": own, "needs": meant[own], **new} for own in fresh]

    def sent(self, own: PlanPolicy, needs: list[list[int]]) -> list[dict[str, Any]]:
        more = [{"depends_on": each} if own.dependencies else {} for each in needs]
        return [{"title": f"t{number}", **each} for number, each in enumerate(more)]

    def asks(self, model: dict[str, Any], steps: list[dict[str, Any]], *, always: bool = False) -> None:
        """The user is asked for approval."""
        if not self.policy.approval:
            return
        if always or model["approval"] in {"waiting", "rejected"}:
            model["approval"] = "waiting"
        else:
            for each in steps:
                each["waits"] = 1

    def is_held(self) -> bool:
        return self.model["approval"] in {"waiting", "rejected"}

    def tried(self, change: Any) -> dict[str, Any] | None:
        after = copy.deepcopy(self.model)
        try:
            change(after)
        except Refused:
            return None
        return after

    # What the agent does

    @rule(door=doors, needs=st.lists(st.lists(st.integers(1, 4), max_size=2), max_size=4))
    def setup(self, door: Door, needs: list[list[int]]) -> None:
        def change(model: dict[str, Any]) -> None:
            old = model["plan"]
            is_open = old and old["status"] == "active" and any(s["status"] != "done" for s in old["steps"])
            if self.policy.replace and is_open:
                raise Refused
            steps = self.added(self.own(door), model, needs, is_more=False)
            model["plan"] = {"status": "active", "steps": steps}
            model["approval"] = "waiting" if self.policy.approval else "none"

        arguments = {"objective": "o", "initial_steps": self.sent(self.own(door), needs)}
        self.tell(door, "planning_setup_plan", arguments, self.tried(change))

    @rule(door=doors, needs=st.lists(numbers, min_size=1, max_size=2))
    def add(self, door: Door, needs: list[list[int]]) -> None:
        def change(model: dict[str, Any]) -> None:
            plan = self.plan(model, "active")
            steps = self.added(self.own(door), model, needs, is_more=True)
            plan["steps"] += steps
            self.asks(model, steps)

        self.tell(door, "planning_add_step", {"steps": self.sent(self.own(door), needs)}, self.tried(change))

    def send_mark(self, door: Door, place: int, status: str, spelling: str, evidence: list[str]) -> bool:
        evidence = evidence if self.own(door).evidence else []
        more = {"evidence": evidence} if self.own(door).evidence else {}
        arguments = {"step_id": self.spelled(place, spelling), "status": status, **more}
        after = self.tried(lambda model: self.marked(model, place, status, evidence))
        return self.tell(door, "planning_mark_step", arguments, after)

    @rule(calls=st.lists(marks, min_size=1, max_size=6))
    def mark(self, calls: list[Mark]) -> None:
        for door, place, status, spelling, evidence in calls:
            if not self.send_mark(door, place, status, spelling, [f"C{each}" for each in evidence]):
                self.carry_out_the_remedy(("call", door[1]), place, status)

    def carry_out_the_remedy(self, door: Door, place: int, status: str) -> None:
        """What a refused mark says to do is accepted."""
        said = self.message
        places = {each["id"]: at for at, each in enumerate((self.model["plan"] or {"steps": []})["steps"])}
        if found := re.search(r"send evidence with a call made since it began: (C\d+)", said):
            assert self.send_mark(door, place, status, "plain", [found[1]])
        elif found := re.search(r"mark (S\d+).* done, blocked or pending first", said):
            assert self.send_mark(door, places[found[1]], "pending", "plain", [])
        elif found := re.search(r"do (S\d+) first", said):
            self.send_mark(door, places[found[1]], "in_progress", "plain", [])
            assert "depends on" not in self.message
        elif "does the work" in said and not self.is_held():
            self.do_work(door, fails=False)
            assert self.send_mark(door, place, status, "plain", [f"C{len(self.model['calls'])}"])

    @rule(door=doors, marks=st.lists(st.tuples(places, statuses, numbers), min_size=2, max_size=4))
    def mark_several(self, door: Door, marks: list[tuple[int, str, list[int]]]) -> None:
        def change(model: dict[str, Any]) -> None:
            begun = set()
            if not self.own(door).batch_marks:
                raise Refused
            for place, status, evidence in marks:
                sent = [f"C{each}" for each in evidence] if self.own(door).evidence else []
                self.marked(model, place, status, sent)
                if self.policy.evidence and status == "done" and place in begun:
                    raise Refused
                begun |= {place} if status != "done" else set()

        sent = []
        for place, status, evidence in marks:
            more = {"evidence": [f"C{each}" for each in evidence]} if self.own(door).evidence else {}
            sent.append({"step_id": self.spelled(place, "{}"), "status": status, **more})
        self.tell(door, "planning_mark_step", {"marks": sent}, self.tried(change))

    @rule(door=doors, place=places)
    def remove(self, door: Door, place: int) -> None:
        def change(model: dict[str, Any]) -> None:
            if not self.own(door).agent_edits:
                raise Refused
            self.removed(model, place)
            self.changed(model)

        self.tell(door, "planning_remove_step", {"step_id": self.spelled(place, "{}")}, self.tried(change))

    def removed(self, model: dict[str, Any], place: int) -> None:
        gone, plan = self.step(model, place), model["plan"]
        plan["steps"].remove(gone)
        for each in plan["steps"]:
            each["needs"] = [needed for needed in each["needs"] if needed != gone["id"]]
        self.settled(plan)

    def changed(self, model: dict[str, Any]) -> None:
        if self.policy.approval and model["approval"] == "rejected":
            model["approval"] = "waiting"

    @rule(door=doors, place=places, index=places)
    def move(self, door: Door, place: int, index: int) -> None:
        def change(model: dict[str, Any]) -> None:
            step, steps = self.step(model, place), model["plan"]["steps"]
            if not self.own(door).agent_edits or index >= len(steps):
                raise Refused
            steps.remove(step)
            steps.insert(index, step)

        arguments = {"step_id": self.spelled(place, "plain"), "index": index}
        self.tell(door, "planning_move_step", arguments, self.tried(change))

    @rule(door=doors, place=places)
    def retitle(self, door: Door, place: int) -> None:
        def change(model: dict[str, Any]) -> None:
            self.plan(model, "active")
            step = self.step(model, place)
            if step["title"] != "new":
                step["title"] = "new"
                self.asks(model, [step])

        arguments = {"step_id": self.spelled(place, "number"), "title": "new"}
        self.tell(door, "planning_update_step", arguments, self.tried(change))

    @rule(door=doors)
    def clear(self, door: Door) -> None:
        def change(model: dict[str, Any]) -> None:
            self.plan(model, "active", "completed").update(status="abandoned", steps=[])
            self.changed(model)

        self.tell(door, "planning_clear_plan", {}, self.tried(change))

    @rule(door=doors, fails=st.booleans())
    def do_work(self, door: Door, fails: bool) -> None:
        held = self.is_held()
        self.turn += 1
        plan = self.state()[0]
        self.session.refresh()  # a call begins at the moment that its process knows
        result = self.call(door, "work", {"fails": fails})
        self.reached["work was held"] += held
        assert result.success is not (held or fails)
        assert ("was not called: the plan" in result.message) is held
        assert self.state()[0] == plan
        if self.policy.evidence is not None:
            self.model["calls"].append(result.success)
        self.known.append((self.session.version, copy.deepcopy(self.model)))

    @precondition(lambda self: self.policy.evidence is None)
    @rule()
    def what_changes_nothing_may_always_run(self) -> None:
        assert self.call(("call", 0), "look", {}).success

    # What the host does

    @rule()
    def approve(self) -> None:
        self.state()
        self.session.dispatch(ApprovePlan())
        plan = self.model["plan"]
        steps = plan["steps"] if plan else []
        if self.is_held() or any(each["waits"] for each in steps):
            self.model["approval"] = "approved"
        for each in steps:
            each["waits"] = 0
        self.known.append((self.session.version, copy.deepcopy(self.model)))

    @precondition(lambda self: self.policy.approval and self.model["plan"] is not None)
    @rule()
    def reject(self) -> None:
        self.state()
        self.session.dispatch(RejectPlan("too long"))
        self.model["approval"] = "rejected"
        self.known.append((self.session.version, copy.deepcopy(self.model)))

    @precondition(lambda self: self.model["plan"] and self.model["plan"]["steps"])
    @rule(place=places)
    def host_removes(self, place: int) -> None:
        self.state()
        place %= len(self.model["plan"]["steps"])
        self.session.dispatch(RemoveStep(self.model["plan"]["steps"][place]["id"]))
        self.removed(self.model, place)
        self.known.append((self.session.version, copy.deepcopy(self.model)))

    @precondition(lambda self: len(self.known) > 1)
    @rule(back=st.integers(1, 4))
    def rewind(self, back: int) -> None:
        self.state()
        version, model = self.known[max(0, len(self.known) - 1 - back)]
        self.session.rewind(version)
        self.model = copy.deepcopy(model)
        self.known.append((self.session.version, copy.deepcopy(self.model)))

    @precondition(lambda self: not self.stores)
    @rule()
    def go_on_in_a_fork(self) -> None:
        self.observer = self.session.fork()
        self.sessions = [self.observer]
        self.boxes = [self.box(self.session)]
        self.known = [(self.session.version, copy.deepcopy(self.model))]

    @invariant()
    def the_plan_and_what_is_known_of_it_are_the_models(self) -> None:
        plan, facts = self.state()
        expected = self.model["plan"]
        assert (plan is None) is (expected is None)
        if plan is None:
            return
        facts = facts or PlanFacts()
        found = [
            {
                "id": step.step_id,
                "status": step.status,
                "needs": list(facts.depends_on.get(step.step_id, ())),
                "proof": list(facts.proofs[step.step_id].evidence) if step.step_id in facts.proofs else None,
                "waits": step.step_id in facts.waiting,
            }
            for step in plan.steps
        ]
        hidden = {"began", "title"}
        steps = [{key: each[key] for key in each.keys() - hidden} for each in expected["steps"]]
        assert found == steps
        assert (plan.status, facts.approval) == (expected["status"], self.model["approval"])
        assert [each.success for each in self.observer.select_all(EvidenceCall)] == self.model["calls"]


def test_two_sections_do_what_the_model_of_their_policies_does_and_every_refusal_is_reached() -> None:
    Policed.reached.clear()
    run_state_machine_as_test(Policed, settings=settings(max_examples=40, stateful_step_count=20))
    assert [
        each for each in (*WORDS, "work was held", "the lower of two limits") if not Policed.reached[each]
    ] == []
