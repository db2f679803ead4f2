"""All figures of one run, and which of them meet their target."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from benchmarks.agent_costs import AgentFigures, agent_checks
from benchmarks.characters import Conversation
from benchmarks.check import Check
from benchmarks.door import Takes
from benchmarks.framework_costs import FrameworkFigures, framework_checks
from benchmarks.imports import ImportFigure
from benchmarks.marks import MarkFigure
from benchmarks.plan_checks import LARGE, REPAIR, SMALL, STRAIGHT, PlanFigures
from benchmarks.plan_checks import OURS as OUR_CHECK
from benchmarks.proof.measure import ProofFigures
from benchmarks.session_costs import EventFigure, MemoryFigure
from benchmarks.store_costs import StoreFigures, store_checks
from benchmarks.tool_calls import (
    ADAPTER,
    BARE,
    DECLARE,
    LANGCHAIN,
    PYDANTIC_AI,
    PYDANTIC_AI_TOOLSET,
    REFUSE,
    CallFigures,
)
from benchmarks.tool_calls import OURS as OUR_CALL
from benchmarks.workflow_runs import ENGINE, FEW, LANGGRAPH, MANY, PREFECT, SHAPES, WorkflowFigures
from benchmarks.workflow_runs import OURS as OUR_RUN

__all__ = ["OURS", "NEAREST_PEER", "Check", "Figures"]

OURS = "session-planning"
NEAREST_PEER = "weakincentives"
"""The peer with the same six tools on the same kind of session: the one to be measured against."""

TIMES_FASTER = 4.6
TIMES_FLOOR = 5.0
FLOOR_SIZE = 1_000
EVENT_RATIO = 1.5
SELECT_MICROSECONDS = 1.0
PLANS_BYTES = 12_000_000
IMPORT_MILLISECONDS = 60.0
SHARE_OF_LANGCHAIN = 0.25
CALL_OVERHEAD = 25.0
TIMES_LANGCHAIN = 5.0
TIMES_AT_ONCE = 2.0
TIMES_PYDANTIC_MODEL = 1.5
REFUSE_MICROSECONDS = 40.0
TIMES_ADAPTER = 1.5
SMALL_MILLISECONDS = 1.0
LARGE_MILLISECONDS = 150.0
TIMES_STRAIGHT = 5.0
TIMES_REPAIR = 3.0
LINEAR = 2.0
STEP_MICROSECONDS = 60.0
TIMES_LANGGRAPH = 5.0
TIMES_PREFECT = 20.0
MANY_SECONDS = 2.0
TIMES_TWO_PROCESSES = 1.7


@dataclass(slots=True)
class Figures:
    """What one run measured; a part that was left out is None or empty."""

    machine: dict[str, str]
    quick: bool
    marks: list[MarkFigure] = field(default_factory=list)
    calls: CallFigures | None = None
    plans: PlanFigures | None = None
    events: list[EventFigure] = field(default_factory=list)
    select_latest: float | None = None
    memory: MemoryFigure | None = None
    imports: ImportFigure | None = None
    conversations: list[Conversation] = field(default_factory=list)
    agent: AgentFigures | None = None
    workflows: WorkflowFigures | None = None
    frameworks: FrameworkFigures | None = None
    stores: StoreFigures | None = None
    proof: ProofFigures | None = None

    def mark(self, name: str, takes: Takes, steps: int) -> MarkFigure:
        """The figure of one door at one size."""
        for figure in self.marks:
            if figure.door.name == name and figure.door.takes == takes and figure.steps == steps:
                return figure
        raise KeyError((name, takes, steps))

    def checks(self) -> Iterator[Check]:
        """Every target whose figures were measured."""
        if self.marks:
            yield from self._mark_checks()
        if self.calls is not None:
            yield from self._call_checks(self.calls)
        if self.plans is not None:
            yield from self._plan_checks(self.plans)
        for event in self.events:
            yield Check(
                f"{event.what}: the 100,000th at most {EVENT_RATIO} times the 100th",
                f"{event.ratio:.2f} times",
                event.ratio <= EVENT_RATIO,
            )
        if self.select_latest is not None:
            yield Check(
                f"select_latest under {SELECT_MICROSECONDS:g} microsecond",
                f"{self.select_latest:.3f} microseconds",
                self.select_latest < SELECT_MICROSECONDS,
            )
        if self.memory is not None:
            yield Check(
                f"{self.memory.plans:,} kept plans of {self.memory.steps:,} steps "
                f"under {PLANS_BYTES / 1e6:g} MB",
                f"{self.memory.plans_bytes / 1e6:.2f} MB",
                self.memory.plans_bytes < PLANS_BYTES,
            )
        if self.imports is not None:
            yield Check(
                f"import planning under {IMPORT_MILLISECONDS:g} ms",
                f"{self.imports.milliseconds:.1f} ms",
                self.imports.milliseconds < IMPORT_MILLISECONDS,
            )
            yield Check(
                "import planning loads no library that it does not need yet",
                ", ".join(self.imports.heavy) or "none",
                not self.imports.heavy,
            )
        if self.conversations:
            yield from self._character_checks()
        if self.agent is not None:
            yield from agent_checks(self.agent)
        if self.workflows is not None:
            yield from self._workflow_checks(self.workflows)
        if self.frameworks is not None:
            yield from framework_checks(self.frameworks)
        if self.stores is not None:
            yield from store_checks(self.stores)

    def _mark_checks(self) -> Iterator[Check]:
        for steps in sorted({figure.steps for figure in self.marks}):
            ours = self.mark(OURS, Takes.TYPED, steps).microseconds
            times = self.mark(NEAREST_PEER, Takes.TYPED, steps).microseconds / ours
            yield Check(
                f"a mark at {steps:,} steps at least {TIMES_FASTER:g} times faster than {NEAREST_PEER}",
                f"{times:.2f} times",
                times >= TIMES_FASTER,
            )
        ours = self.mark(OURS, Takes.TYPED, FLOOR_SIZE).microseconds
        times = ours / self.mark("floor", Takes.NONE, FLOOR_SIZE).microseconds
        yield Check(
            f"a mark at {FLOOR_SIZE:,} steps within {TIMES_FLOOR:g} times of the floor",
            f"{times:.2f} times",
            times <= TIMES_FLOOR,
        )

    def _call_checks(self, calls: CallFigures) -> Iterator[Check]:
        ours = calls.one[OUR_CALL]
        overhead = ours - calls.one[BARE]
        yield Check(
            f"overhead of a tool call under {CALL_OVERHEAD:g} microseconds",
            f"{overhead:.1f} microseconds",
            overhead < CALL_OVERHEAD,
        )
        for peer, least in ((LANGCHAIN, TIMES_LANGCHAIN), (PYDANTIC_AI, 1.0), (PYDANTIC_AI_TOOLSET, 1.0)):
            times = calls.one[peer] / ours
            yield Check(
                f"a tool call at least {least:g} times faster than {peer}",
                f"{times:.2f} times",
                times >= least,
            )
        times = calls.at_once / ours
        yield Check(
            f"a tool call among 1,000 at once at most {TIMES_AT_ONCE:g} times one alone",
            f"{times:.2f} times",
            times <= TIMES_AT_ONCE,
        )
        alone = calls.checks["the pydantic model alone"]
        for what, most in (("dataclass", 1.0), ("pydantic model", TIMES_PYDANTIC_MODEL)):
            times = calls.checks[f"validate_call, {what}"] / alone
            yield Check(
                f"validate_call with a {what}: at most {most:g} times a pydantic model alone",
                f"{times:.2f} times",
                times <= most,
            )
        refused = calls.declared[REFUSE]
        yield Check(
            f"a call with two faults refused, with its message, under {REFUSE_MICROSECONDS:g} microseconds",
            f"{refused:.1f} microseconds",
            refused < REFUSE_MICROSECONDS,
        )
        times = calls.declared[DECLARE] / calls.declared[ADAPTER]
        yield Check(
            f"a function declared as a tool in at most {TIMES_ADAPTER:g} times pydantic's own schema of it",
            f"{times:.2f} times",
            times <= TIMES_ADAPTER,
        )

    def _plan_checks(self, plans: PlanFigures) -> Iterator[Check]:
        small, large = plans.valid[OUR_CHECK, SMALL], plans.valid[OUR_CHECK, LARGE]
        for steps, time, most in ((SMALL, small, SMALL_MILLISECONDS), (LARGE, large, LARGE_MILLISECONDS)):
            yield Check(
                f"a valid plan of {steps:,} steps, text to report, under {most:g} ms",
                f"{time:.2f} ms",
                time < most,
            )
        times = plans.valid[STRAIGHT, SMALL] / small
        yield Check(
            f"a valid plan of {SMALL} steps at least {TIMES_STRAIGHT:g} times faster than {STRAIGHT}",
            f"{times:.2f} times",
            times >= TIMES_STRAIGHT,
        )
        growth = large / LARGE / (small / SMALL)
        yield Check(
            f"a step among {LARGE:,} at most {LINEAR:g} times one among {SMALL}",
            f"{growth:.2f} times",
            growth <= LINEAR,
        )
        times = plans.broken[REPAIR] / plans.broken[OUR_CHECK]
        yield Check(
            f"a broken plan of {SMALL} steps at least {TIMES_REPAIR:g} times faster than {REPAIR}",
            f"{times:.2f} times",
            times >= TIMES_REPAIR,
        )

    def _character_checks(self) -> Iterator[Check]:
        langchain = next(talk.total for talk in self.conversations if talk.package == "langchain")
        for talk in self.conversations:
            if talk.package == OURS:
                share = talk.total / langchain
                yield Check(
                    f"characters of {talk.name}: at most a quarter of langchain's",
                    f"{share:.3f}",
                    share <= SHARE_OF_LANGCHAIN,
                )

    def _workflow_checks(self, workflows: WorkflowFigures) -> Iterator[Check]:
        ours = workflows.step[OUR_RUN]
        yield Check(
            f"overhead of a step among {FEW:,}, async tool, under {STEP_MICROSECONDS:g} microseconds",
            f"{ours:.1f} microseconds",
            ours < STEP_MICROSECONDS,
        )
        prefect = min(PREFECT, key=workflows.step.__getitem__)
        for peer, least in ((LANGGRAPH, TIMES_LANGGRAPH), (prefect, TIMES_PREFECT)):
            times = workflows.step[peer] / ours
            yield Check(
                f"overhead of a step at least {least:g} times less than {peer}",
                f"{times:.2f} times",
                times >= least,
            )
        for shape in SHAPES:
            seconds = workflows.shapes[shape, MANY]
            yield Check(
                f"{MANY:,} steps in a {shape} under {MANY_SECONDS:g} s",
                f"{seconds:.2f} s",
                seconds < MANY_SECONDS,
            )
            growth = seconds / MANY / (workflows.shapes[shape, FEW] / FEW)
            yield Check(
                f"a step among {MANY:,} in a {shape} at most {LINEAR:g} times one among {FEW:,}",
                f"{growth:.2f} times",
                growth <= LINEAR,
            )
        times = workflows.work[ENGINE, 1] / workflows.work[ENGINE, 2]
        yield Check(
            f"two seconds of work at least {TIMES_TWO_PROCESSES:g} times faster on two processes than on one",
            f"{times:.2f} times",
            times >= TIMES_TWO_PROCESSES,
        )

    def as_json(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {
            "machine": self.machine,
            "quick": self.quick,
            "checks": [{"target": c.target, "figure": c.figure, "met": c.met} for c in self.checks()],
            "marks": [
                {
                    "door": figure.door.name,
                    "version": figure.door.version,
                    "takes": figure.door.takes.value,
                    "steps": figure.steps,
                    "marks_per_round": figure.marks,
                    "microseconds": {
                        "median": figure.microseconds,
                        "best": figure.best,
                        "rounds": list(figure.rounds),
                    },
                }
                for figure in self.marks
            ],
            "calls": None
            if self.calls is None
            else {
                "one_microseconds": self.calls.one,
                "at_once_microseconds": self.calls.at_once,
                "checks_microseconds": self.calls.checks,
                "declared_microseconds": self.calls.declared,
            },
            "plans": None
            if self.plans is None
            else {
                "valid_milliseconds": {
                    f"{door}, {steps}": time for (door, steps), time in self.plans.valid.items()
                },
                "broken_milliseconds": self.plans.broken,
                "cycle_milliseconds": self.plans.cycle,
                "hostile_milliseconds": self.plans.hostile,
            },
            "events": [
                {"what": e.what, "early_microseconds": e.early, "late_microseconds": e.late, "ratio": e.ratio}
                for e in self.events
            ],
            "select_latest_microseconds": self.select_latest,
            "memory": None
            if self.memory is None
            else {
                "plans": self.memory.plans,
                "steps": self.memory.steps,
                "plans_bytes": self.memory.plans_bytes,
                "session_bytes": self.memory.session_bytes,
            },
            "import": None
            if self.imports is None
            else {
                "milliseconds": self.imports.milliseconds,
                "runs": self.imports.runs,
                "modules": self.imports.modules,
                "heavy": list(self.imports.heavy),
            },
            "conversations": [
                {
                    "name": talk.name,
                    "prompt": len(talk.prompt),
                    "tools": len(talk.tools),
                    "calls": talk.calls,
                    "results": talk.results,
                    "total": talk.total,
                    "billed": talk.billed,
                }
                for talk in self.conversations
            ],
            "agent": None
            if self.agent is None
            else {
                "turn_microseconds": {f"{who}, {way}": time for (who, way), time in self.agent.turn.items()},
                "rows_microseconds": self.agent.rows,
                "schema_milliseconds": self.agent.schema,
                "schema_again_milliseconds": self.agent.schema_again,
                "validate_microseconds": self.agent.validate,
            },
            "stores": None if self.stores is None else asdict(self.stores),
            "proof": None if self.proof is None else asdict(self.proof),
            "workflows": None
            if self.workflows is None
            else {
                "step_microseconds": self.workflows.step,
                "prefect_steps": self.workflows.prefect_steps,
                "shapes_seconds": {
                    f"{shape}, {size}": seconds for (shape, size), seconds in self.workflows.shapes.items()
                },
                "work_seconds": {
                    f"{what}, {count}": seconds for (what, count), seconds in self.workflows.work.items()
                },
            },
        }
