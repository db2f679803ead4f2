"""The changes of a session, each with what it did to the plan; and a change as words and as JSON."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from typing import Any, Final

import attrs

from planning.observe.fact_words import NO_FACTS, facts_words
from planning.observe.names import Names, Naming, named_diff, named_facts, names_in
from planning.observe.steps import state_of_record
from planning.observe.stores import ShownStore, open_session
from planning.observe.text import one_line
from planning.plan.commands import ApprovePlan, MarkSteps, RejectPlan
from planning.plan.diff import PlanDiff, diff_plans
from planning.plan.facts import EvidenceCall, PlanFacts
from planning.plan.model import Plan, listed_ids
from planning.plan.reducers import REDUCERS
from planning.plan.render import plan_data
from planning.policy.reducers import AskToFinish, RecordEvidence, RequestApproval, SetDependencies, TakeNotice
from planning.suite.events import FrameworkChange, PlanChanged
from planning.tools.result import ToolResult
from planning.workflow.run.memory import MemoryItem
from planning.workflow.run.records import RunChanged, StepChanged, WorkflowRun
from session import Change, Commit, Reset, Rewound, RolledBack, Session, ToolFailed, ToolInvoked
from session.changes import change_of
from session.events import SessionEvent
from session.json_form import json_form
from session.records import Unread
from session.selectors import Selectable
from session.slices import type_name
from session.stores import StoredChange, StoredSession, StoreError
from session.stores.chain import replaced, verified

_BATCH: Final = 32
_LEFT_OUT: Final = (
    "session_id",
    "event_id",
    "created_at",
    "actor",
    "call_id",
    "idempotency_key",
    "fingerprint",
)
_REFUSED: Final = "Refused, nothing changed. "
_PLANNING: Final = (*REDUCERS, MarkSteps, Plan)
# What these did is in the words of the plan and of the facts.
_SILENT: Final = (
    *(FrameworkChange, EvidenceCall, PlanFacts, SetDependencies, RecordEvidence),
    *(RequestApproval, TakeNotice, ApprovePlan, RejectPlan),
)


@attrs.frozen
class Moment:
    """A change, and what it did to the plan."""

    change: Change  # values of types that are not known here are ``Unread``
    plan: PlanChanged | None  # the plan before and after it; None if it left it as it was
    known: PlanFacts = NO_FACTS  # what a policy knew of the plan before it
    facts: PlanFacts = NO_FACTS  # after it
    named: Names = attrs.field(factory=dict)  # the names of the steps before it
    names: Names = attrs.field(factory=dict)  # after it

    @property
    def diff(self) -> PlanDiff | None:
        """The change of the plan, with the names of its steps."""
        return None if self.plan is None else named_diff(self.plan.diff, {**self.named, **self.names})

    @property
    def steered(self) -> list[str]:
        """The change of a policy's facts about the plan, in sentences."""
        if self.known is self.facts:
            return []
        return facts_words(
            named_facts(self.known, self.named), named_facts(self.facts, self.names), self.diff
        )


