"""The data of the page: where a run began, and what each change made of it."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from operator import itemgetter
from threading import Lock
from typing import Any, Final, Literal

import attrs

from planning.errors import ToolError, line_of
from planning.observe.calls import calls_of
from planning.observe.deltas import Fields, applied, delta_of, plan_fields
from planning.observe.fact_words import NO_FACTS
from planning.observe.health import Health, health_of, health_of_run, is_over
from planning.observe.names import Names
from planning.observe.steps import RunSteps, Step, answer_steps
from planning.observe.text import as_text, shortened
from planning.observe.timeline import Changes, Moment, refusal_of, words_of
from planning.plan.facts import PlanFacts
from planning.plan.model import Plan
from planning.view.graph import graph_of
from planning.workflow.capabilities import Capabilities
from planning.workflow.references import MARK
from planning.workflow.run.callables import Callables
from planning.workflow.run.records import RunChanged, StepChanged
from planning.workflow.run.values import RunValues
from session import Change, Session, StoreError, ToolFailed, ToolInvoked
from session.history import Restored
from session.selectors import Selectable

MOST_CHANGES: Final = 10_000
"""The most changes that the page shows."""
_MOST_CHARACTERS: Final = 50_000_000  # of their data
_LONGEST_TEXT: Final = 500
_LONGEST: Final = 2_000  # characters of the inputs and the output of a step
_LONGEST_ANSWER: Final = 20_000  # the same of the output of a step that no other step depends on
_LONGEST_ERROR: Final = 1_000
_FORMAT: Final = 2

Kind = Literal["session", "snapshot", "transcript", "workflow"]


class RunData:
    """The newest run of a session as the page has it."""

    def __init__(self, steps: RunSteps | None = None, *, is_stored: bool = False) -> None:
        """Begin with a run, or without one; one that is stored has no private inputs."""
        self._is_stored = is_stored
        self._begin(steps)

    def _begin(self, steps: RunSteps | None) -> None:
        self.steps = steps
        self._answer = frozenset(() if steps is None else answer_steps(steps.workflow))
        every = () if steps is None else steps.steps.values()
        self.fields = {step.step_id: fields for step in every if (fields := self._fields_of(step))}

    @property
    def graph(self) -> Fields | int:
        """The graph, with the prompt of the run; 0 without a run."""
        if self.steps is None:
            return 0
        prompt = self.steps.run and self.steps.run.user_prompt
        return {
            **graph_of(self.steps.workflow),
            **({"prompt": shortened(prompt, _LONGEST)} if prompt else {}),
        }

    def take(self, change: Change, then: Callable[[], Selectable]) -> Fields:
        """Take over a change; returns the ``graph`` and the ``steps`` that differ."""
        old, before = self.steps, self.fields
        for event in change.events:
            if isinstance(event, Restored) or (isinstance(event, RunChanged) and self._is_edited(event)):
                self._begin(RunSteps.of(then()))
                break
            if isinstance(event, RunChanged):
                if self.steps is None or self.steps.run_id != event.run.run_id:
                    self._begin(RunSteps(event.run.workflow, event.run))
                else:
                    self.steps.run = event.run
            elif isinstance(event, StepChanged) and self.steps is not None:
                step = self.steps.take(event.record)
                if step is not None:
                    self.fields = {**self.fields, step.step_id: self._fields_of(step)}
        if self.steps is not old and (old is None or self.steps is None or not _is_same(old, self.steps)):
            return {"graph": self.graph, "steps": self.fields}
        names = before | self.fields
        differ = {
            name: self.fields.get(name, {}) for name in names if before.get(name) != self.fields.get(name)
        }
        return {"steps": differ}

    def _is_edited(self, event: RunChanged) -> bool:
        """True if a run is resumed with another workflow, so that its records are read again."""
        steps = self.steps
        return steps is not None and steps.run_id == event.run.run_id and steps.workflow != event.run.workflow

    def _fields_of(self, step: Step) -> Fields:
        """A step as the page has it, without what is empty."""
        record, error = step.record, step.error
        fields: Fields = {"state": step.state}
        if record is not None and self.steps is not None:
            most = _LONGEST_ANSWER if step.step_id in self._answer else _LONGEST
            fields |= {
                "spans": [
                    [_seconds(each.began), _seconds(each.ended), each.state, each.attempt]
                    for each in step.spans
                ],
                "inputs": shortened(
                    as_text(resolved_inputs(self.steps, step, is_stored=self._is_stored)), _LONGEST
                ),
                "output": shortened(as_text(record.output), most),
                "private": record.is_withheld,
                "error": None if error is None else shortened(error.message, _LONGEST_ERROR),
                "code": None if error is None else error.code,
                "cause": None if error is None else shortened(error.cause or "", _LONGEST_ERROR),
                "after": record.after,
            }
        shown = {name: value for name, value in fields.items() if value}
        return {} if shown == {"state": "pending"} else shown


def resolved_inputs(steps: RunSteps, step: Step, *, is_stored: bool) -> dict[str, Any] | None:
    """The inputs of a step as they were resolved; None where they refer to nothing, or may be private.

    A value that is not known any more stays a reference.
    """
    given = next(each.inputs for each in steps.workflow.steps if each.step_id == step.step_id)
    record, run = step.record, steps.run
    # A stored run has no inputs of a private tool. Of another run, only a tool without private data leaves
    # its output or a cause in a record.
    is_public = record is not None and (
        is_stored
        or (record.status == "completed" and not record.is_withheld)
        or (record.error is not None and record.error.cause is not None)
    )
    if run is None or not is_public or MARK not in as_text(given):
        return None
    records = {name: each.record for name, each in steps.steps.items() if each.record is not None}
    outputs = {
        name: each.output
        for name, each in records.items()
        if each.status == "completed" and not each.is_withheld
    }
    workflow = {each.step_id: each for each in steps.workflow.steps}
    callables, inputs = Callables(Capabilities()), dict(given)
    values = RunValues(callables, run.user_prompt, workflow, 0, states=records, outputs=outputs)
    for name, value in given.items():
        with suppress(ToolError):
            inputs |= values.resolve({name: value})
    return inputs


def _is_same(old: RunSteps, new: RunSteps) -> bool:
    return (old.run_id, old.workflow) == (new.run_id, new.workflow)


def _seconds(at: datetime | None) -> float | None:
    return None if at is None else round(at.timestamp(), 3)


def health_fields(health: Health | None, *, is_cut: bool = False) -> Fields:
    """A session's health, as the page has it; without what is empty, and empty if nothing is known."""
    if health is None:
        return {}
    names = ("state", "objective", "done", "total", "step", "title", "error")
    fields: Fields = {name: getattr(health, name) for name in names}
    fields |= {"others": health.other_steps or None, "cut": is_cut or None}
    fields |= {"began": _seconds(health.began_at), "changed": _seconds(health.changed_at)}
    return {name: value for name, value in fields.items() if value not in {None, ""}}


