"""Planning as plain lists and dicts, from the words of the specs, and random calls to play beside it."""

from __future__ import annotations

import copy
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from dataclasses import asdict
from threading import Barrier
from typing import Any

from hypothesis import strategies as st
from served_calls import opened

from planning import Plan, PlanningToolsSection, Toolbox
from session import Session, SessionView, ToolFailed, ToolInvoked

Call = tuple[str, Any]
"""A tool's name, and its arguments: an object, or text that is sent as it is."""
Row = dict[str, Any]
"""What is recorded of a call, and the plan after it."""
Draw = Callable[[st.SearchStrategy[Any]], Any]


class Refused(Exception):
    """The model does not accept a call."""


def words(value: Any, limit: int, *, several_lines: bool = False) -> str:
    """Trimmed text within the limits; it may be blank."""
    if not isinstance(value, str):
        raise Refused
    text = value.strip()
    if len(text) > limit:
        raise Refused
    if not all(" " <= each <= "~" or (several_lines and each in "\n\t") for each in text):
        raise Refused
    return text


def not_blank(text: str) -> str:
    if not text:
        raise Refused
    return text


def fields(given: Mapping[str, Any], required: str, optional: str = "") -> None:
    """A call has all required fields, and no unknown ones."""
    if not set(required.split()) <= given.keys() <= {*required.split(), *optional.split()}:
        raise Refused


class NaivePlan:
    """The plan of a session, or None, and what the six tools make of it."""

    def __init__(self) -> None:
        self.plan: dict[str, Any] | None = None

    def call(self, name: str, sent: Any) -> bool:
        """Make a call; whether it is accepted. A refused one changes nothing."""
        plan = copy.deepcopy(self.plan)
        try:
            given = self.object_in(sent)
            self.plan = getattr(self, name)(plan, given)
        except Refused:
            return False
        return True

    def object_in(self, sent: Any) -> dict[str, Any]:
        """The arguments; a comma at the end of JSON text is forgiven, half an object is not."""
        if isinstance(sent, str):
            try:
                sent = json.loads(re.sub(",}$", "}", sent))
            except ValueError:
                raise Refused from None
        if not isinstance(sent, dict):
            raise Refused
        return sent

    def in_status(self, plan: dict[str, Any] | None, *statuses: str) -> dict[str, Any]:
        if plan is None or plan["status"] not in statuses:
            raise Refused
        return plan

    def step(self, plan: dict[str, Any], given: Any) -> dict[str, Any]:
        """The step that is meant: S001 is also s1, "1", 1 and 1.0."""
        if isinstance(given, float) and given.is_integer():
            given = int(given)
        if isinstance(given, bool) or not isinstance(given, (int, str)):
            raise Refused
        number = re.fullmatch("[Ss]?([0-9]+)", words(str(given), 64))
        for step in plan["steps"]:
            if number and int(step["step_id"][1:]) == int(number[1]):
                found: dict[str, Any] = step
                return found
        raise Refused

    def new_steps(self, plan: dict[str, Any], steps: Any) -> None:
        if not isinstance(steps, list):
            raise Refused
        for each in steps:
            step = {"title": each} if isinstance(each, str) else each
            if not isinstance(step, dict):
                raise Refused
            fields(step, "title", "details")
            details = step.get("details")
            number = max((int(old["step_id"][1:]) for old in plan["steps"]), default=0) + 1
            plan["steps"].append({
                "step_id": "S" + str(number).rjust(3, "0"),
                "title": not_blank(words(step["title"], 160)),
                "details": None if details is None else words(details, 512, several_lines=True) or None,
                "status": "pending",
                "notes": [],
            })  # fmt: skip

    # The tools

    def planning_setup_plan(self, _plan: Any, given: dict[str, Any]) -> dict[str, Any]:
        fields(given, "objective", "initial_steps")
        plan = {"objective": not_blank(words(given["objective"], 240)), "status": "active", "steps": []}
        self.new_steps(plan, given.get("initial_steps", []))
        return plan

    def planning_add_step(self, plan: Any, given: dict[str, Any]) -> dict[str, Any]:
        fields(given, "steps")
        if not given["steps"]:
            raise Refused
        self.new_steps(self.in_status(plan, "active"), given["steps"])
        return dict(plan)

    def planning_update_step(self, plan: Any, given: dict[str, Any]) -> dict[str, Any]:
        fields(given, "step_id", "title details")
        step = self.step(self.in_status(plan, "active"), given["step_id"])
        title, details = given.get("title"), given.get("details")
        if title is None and details is None:
            raise Refused
        if title is not None:
            step["title"] = not_blank(words(title, 160))
        if details is not None:
            step["details"] = words(details, 512, several_lines=True) or None
        return dict(plan)

    def planning_mark_step(self, plan: Any, given: dict[str, Any]) -> dict[str, Any]:
        fields(given, "step_id status", "note")
        step = self.step(self.in_status(plan, "active", "completed"), given["step_id"])
        status = re.sub(r"[\s_-]+", "_", str(given["status"]).strip().lower())
        if status not in {"pending", "in_progress", "blocked", "done"}:
            raise Refused
        step["status"] = status
        if given.get("note") is not None:
            step["notes"].append(not_blank(words(given["note"], 512, several_lines=True)))
        is_completed = all(each["status"] == "done" for each in plan["steps"])
        return {**plan, "status": "completed" if is_completed else "active"}

    def planning_clear_plan(self, plan: Any, given: dict[str, Any]) -> dict[str, Any]:
        fields(given, "")
        return {**self.in_status(plan, "active", "completed"), "status": "abandoned", "steps": []}

    def planning_read_plan(self, plan: Any, given: dict[str, Any]) -> dict[str, Any]:
        fields(given, "")
        return self.in_status(plan, "active", "completed", "abandoned")


