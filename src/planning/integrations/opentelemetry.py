"""OpenTelemetry: changes of a plan as events on the current span, workflow runs and steps as spans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from planning.events import PlanChanged
from planning.workflow.run.records import RunChanged, StepChanged
from session import EventBus, Session, SessionEvent, SessionId

try:
    from opentelemetry import trace
except ImportError as error:
    raise ImportError(
        "telemetry needs opentelemetry-api: pip install 'session-planning[opentelemetry]'"
    ) from error

__all__ = ["instrument"]

_MOST_RUNS = 1_000
_ENDED = frozenset({"completed", "failed", "pending"})  # pending: interrupted, or skipped after a failure


def instrument(
    source: Session | EventBus, *, content: bool = False, tracer_provider: trace.TracerProvider | None = None
) -> Callable[[], None]:
    """Record changes of plans and runs of workflows.

    A change of a plan is the event ``planning.plan_changed`` on the span that is current where the change is
    made, such as a framework's span of the tool call. A run of a workflow is a span ``planning.workflow``
    within the current one, and each step that is begun a span ``planning.step`` within that of its run. What
    a step's tool records is not within the step's span.

    Args:
        source: A session; or a bus, for all its sessions.
        content: Whether to record also what people and models wrote: titles, notes, messages of errors.
            Without it, ids, statuses and counts are recorded.
        tracer_provider: Makes the spans; the global one when omitted.

    Returns:
        Ends the recording, and the spans that are open.
    """
    bus, only = (source.bus, source.session_id) if isinstance(source, Session) else (source, None)
    tracer = trace.get_tracer("planning", tracer_provider=tracer_provider)
    runs: dict[
        str, dict[str | None, trace.Span]
    ] = {}  # open spans: of steps, and the run's own

    def begin(name: str, event: SessionEvent, parent: trace.Span | None, **more: str) -> trace.Span:
        context = None if parent is None else trace.set_span_in_context(parent)
        attributes = {**_of(event.session_id), **{f"planning.{key}": value for key, value in more.items()}}
        return tracer.start_span(f"planning.{name}", context, attributes=attributes, start_time=_at(event))

    def on_plan(event: PlanChanged) -> None:
        span = trace.get_current_span()
        if span.is_recording() and only in (None, event.session_id):
            done, steps = (0, 0) if event.after is None else event.after.progress
            changed = {"planning.change": str(event.diff)} if content else {}
            by = {} if event.actor is None else {"planning.actor": event.actor}
            counts = {"planning.version": event.version, "planning.steps_done": done, "planning.steps": steps}
            marks = tuple(f"{mark.step_id} {mark.after}" for mark in event.diff.marked)
            said = {**_of(event.session_id), **counts, "planning.marked": marks, **by, **changed}
            span.add_event("planning.plan_changed", said)

    def on_run(event: RunChanged) -> None:
        if only not in (None, event.session_id):
            return
        run = event.run
        close(run.run_id, run.status, event)
        if run.token and run.status == "in_progress":
            span = begin("workflow", event, None, run_id=run.run_id)
            if span.is_recording():
                runs[run.run_id] = {None: span}
            if len(runs) > _MOST_RUNS:  # such as runs whose store was gone at their end
                close(next(iter(runs)), "in_progress", event)

    def on_step(event: StepChanged) -> None:
        record, spans = event.record, runs.get(event.record.run_id, {})
        if spans and record.step_id not in spans:
            spans[record.step_id] = begin("step", event, spans[None], step_id=record.step_id)
        if spans and record.status in _ENDED:
            message = record.error.message if record.error is not None and content else None
            status = "skipped" if record.skipped else record.status
            _end(spans.pop(record.step_id), status, event, message)

    def close(run_id: str, status: str, event: SessionEvent | None = None) -> None:
        for span in reversed(runs.pop(run_id, {}).values()):
            _end(span, status, event)

    def stop() -> None:
        for event_type, handler in handlers:
            bus.unsubscribe(event_type, handler)
        for run_id in list(runs):
            close(run_id, "in_progress")

    handlers: tuple[tuple[type[Any], Callable[[Any], None]], ...]
    handlers = (PlanChanged, on_plan), (RunChanged, on_run), (StepChanged, on_step)
    for event_type, handler in handlers:
        bus.subscribe(event_type, handler)
    return stop


def _of(session_id: SessionId) -> dict[str, Any]:
    return {"gen_ai.conversation.id": str(session_id)}  # as the semantic conventions of generative AI name it


def _at(event: SessionEvent | None) -> int | None:
    return None if event is None else int(event.created_at.timestamp() * 1e9)


def _end(span: trace.Span, status: str, event: SessionEvent | None, why: str | None = None) -> None:
    span.set_attribute("planning.status", status)
    if status == "failed":
        span.set_status(trace.StatusCode.ERROR, why)
    span.end(_at(event))
