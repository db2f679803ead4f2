"""What OpenTelemetry records of plans and of workflow runs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import attrs
import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from syrupy.assertion import SnapshotAssertion

from planning import MarkStep, NewPlanStep, PlanChanged, SetupPlan, register_plan
from planning.integrations.opentelemetry import instrument
from planning.tools import tool
from planning.workflow import Capabilities, Workflow, WorkflowStep, run_workflow
from planning.workflow.run.records import RunChanged, StepChanged, WorkflowRun
from session import InProcessEventBus, Session

SETUP = SetupPlan("Open the shop", (NewPlanStep("Rent a room"), NewPlanStep("Buy shelves")))
exported = InMemorySpanExporter()
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exported))
tracer = provider.get_tracer("test")


@pytest.fixture(autouse=True)
def _empty() -> Iterator[None]:
    exported.clear()
    yield
    exported.clear()


@pytest.fixture
def plans() -> Session:
    session = Session(session_id="run-7")
    register_plan(session)
    return session


def spans() -> list[tuple[str, dict[str, Any]]]:
    """The spans that ended, with their attributes; the ids of runs are left out."""
    ended = [(span.name, dict(span.attributes or {})) for span in exported.get_finished_spans()]
    for _, attributes in ended:
        attributes.pop("planning.run_id", None)
    return ended


def events(span: ReadableSpan) -> list[tuple[str, Mapping[str, Any]]]:
    return [(event.name, dict(event.attributes or {})) for event in span.events]


@tool
def ship(parcels: int) -> int:
    """Ship parcels."""
    if parcels > 2:
        raise ValueError("no van")
    return parcels + 1


def shipping(*parcels: int, behind: tuple[str, ...] = ()) -> Workflow:
    """A workflow that ships so many parcels at once, and one behind others."""
    made: dict[str, Any] = {"description": "Ship", "type": "tool", "name": "ship"}
    inputs = [{"parcels": number} for number in parcels]
    steps = [WorkflowStep(step_id=f"ship-{n}", inputs=given, **made) for n, given in enumerate(inputs, 1)]
    steps += [WorkflowStep(step_id="last", depends_on=behind, **made)] * bool(behind)
    return Workflow(goal="Ship all", steps=tuple(steps))


def microseconds(*times: Any) -> list[int]:
    """Times of spans or of events, whose fractions are not exact."""
    return [
        round((each or 0) / 1e3 if isinstance(each, int | None) else each.timestamp() * 1e6) for each in times
    ]


@pytest.mark.parametrize("content", [False, True])
def test_a_change_of_the_plan_is_an_event_on_the_current_span(
    plans: Session, snapshot: SnapshotAssertion, *, content: bool
) -> None:
    instrument(plans, content=content, tracer_provider=provider)
    with tracer.start_as_current_span("call"):
        plans.dispatch(SETUP)
        with plans.transaction(actor="clerk"):
            plans.dispatch(MarkStep("S001", "done"))
        plans.dispatch(MarkStep("S001", "done"))  # no change
    (call,) = exported.get_finished_spans()
    assert json.dumps(events(call), indent=2) == snapshot


def test_nothing_is_made_for_a_change_without_a_recording_span(plans: Session) -> None:
    stop = instrument(plans, tracer_provider=provider)
    bus = plans.bus
    assert isinstance(bus, InProcessEventBus)
    assert not bus.hears(PlanChanged)
    with tracer.start_as_current_span("call"):
        assert bus.hears(PlanChanged)
        stop()
        assert not bus.hears(PlanChanged)
    bus.subscribe(PlanChanged, lambda _event: None)
    assert bus.hears(PlanChanged)


@pytest.mark.parametrize("content", [False, True])
def test_a_run_is_a_span_within_the_current_one_and_its_steps_are_within_that(
    snapshot: SnapshotAssertion, *, content: bool
) -> None:
    session, heard = Session(session_id="run-7"), list[Any]()
    instrument(session.bus, content=content, tracer_provider=provider)
    session.bus.subscribe(RunChanged, heard.append)
    session.bus.subscribe(StepChanged, heard.append)
    with tracer.start_as_current_span("request"):
        run_workflow(shipping(1, 9, behind=("ship-2",)), Capabilities(tools=[ship]), session=session)
    one, two, run, _ = ended = exported.get_finished_spans()
    names = {each.context.span_id: each.name for each in ended}
    told = [
        [
            *of,
            each.parent and names[each.parent.span_id],
            str(each.status.status_code),
            each.status.description,
        ]
        for of, each in zip(spans(), ended, strict=True)
    ]
    assert json.dumps(told, indent=2) == snapshot
    scopes = {each.instrumentation_scope.name for each in (one, two, run) if each.instrumentation_scope}
    assert scopes == {"planning"}
    record = session.select_latest(WorkflowRun)
    assert record is not None
    assert (run.attributes or {})["planning.run_id"] == record.run_id
    runs = [each.created_at for each in heard if isinstance(each, RunChanged)]
    assert microseconds(run.start_time, run.end_time) == microseconds(runs[0], runs[-1])
    for span, step_id in ((one, "ship-1"), (two, "ship-2")):
        of_step = [e.created_at for e in heard if isinstance(e, StepChanged) and e.record.step_id == step_id]
        assert microseconds(span.start_time, span.end_time) == microseconds(of_step[0], of_step[-1])


def test_a_session_alone_is_recorded_and_stopped(plans: Session, caplog: pytest.LogCaptureFixture) -> None:
    other = Session(bus=plans.bus)
    register_plan(other)
    stop = instrument(plans, tracer_provider=provider)

    @tool
    def halt() -> str:
        """Stop the recording in the middle of a run."""
        stop()
        return "stopped"

    with tracer.start_as_current_span("call"):
        other.dispatch(SETUP)
    assert [events(each) for each in exported.get_finished_spans()] == [[]]
    exported.clear()
    run_workflow(shipping(1), Capabilities(tools=[ship]), session=other)
    assert (spans(), caplog.records) == ([], [])
    step = WorkflowStep(step_id="halt", description="Stop", type="tool", name="halt")
    run_workflow(Workflow(goal="Stop", steps=(step,)), Capabilities(tools=[halt]), session=plans)
    of = {"gen_ai.conversation.id": "run-7", "planning.status": "in_progress"}
    assert spans() == [("planning.step", {**of, "planning.step_id": "halt"}), ("planning.workflow", of)]


def test_the_spans_of_a_thousand_runs_are_open_at_once() -> None:
    session, heard = Session(session_id="run-7"), list[RunChanged]()
    session.bus.subscribe(RunChanged, heard.append)
    run_workflow(shipping(1), Capabilities(tools=[ship]), session=session)
    stop = instrument(session.bus, tracer_provider=provider)
    begun = heard[0]
    last = datetime(2026, 1, 1, tzinfo=UTC)
    for number in range(1_001):
        run = attrs.evolve(begun.run, run_id=f"{number}")
        session.bus.publish(attrs.evolve(begun, run=run, created_at=last))
    (first,) = exported.get_finished_spans()
    same = {"gen_ai.conversation.id": "run-7", "planning.status": "in_progress"}
    assert dict(first.attributes or {}) == {**same, "planning.run_id": "0"}
    assert microseconds(first.end_time) == microseconds(last)
    stop()
    assert len(exported.get_finished_spans()) == 1_001


def test_a_bus_of_the_host_is_enough() -> None:
    class Bus:
        def __init__(self) -> None:
            inner = InProcessEventBus()
            self.subscribe, self.unsubscribe, self.publish = inner.subscribe, inner.unsubscribe, inner.publish

    session = Session(bus=Bus())
    register_plan(session)
    instrument(session.bus, tracer_provider=provider)
    with tracer.start_as_current_span("call"):
        session.dispatch(SETUP)
    session.dispatch(MarkStep("S001", "done"))
    assert [name for name, _ in events(exported.get_finished_spans()[0])] == ["planning.plan_changed"]
