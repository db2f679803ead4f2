"""OpenTelemetry: changes of a plan as events on the current span, workflow runs and steps as spans."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from planning.suite.events import PlanChanged
from planning.workflow.run.records import RunChanged, StepChanged
from session import EventBus, InProcessEventBus, Session, SessionEvent

try:
    from opentelemetry import trace
except ImportError as error:
    message = "telemetry needs opentelemetry-api: pip install 'session-planning[opentelemetry]'"
    raise ImportError(message) from error

__all__ = ["instrument"]

_MOST_RUNS = 1_000


def instrument(
    source: Session | EventBus, *, content: bool = False, tracer_provider: trace.TracerProvider | None = None
) -> Callable[[], None]:
    """Record changes of plans and runs of workflows.

    A change of a plan is the event ``planning.plan_changed`` on the span that is current where the change is
    made, such as a framework's span of the tool call. A run of a workflow is the span ``planning.workflow``
    within the current one, and each of its steps a span ``planning.step`` within that.

    Args:
        source: A session; or a bus, for all its sessions.
        content: Whether to record also what people and models wrote: titles, notes, messages of errors.
            Without it, ids, statuses and counts are recorded.
        tracer_provider: Makes the spans; the global one when omitted.

    Returns:
        A function that ends the recording and the open spans. The spans of at most 1,000 runs are open.
    """
    bus, only = (source.bus, source.session_id) if isinstance(source, Session) else (source, None)
    tracer = trace.get_tracer("planning", tracer_provider=tracer_provider)
    runs: dict[str, dict[str, trace.Span]] = {}  # the open spans of each: by step, and its own as ""

    def begin(name: str, event: SessionEvent, parent: trace.Span | None, **said: str) -> trace.Span:
        context = None if parent is None else trace.set_span_in_context(parent)
        attributes = _name_session(event.session_id, **said)
        return tracer.start_span(f"planning.{name}", context, attributes=attributes, start_time=_at(event))

    def on_plan(event: PlanChanged) -> None:
        span = trace.get_current_span()
        if span.is_recording() and only in (None, event.session_id):
            done, steps = (0, 0) if event.after is None else event.after.progress
            said = {"version": event.version, "steps": steps, "steps_done": done, "actor": event.actor or ""}
            said["marked"] = tuple(f"{mark.step_id} {mark.after}" for mark in event.diff.marked)
            said |= {"change": str(event.diff)} if content else {}
            span.add_event("planning.plan_changed", _name_session(event.session_id, **said))

    def on_run(event: RunChanged) -> None:
        run = event.run
        if only in (None, event.session_id):
            end_run(run.run_id, run.status, event)
            if run.token:  # it begins, or is resumed
                span = begin("workflow", event, None, run_id=run.run_id)
                runs.update({run.run_id: {"": span}} if span.is_recording() else {})
            if len(runs) > _MOST_RUNS:  # such as runs whose store was gone at their end
                end_run(next(iter(runs)), "in_progress", event)

    def on_step(event: StepChanged) -> None:
        record, spans = event.record, runs.get(event.record.run_id, {})
        if spans and record.status != "pending" and record.step_id not in spans:
            spans[record.step_id] = begin("step", event, spans[""], step_id=record.step_id)
        if record.status != "in_progress" and record.step_id in spans:
            why = record.error.message if record.error is not None and content else None
            _end(spans.pop(record.step_id), record.status, event, why)

    def end_run(run_id: str, status: str, event: SessionEvent | None = None) -> None:
        for span in reversed(runs.pop(run_id, {}).values()):
            _end(span, status, event)

    def stop() -> None:
        for event_type, handler in handlers:
            bus.unsubscribe(event_type, handler)
        for run_id in list(runs):
            end_run(run_id, "in_progress")

    handlers: list[tuple[type[Any], Callable[[Any], None]]]
    handlers = [(PlanChanged, on_plan), (RunChanged, on_run), (StepChanged, on_step)]
    for event_type, handler in handlers:
        has_when = event_type is PlanChanged and type(bus) is InProcessEventBus
        bus.subscribe(event_type, handler, **({"when": _is_recording} if has_when else {}))
    return stop


def _is_recording() -> bool:
    return trace.get_current_span().is_recording()


def _name_session(session_id: object, **said: Any) -> dict[str, Any]:
    own = {f"planning.{name}": value for name, value in said.items() if value != ""}
    return {"gen_ai.conversation.id": str(session_id), **own}  # the name of the semantic conventions


def _at(event: SessionEvent | None) -> int | None:
    return None if event is None else int(event.created_at.timestamp() * 1e9)  # nanoseconds


def _end(span: trace.Span, status: str, event: SessionEvent | None, why: str | None = None) -> None:
    span.set_attribute("planning.status", status)
    if status == "failed":
        span.set_status(trace.StatusCode.ERROR, why)
    span.end(_at(event))
