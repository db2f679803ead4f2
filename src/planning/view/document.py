"""What a run did, as the data of the page: where it began, and what each change made of it."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Mapping
from datetime import UTC, datetime
from operator import itemgetter
from threading import Lock
from typing import Any, Final, Literal

import attrs

from planning.observe.calls import calls_of
from planning.observe.deltas import Fields, applied, applied_list, delta_of, plan_fields
from planning.observe.fact_words import NO_FACTS
from planning.observe.health import Health, health_of
from planning.observe.names import Names
from planning.observe.text import line_of, shortened
from planning.observe.timeline import Moment, Recent, Timeline, refusal_of, words_of
from planning.plan.facts import PlanFacts
from planning.plan.model import Plan
from planning.view.states import RunStates, health_fields
from planning.workflow.run.records import RunChanged, StepChanged
from session import Session, StoreError, ToolFailed, ToolInvoked
from session.history import Restored

MOST_CHANGES: Final = 10_000
"""The most changes that the page shows."""
_MOST_CHARACTERS: Final = 50_000_000  # of their data
_LONGEST_TEXT: Final = 500
_FORMAT: Final = 1

Kind = Literal["session", "snapshot", "transcript", "workflow"]


@attrs.define(kw_only=True)
class Document:
    """What a run did, as far as it was read. The oldest changes are folded into where it begins.

    One thread may read changes while others ask for what was read.

    Attributes:
        title: What the run is called.
        kind: What it was read from.
        source: The file.
        session_id: The session; None where it has no id that a person knows.
        began_at: When it began; None for the time of the first change that is read.
        health: How the session is doing; None where that is not known.
        first: The version that it begins at.
        plan: The plan there.
        facts: What a policy knows of it.
        names: The names of its steps.
        run: The workflow run there.
        family: The session, its forks and its children; empty where it is alone.
        problem: What cannot be shown, and why; None for nothing.
        is_timed: Whether the times are those of the run.
        most: How many changes are kept.
    """

    title: str
    kind: Kind
    source: str
    session_id: str | None = None
    began_at: datetime | None = None
    health: Health | None = None
    first: int = 0
    plan: Plan | None = None
    facts: PlanFacts = NO_FACTS
    names: Names = attrs.field(factory=dict)
    run: RunStates = attrs.field(factory=RunStates)
    family: list[Fields] = attrs.field(factory=list)
    problem: str | None = None
    is_timed: bool = True
    most: int = MOST_CHANGES
    _changes: list[tuple[int, str]] = attrs.field(init=False, factory=list)
    _characters: int = attrs.field(init=False, default=0)
    _lock: Lock = attrs.field(init=False, factory=Lock)
    _base: Fields = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._base = {
            "plan": None if self.plan is None else plan_fields(self.plan, self.facts),
            "graph": self.run.graph() or None,
            "states": self.run.states,
            "records": {name: each[:] for name, each in self.run.records.items()},
            "names": dict(self.names),
        }

    @property
    def version(self) -> int:
        """The version of the last change that was read."""
        return self._changes[-1][0] if self._changes else self.first

    def read(self, moments: Timeline | Recent, extra: Mapping[str, Any] | None = None) -> None:
        """Take over the changes that were not read yet; where one cannot be read, ``problem`` says so.

        Args:
            moments: The changes of the session.
            extra: Further fields for the first of them.
        """
        given, problem, changed_at = dict(extra or {}), None, None
        try:
            for moment in moments.new():
                self._add({**self._fields(moment, moments.session), **given})
                given, changed_at = {}, moment.change.at
                self.began_at = self.began_at or changed_at
        except StoreError as error:
            problem = error
        self._look(moments.session, changed_at)
        if problem is None and moments.is_deleted:
            problem = StoreError("the session was deleted")
        problem = problem or moments.problem
        self.problem = None if problem is None else line_of(problem)

    def _look(self, session: Session, changed_at: datetime | None) -> None:
        """Note how the session is doing, after its last change or some time after it."""
        now = datetime.now(UTC)
        if changed_at is None:
            self.health = None if self.health is None else self.health.at(now)
            return
        times = {"began_at": self.began_at, "changed_at": changed_at} if self.is_timed else {}
        try:
            self.health = health_of(session, now, **times)
        except StoreError:
            self.health = None

    def after(self, version: int) -> list[tuple[int, str]]:
        """The changes after a version, each with its version and as JSON."""
        with self._lock:
            return self._changes[bisect_right(self._changes, version, key=itemgetter(0)) :]

    def parts(self) -> list[str]:
        """All of it as JSON, in parts that follow each other."""
        with self._lock:
            changes = [f",{text}" for _, text in self._changes]
            head = {
                "format": _FORMAT,
                "title": self.title,
                "kind": self.kind,
                "source": self.source,
                "id": self.session_id,
                "from": self.first,
                "health": health_fields(self.health),
                **self._base,
                "family": self.family,
                "problem": self.problem,
                "omitted": self._omitted(),
            }
            begin = f'{as_json(head)[:-1]},"changes":['
        return [begin, *(text.removeprefix(",") for text in changes[:1]), *changes[1:], "]}"]

    def _omitted(self) -> str | None:
        if not self.first:
            return None
        return f"The oldest {self.first:,} changes are not shown; the page begins at version {self.first:,}."

    def _fields(self, moment: Moment, session: Session) -> Fields:
        """A change as the page has it, without what is empty."""
        change, before = moment.change, self.plan
        if moment.plan is not None:
            self.plan = moment.plan.after
        self.facts = moment.facts
        delta = delta_of(before, self.plan, moment.known, moment.facts)
        fields: Fields = {
            "v": change.version,
            "at": round(change.at.timestamp(), 3) if self.is_timed else None,
            "actor": change.actor,
            "call_id": change.call_id,
            "text": shortened(words_of(moment), _LONGEST_TEXT),
            "kind": _kind(moment, is_plan=delta is not None),
            "calls": calls_of(change, is_timed=self.is_timed),
            **self.run.take(change, lambda: session.at(change.version)),
        }
        return {
            **{name: value for name, value in fields.items() if value not in (None, [])},
            **({} if delta is None else {"plan": delta}),
            **({"names": dict(moment.names)} if moment.names != moment.named else {}),
        }

    def _add(self, fields: Fields) -> None:
        text = as_json(fields)
        with self._lock:
            self._changes.append((fields["v"], text))
            self._characters += len(text)
            while self._changes and (len(self._changes) > self.most or self._characters > _MOST_CHARACTERS):
                self._fold()

    def _fold(self) -> None:
        """Make the oldest change a part of where the run begins."""
        self.first, text = self._changes.pop(0)
        self._characters -= len(text)
        change, base = json.loads(text), self._base
        base["plan"] = applied(base["plan"], change.get("plan"))
        if "graph" in change:
            base |= {"graph": change["graph"] or None, "states": {}, "records": {}}
        base["states"] = {**base["states"], **change.get("states", {})}
        for name, delta in change.get("records", {}).items():
            base["records"][name] = applied_list(base["records"].get(name, []), delta)
        base["names"] = change.get("names", base["names"])


def as_json(value: Any) -> str:
    """A value of the page's data as compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _kind(moment: Moment, *, is_plan: bool) -> str | None:
    """What a change is for the page's filters; None for a change of the plan."""
    events = moment.change.events
    failures = [event for event in events if isinstance(event, ToolFailed)]
    if any(refusal_of(event)[0] for event in failures):
        return "refused"
    steps = [event.record.status for event in events if isinstance(event, StepChanged)]
    if failures or "failed" in steps:
        return "failed"
    if any(isinstance(event, Restored) for event in events):
        return "rewind"
    if steps or any(isinstance(event, RunChanged) for event in events):
        return "run"
    if is_plan:
        return None
    return "call" if any(isinstance(event, ToolInvoked) for event in events) else "other"
