"""What ``show``, ``view`` and ``export`` read besides a store: a snapshot, a transcript or a workflow."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from planning.cli.kinds import kind_of, refuse_other
from planning.cli.replay import MOST_BYTES, PREFIX, calls_in
from planning.cli.source import name_of, read_bytes
from planning.cli.usage import Refused
from planning.observe.fact_words import NO_FACTS
from planning.observe.health import health_of
from planning.observe.names import names_in
from planning.observe.text import line_of
from planning.observe.timeline import Moment, Recent
from planning.plan.facts import PlanFacts
from planning.plan.model import Plan
from planning.prompt import PlanningToolsSection
from planning.tools import Toolbox
from planning.view.document import Document
from planning.view.states import RunStates
from planning.workflow.run.memory import MemoryItem
from planning.workflow.run.records import StepRecord, WorkflowRun
from planning.workflow.validate import validate_workflow
from session import Session, Snapshot, SnapshotError, ToolInvoked
from session.slices import type_name

if TYPE_CHECKING:
    from planning.cli.transcript import Call

_TYPES: Final = (WorkflowRun, StepRecord, MemoryItem, Plan, PlanFacts)
_KEPT: Final = 64  # changes of a replayed session: the document has what each of them did


def loaded(source: str | None) -> tuple[Session, Document]:
    """A session with the plan and the run in a file, and what the page shows of it.

    Raises:
        Refused: It cannot be read, or holds nothing that can be shown.
    """
    data = read_bytes(source, "SOURCE", most=MOST_BYTES)
    title = "standard input" if source in (None, "-") else Path(str(source)).name
    kind = kind_of(data)
    if kind == "snapshot":
        session = session_of(data, source)
        return session, Document(
            title=title,
            kind="snapshot",
            source=title,
            health=health_of(session, datetime.now(UTC)),
            plan=session.select_latest(Plan),
            facts=session.select_latest(PlanFacts) or NO_FACTS,
            names=names_in(session),
            run=RunStates.of(session),
        )
    if kind == "workflow":
        report = validate_workflow(data)
        if not report.ok:
            raise Refused(f"{name_of(source)} is a workflow with errors; 'planning validate' lists them")
        states = RunStates.of_document(report.workflow)
        return Session(), Document(title=title, kind="workflow", source=title, run=states)
    if kind != "transcript":
        refuse_other(data, source, "one run")
        raise Refused(f"{name_of(source)} is not a store, a snapshot, a workflow or a transcript")
    return _replayed(calls_in(data, source), title)


def session_of(data: bytes, source: str | None) -> Session:
    """A session with the plan and the run in a snapshot; a program's own slices cannot be read here.

    Raises:
        Refused: It cannot be read.
    """
    document, known = json.loads(data), {type_name(each) for each in _TYPES}
    slices: Any = document["slices"]
    kept = {**document, "slices": {name: rows for name, rows in slices.items() if name in known}}
    session = Session()
    try:
        session.rollback(Snapshot.from_json(json.dumps(kept), types=_TYPES))
    except SnapshotError as error:
        raise Refused(f"{name_of(source)} is not a snapshot of a session: {line_of(error)}") from None
    return session


def _replayed(calls: Iterable[Call], title: str) -> tuple[Session, Document]:
    """What the calls of a transcript do; those of other tools are shown, and not made."""
    moments = Recent(Session(history=_KEPT))
    document = Document(title=title, kind="transcript", source=title, is_timed=False)
    for call in _replaying(calls, moments.session):
        extra = {"call_id": call.call_id, "usage": dict(call.usage)}
        document.read(moments, {name: value for name, value in extra.items() if value})
    return moments.session, document


def replayed_moments(data: bytes, source: str | None) -> Iterator[Moment]:
    """What the calls of a transcript do, each as soon as it is asked for.

    Raises:
        Refused: It is not a transcript.
    """
    moments = Recent(Session(history=_KEPT))
    for _ in _replaying(calls_in(data, source), moments.session):
        yield from moments.new()


def _replaying(calls: Iterable[Call], session: Session) -> Iterator[Call]:
    """Carry out calls one by one in a session; each is given out after that."""
    toolbox = Toolbox(PlanningToolsSection(session=session).tools())
    for call in calls:
        if call.name.startswith(PREFIX):
            toolbox.call(call.name, call.arguments)
        else:
            session.dispatch(ToolInvoked(call.name, call.arguments, None))
        yield call