class Changes(ABC):
    """The changes of a session in order, also those that are committed meanwhile."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.facts = NO_FACTS
        self.is_deleted = False
        self.problem: StoreError | None = None
        self._naming = Naming()

    @property
    @abstractmethod
    def plan(self) -> Plan | None:
        """The plan after the last change that was read."""

    @property
    def names(self) -> Names:
        """The names of its steps there."""
        return self._naming.names

    @abstractmethod
    def new(self) -> Iterator[Moment]:
        """The changes that were not read yet."""

    def _moment(self, change: Change, moved: PlanChanged | None, facts: PlanFacts) -> Moment:
        known, named, self.facts = self.facts, self.names, facts
        names = self._naming.take(change, moved, partial(self.session.at, change.version))
        return Moment(change, moved, known, facts, named, names)


class Timeline(Changes):
    """The changes of a stored session.

    Each is checked by its hash, and reduced as another process that has the session open reduces it. Reading
    changes nothing in the store.
    """

    def __init__(self, store: ShownStore, head: StoredSession, after: int) -> None:
        """Begin after a version."""
        self._store = store
        self._id = head.session_id
        before = store.changes(self._id, after, after) if after else ()
        self._shown = attrs.evolve(head, version=after, hash=before[0].hash if before else b"")
        store.shown = self._shown
        super().__init__(open_session(store, self._id))
        self._records = store.records(self._id)
        self._changed: dict[int, PlanChanged] = {}
        self.session.bus.subscribe(PlanChanged, self._keep)
        self._known: dict[int, PlanFacts] = {}
        self.session.publish_on_change(PlanFacts, Commit, lambda commit: commit)
        self.session.bus.subscribe(Commit, self._keep_facts)
        with suppress(StoreError):
            self.facts = self.session.select_latest(PlanFacts) or NO_FACTS
            self._naming = Naming(self.plan, self.session.select_latest(WorkflowRun))

    @property
    def plan(self) -> Plan | None:
        """The plan after the last change that was read."""
        return self.session.select_latest(Plan)

    def _keep(self, event: PlanChanged) -> None:
        self._changed[event.version] = event

    def _keep_facts(self, commit: Commit[PlanFacts]) -> None:
        self._known[commit.version] = commit.after or NO_FACTS

    def new(self) -> Iterator[Moment]:
        """The changes that were not read yet."""
        is_more = True
        while is_more:
            with self._store.reading():
                moments, is_more, damage = self._look()
            yield from moments
            if damage is not None:
                raise damage
        self._store.require()

    def _look(self) -> tuple[list[Moment], bool, StoreError | None]:
        """The next changes, whether there are more, and what is wrong with the one after them."""
        head = self._store.newest(self._id)
        self.is_deleted = head is None
        if head is not None and self._shown.version and head.created_at != self._shown.created_at:
            raise replaced(self._id)
        if head is None or self._shown.version >= head.version:
            return [], False, None
        first = self._shown.version + 1
        last = min(head.version, first + _BATCH - 1)
        sound, damage = self._sound(self._store.changes(self._id, first, last), first, last)
        moments = list[Moment]()
        try:
            moments.extend(self._moments(sound, head))
        except StoreError as error:
            damage = error
        return moments, last < head.version, damage

    def _sound(
        self, stored: Sequence[StoredChange], first: int, last: int
    ) -> tuple[list[StoredChange], StoreError | None]:
        """The changes up to the first that is missing or damaged, and what is wrong with that one."""
        sound, before = list[StoredChange](), self._shown.hash
        for version in range(first, last + 1):
            try:
                sound += verified(stored[version - first : version - first + 1], version, version, before)
            except StoreError as error:
                return sound, error
            before = sound[-1].hash
        return sound, None

    def _moments(self, sound: list[StoredChange], head: StoredSession) -> Iterator[Moment]:
        if not sound:
            return
        self._shown = attrs.evolve(head, version=sound[-1].version, hash=sound[-1].hash)
        self._store.shown = self._shown
        try:
            self.session.refresh()
            self.problem = None
        except StoreError as error:
            self.problem = error
        for each in sound:
            owner = head.owner(each.version)
            change = change_of(each.text, each.version, owner, self._records)
            facts = self._known.pop(each.version, self.facts)
            yield self._moment(change, self._changed.pop(each.version, None), facts)


class Recent(Changes):
    """The changes of a session in memory, which keeps all of them."""

    def __init__(self, session: Session) -> None:
        """Begin before its first change."""
        super().__init__(session)
        self._version = 0
        self._plan: Plan | None = None

    @property
    def plan(self) -> Plan | None:
        """The plan after the last change that was read."""
        return self._plan

    def new(self) -> Iterator[Moment]:
        """The changes that were not read yet."""
        if self.session.version == self._version:
            return
        for change in self.session.history(after=self._version):
            self._version = change.version
            then = self.session.at(change.version)
            moved = self._moved(change, then.select_latest(Plan)) if change.changed else None
            yield self._moment(change, moved, then.select_latest(PlanFacts) or NO_FACTS)

    def _moved(self, change: Change, plan: Plan | None) -> PlanChanged | None:
        before, self._plan = self._plan, plan
        if before == plan:
            return None
        by = (change.actor, change.call_id, "session", self.session.session_id)
        return PlanChanged(before, plan, change.version, *by)


def words_of(moment: Moment) -> str:
    """A change in words, on one line: what was restored, called or refused, and what that did to the plan."""
    change, moved = moment.change, moment.plan
    parts = [text for event in change.events if (text := _words_of_event(event, is_told=moved is not None))]
    if moved is not None:
        parts.append(str(moment.diff))
    parts += moment.steered
    return " ".join(dict.fromkeys(map(one_line, parts))) or "nothing"


def _words_of_event(event: object, *, is_told: bool) -> str:
    """An event in words; empty for one that the words of the plan's change tell already."""
    if isinstance(event, _SILENT):
        return ""
    match event:
        case Rewound():
            return f"Rewound to version {event.version}."
        case RolledBack():
            return f"Rolled back to a snapshot of session {event.session_id}."
        case Reset():
            return "Reset."
        case ToolFailed():
            is_refused, reason = refusal_of(event)
            cause = getattr(event.result, "cause", None)
            reason = f"{cause} ({reason})" if cause and not is_refused else reason
            return f"{event.name} {'refused' if is_refused else 'failed'}: {reason}"
        case ToolInvoked():
            return "" if is_told and type(event.value) in _PLANNING else f"Called {event.name}."
        case AskToFinish():
            steps = f"with {listed_ids(event.open_steps)} open"
            return f"The agent {'finished' if event.let_go else 'was not allowed to finish'} {steps}."
        case RunChanged():
            status, goal = event.run.status.replace("_", " "), event.run.workflow.goal
            return f"Run {status}: {goal}." if goal else f"Run {status}."
        case StepChanged():
            state = state_of_record(event.record).replace("_", " ")
            return "" if is_told else f"Step {event.record.step_id} {state}."
        case Unread():
            return f"{event.name}."
        case _:
            is_hidden = isinstance(event, MemoryItem) or (is_told and type(event) in _PLANNING)
            return "" if is_hidden else f"{type(event).__name__}."