@attrs.define(kw_only=True)
class Document:
    """The history of a run, as far as it was read. The oldest changes are folded into where it begins.

    One thread may read changes while others ask for what was read.
    """

    title: str
    kind: Kind
    source: str
    session_id: str | None = None  # of a stored session
    began_at: datetime | None = None
    health: Health | None = None
    first: int = 0  # the version that it begins at; the plan, the facts, the names and the run are of then
    plan: Plan | None = None
    facts: PlanFacts = NO_FACTS
    names: Names = attrs.field(factory=dict)
    run: RunData = attrs.field(factory=RunData)
    family: list[Fields] = attrs.field(factory=list)
    problem: str | None = None
    is_timed: bool = True  # whether the times are those of the run
    limit: int = MOST_CHANGES  # that are kept
    _run_health: Health | None = attrs.field(init=False, default=None)
    _changes: list[tuple[int, str]] = attrs.field(init=False, factory=list)
    _characters: int = attrs.field(init=False, default=0)
    _lock: Lock = attrs.field(init=False, factory=Lock)
    _base: Fields = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._base = {
            "plan": None if self.plan is None else plan_fields(self.plan, self.facts),
            "graph": self.run.graph or None,
            "steps": dict(self.run.fields),
            "names": dict(self.names),
        }

    @property
    def version(self) -> int:
        """The version of the last change that was read."""
        return self._changes[-1][0] if self._changes else self.first

    def read(self, moments: Changes, extra: Mapping[str, Any] | None = None) -> None:
        """Take over the changes that were not read yet; where one cannot be read, ``problem`` says so."""
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
            self.health, self._run_health = (
                each and each.at(now) for each in (self.health, self._run_health)
            )
        else:
            times = {"began_at": self.began_at, "changed_at": changed_at} if self.is_timed else {}
            self.judge(session, now, **times)

    def judge(self, source: Selectable, now: datetime, **times: datetime | None) -> None:
        """Note how the session is doing; see ``health_of``."""
        steps = self.run.steps
        try:
            self.health = health_of(source, now, **times)
            is_run = steps is not None and steps.run is not None
            self._run_health = health_of_run(source, steps, now, **times) if steps and is_run else None
        except StoreError:
            self.health = self._run_health = None

    @property
    def health_fields(self) -> Fields:
        """The session's health, as the page has it."""
        steps, run = self.run.steps, self._run_health
        is_cut = (
            steps is not None and run is not None and is_over(run) and steps.in_state("in_progress") != []
        )
        return health_fields(self.health, is_cut=is_cut)

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
                "health": self.health_fields,
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
            **{name: value for name, value in fields.items() if value not in (None, [], {})},
            **({} if delta is None else {"plan": delta}),
            **({"names": dict(moment.names)} if moment.names != moment.named else {}),
        }

    def _add(self, fields: Fields) -> None:
        text = as_json(fields)
        with self._lock:
            self._changes.append((fields["v"], text))
            self._characters += len(text)
            while self._changes and (len(self._changes) > self.limit or self._characters > _MOST_CHARACTERS):
                self._fold()

    def _fold(self) -> None:
        """Make the oldest change a part of where the run begins."""
        self.first, text = self._changes.pop(0)
        self._characters -= len(text)
        change, base = json.loads(text), self._base
        base["plan"] = applied(base["plan"], change.get("plan"))
        if "graph" in change:
            base |= {"graph": change["graph"] or None, "steps": {}}
        base["steps"] = {**base["steps"], **change.get("steps", {})}
        base["names"] = change.get("names", base["names"])


def as_json(value: Any) -> str:
    """A value of the page's data as compact JSON."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _kind(moment: Moment, *, is_plan: bool) -> str | None:
    """The name of a change in the page's filters; None for a change of the plan."""
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