# Random calls

GOOD = ("Rent a room", "Buy shelves", "Paint the walls", "Ask for help")
NO_TEXT = ("", " \n ", "caf\u00e9", "\u4fee\u590d", "a bell\x07", "\x7f")
NO_STEPS = ("S099", "0", "", "step one", "S\n1", -1, 1.5, None)
SPELLINGS: list[Callable[[int], Any]] = [
    lambda number: f"S{number:03}",
    lambda number: f" s{number} ",
    lambda number: f"0{number}",
    lambda number: number,
    float,
]
STATUSES = (*("pending", "in_progress", "blocked") * 2, *("done",) * 6, "Done", "in progress", "In-Progress")
NO_STATUSES = ("completed", "cancelled", "", None, 1)


def one_in(many: int) -> st.SearchStrategy[bool]:
    return st.sampled_from([*[False] * (many - 1), True])


def mostly(accepted: Iterable[Any], refused: Iterable[Any], many: int = 10) -> st.SearchStrategy[Any]:
    """Values of which one in so many is refused."""
    usual, others = st.sampled_from([*accepted]), st.sampled_from([*refused])
    return one_in(many).flatmap(lambda is_refused: others if is_refused else usual)


def text(limit: int) -> st.SearchStrategy[str]:
    """Text at the limits, in other languages, in several lines, that looks like a plan's, or any."""
    longest = "x" * limit
    edges = [longest, f"  {longest}\n", 'S001 done: "all"', "Next: S002", " padded\t"]
    several_lines = ["two\nlines", "a\ttab"]  # refused in a title
    usual = mostly(
        [*GOOD * 3, *edges], [*NO_TEXT, *several_lines, longest + "x", f" {longest}yz", longest + "."]
    )
    characters = st.characters(exclude_categories=["Cs"])
    return one_in(9).flatmap(lambda is_any: st.text(characters, max_size=4) if is_any else usual)


STEP = text(160) | st.fixed_dictionaries({"title": text(160)}, optional={"details": st.none() | text(512)})
NAMES = ["planning_mark_step"] * 4 + ["planning_update_step", "planning_add_step", "planning_setup_plan"] * 2
NAMES += ["planning_read_plan", "planning_clear_plan"]


def arguments(name: str, steps: int) -> st.SearchStrategy[dict[str, Any]]:
    """Arguments of a tool, for a plan of so many steps."""
    known = [spell(number) for spell in SPELLINGS for number in range(1, steps + 1)]
    step_id = mostly(known or ["S001"], NO_STEPS, 9)
    if name == "planning_setup_plan":
        return st.fixed_dictionaries(
            {"objective": text(240)}, optional={"initial_steps": st.lists(STEP, max_size=3)}
        )
    if name == "planning_add_step":
        return st.fixed_dictionaries(
            {"steps": one_in(9).flatmap(lambda is_any: st.lists(STEP, min_size=not is_any, max_size=2))}
        )
    if name == "planning_update_step":
        given = {"step_id": step_id, "title": text(160), "details": st.none() | text(512)}
        return st.fixed_dictionaries(given) | st.fixed_dictionaries(
            {"step_id": step_id}, optional={"title": st.none() | text(160), "details": text(512)}
        )
    if name == "planning_mark_step":
        status = mostly(STATUSES, NO_STATUSES, 9)
        return st.fixed_dictionaries({"step_id": step_id, "status": status}, optional={"note": text(512)})
    return st.just({})


BREAKS: list[Callable[[dict[str, Any], str], Any]] = [
    lambda given, _: {**given, "extra": 1},
    lambda given, key: {each: given[each] for each in given if each != key},
    lambda given, key: {**given, key: {}} if key else given,
    lambda given, key: {**given, key: True} if key else given,
    lambda given, key: {**given, key: 3.5} if key else given,
    lambda given, _: f"{json.dumps(given)[:-1]},}}" if given else "{}",
    lambda given, _: f"{json.dumps(given)[:-1]},}}" if given else "{}",
    lambda given, _: json.dumps(given),
    lambda given, key: json.dumps(given)[:-3] if key else "[1]",
]