def refusal_of(event: ToolFailed) -> tuple[bool, str]:
    """Decide if a call that failed was refused, so that it changed nothing; and why."""
    message = event.result.message if isinstance(event.result, ToolResult) else ""
    reason = message.removeprefix(_REFUSED)
    return reason != message, reason.removeprefix(f"{event.name} failed. ")


def fields_of_moment(moment: Moment) -> dict[str, Any]:
    """A change as plain dictionaries and lists, ready for JSON."""
    change, moved = moment.change, moment.plan
    return {
        "version": change.version,
        "at": change.at.isoformat(),
        "actor": change.actor,
        "call_id": change.call_id,
        "changed": change.changed,
        "text": words_of(moment),
        "diff": None if moved is None else diff_fields(moved.diff),
        "plan": None if moved is None or moved.after is None else plan_fields_of(moved.after, moment.facts),
        **({"names": dict(moment.names)} if moved is not None and moment.names else {}),
        "events": [_fields_of_event(event) for event in change.events],
    }


def between(before: Selectable, after: Selectable) -> dict[str, Any]:
    """The differences between two versions, as ``diff_fields`` has them; the text also has the facts."""
    diff = diff_plans(before.select_latest(Plan), after.select_latest(Plan))
    named, names = names_in(before), names_in(after)
    both = {**named, **names}
    known, facts = (each.select_latest(PlanFacts) or NO_FACTS for each in (before, after))
    shown = named_diff(diff, both)
    steered = facts_words(named_facts(known, named), named_facts(facts, names), shown)
    said = [str(shown)] if diff or not steered else []
    return {**diff_fields(diff), "text": " ".join([*said, *steered]), **({"names": both} if both else {})}


def plan_fields_of(plan: Plan, facts: PlanFacts) -> dict[str, Any]:
    """A plan; as ``plan_to_dict`` has it where a policy is at work."""
    return asdict(plan) if facts is NO_FACTS else plan_data(plan, facts)


def diff_fields(diff: PlanDiff) -> dict[str, Any]:
    """A difference as plain dictionaries and lists: only what differs, and the whole of it as text."""
    return {"text": str(diff), **{name: value for name, value in asdict(diff).items() if value}}


def _fields_of_event(event: object) -> dict[str, Any]:
    match event:
        case Unread():
            return {"type": event.name, "fields": json_form(event.fields)}
        case Rewound():
            fields: Any = {"version": event.version}
        case RolledBack():
            fields = {"session_id": str(event.session_id), "created_at": event.created_at.isoformat()}
        case Reset():
            fields = {}
        case _:
            fields = json_form(event)
            if isinstance(event, SessionEvent):
                fields = {name: value for name, value in fields.items() if name not in _LEFT_OUT}
    return {"type": type_name(type(event)), "fields": fields}