@st.composite
def turns(draw: Draw) -> list[list[Call]]:
    """The turns of a history, with each tool; the model plays along, so that most calls are sound."""
    history, model = list[list[Call]](), NaivePlan()
    names = draw(st.permutations(NAMES))
    while names:
        plan = model.plan or {"status": "none", "steps": []}
        open_ids = [each["step_id"] for each in plan["steps"] if each["status"] != "done"]
        turn: list[Call] = []
        if plan["status"] in {"none", "abandoned"} and draw(st.booleans()):
            turn = [SHOP]
        elif plan["status"] == "completed" and draw(st.booleans()):
            turn = [("planning_mark_step", {"step_id": 1, "status": "in_progress"})]
        elif open_ids and draw(one_in(6)):
            turn = [("planning_mark_step", {"step_id": each, "status": "done"}) for each in open_ids]
        else:
            for _ in range(draw(st.integers(1, 3))):
                turn += [draw(calls(names.pop(), len(plan["steps"])))] if names else []
        history.append(turn)
        for call in turn:
            model.call(*call)
    return history


@st.composite
def calls(draw: Draw, name: str, steps: int) -> Call:
    """A call of a planning tool; the arguments of one in six are damaged, or text."""
    given = draw(arguments(name, steps))
    if draw(one_in(6)):
        return name, draw(st.sampled_from(BREAKS))(given, draw(st.sampled_from([*given, ""])))
    return name, given


SHOP: Call = (
    "planning_setup_plan",
    {
        "objective": "Open the shop",
        "initial_steps": ["Rent a room", {"title": "Buy shelves", "details": "6"}],
    },
)


# What a session says of them


def plan_of(source: Session | SessionView) -> Any:
    """The plan as the model has it."""
    plan = source.select_latest(Plan)
    return None if plan is None else json.loads(json.dumps(asdict(plan)))


def rows_of(session: Session) -> list[Row]:
    """Each call of a session's history, with the plan after it."""
    return [
        {
            "name": event.name,
            "call": (event.call_id, event.actor),
            "change": (change.call_id, change.actor, change.changed),
            "result": (event.result.success, event.result.code, event.result.message),
            "params": getattr(event, "params", None),
            "value": getattr(event, "value", None),
            "plan": plan_of(session.at(change.version)),
        }
        for change in session.history()
        for event in change.events
        if isinstance(event, (ToolInvoked, ToolFailed))
    ]


def toolbox_of(session: Session) -> Toolbox:
    return Toolbox(PlanningToolsSection(session=session).tools(), session=session)


Sent = list[tuple[str, Any, dict[str, str]]]
_at_once: list[Barrier] = []


def start_at_once(barrier: Barrier) -> None:
    """Let a process wait for the others of a pool before it plays."""
    _at_once.append(barrier)


def play_at_once(place: list[str], calls: Sent) -> list[tuple[bool, str]]:
    """What calls give in a process that begins when the others do."""
    for barrier in _at_once:
        barrier.wait(60)
    return play_in_process(place, calls)


def play_in_process(place: list[str], calls: Sent) -> list[tuple[bool, str]]:
    """What calls give in another process, which opens the store of a place."""
    with closing(opened(place, patience=30)) as store:
        box = toolbox_of(Session(session_id="shop", store=store))
        results = [box.call(name, arguments, context=context) for name, arguments, context in calls]
    return [(result.success, result.message) for result in results]


def reference(history: Iterable[Call], reached: Counter[str]) -> list[Row]:
    """What calls give in one session, one after the other; each as the model has it."""
    session, model = Session(), NaivePlan()
    toolbox = toolbox_of(session)
    for number, (name, arguments) in enumerate(history, 1):
        before = model.plan
        accepted = model.call(name, arguments)
        result = toolbox.call(name, arguments, context={"call_id": f"call_{number}", "actor": "clerk"})
        assert (result.success, plan_of(session)) == (accepted, model.plan), (name, arguments, result.message)
        reached[f"{name} {'accepted' if accepted else 'refused'}"] += 1
        for status in ("completed", "abandoned", "active"):
            was, is_ = ((plan or {"status": None})["status"] == status for plan in (before, model.plan))
            reached[f"became {status}"] += is_ and not was
        reached["changed nothing"] += accepted and before == model.plan and not name.endswith("read_plan")
        reached["JSON that was repaired"] += accepted and str(arguments).endswith(",}")
        reached["JSON"] += isinstance(arguments, str)
        reached["the longest text"] += accepted and "x" * 160 in str(arguments)
        reached["a text too long"] += "; cut " in result.message
        reached["a text of another language"] += "ASCII" in result.message
    rows = rows_of(session)
    assert [row["plan"] for row in rows][-1:] == [model.plan][: len(rows)]
    return rows
