"""What ``planning view`` and ``planning export`` show: a store, or a file that is read as a whole."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

from planning.cli.keep import session_of
from planning.cli.kinds import SQLITE, kind_of
from planning.cli.replay import MOST_BYTES, PREFIX, calls_in
from planning.cli.source import name_of, read_bytes
from planning.cli.usage import Refused, bad_option
from planning.model import Plan
from planning.prompt import PlanningToolsSection
from planning.tools import Toolbox
from planning.view.document import Document
from planning.view.states import RunStates
from planning.view.timeline import Recent
from planning.workflow.validate import validate_workflow
from session import Session, ToolInvoked

if TYPE_CHECKING:
    from planning.cli.transcript import Call

__all__ = ["document_of", "is_store"]

_KEPT: Final = 64  # changes of a replayed session: the document has what each of them did


def is_store(source: str) -> bool:
    """Whether a source is a store, or a URL as of one."""
    if "://" in source or source == "-":
        return source != "-"
    try:
        if not Path(source).is_file():  # what is read from a pipe is gone
            return False
        with Path(source).open("rb") as file:
            return file.read(len(SQLITE)) == SQLITE
    except (OSError, ValueError):  # reading it says why
        return False


def document_of(source: str, session: str | None) -> Document:
    """What a file shows that is not a store.

    Raises:
        Refused: It cannot be read, or holds nothing that can be shown.
    """
    if session is not None:
        raise bad_option("--session", f"it names a session of a store, and {name_of(source)} is not a store")
    data = read_bytes(source, "SOURCE", most=MOST_BYTES)
    title = "standard input" if source == "-" else Path(source).name
    kind = kind_of(data)
    if kind in {"snapshot", "plan", "shown", "result"}:
        found = session_of(data, source)
        plan, run = found.select_latest(Plan), RunStates.of(found)
        return Document(title=title, kind="snapshot", source=title, plan=plan, run=run)
    if kind == "workflow":
        report = validate_workflow(data)
        if not report.ok:
            raise Refused(f"{name_of(source)} is a workflow with errors; 'planning validate' lists them")
        return Document(title=title, kind="workflow", source=title, run=RunStates("", report.workflow))
    try:
        calls = calls_in(data, source)
    except Refused:
        if kind == "transcript":
            raise
        raise Refused(f"{name_of(source)} is not a store, a snapshot, a workflow or a transcript") from None
    return _replayed(calls, title)


def _replayed(calls: Iterable[Call], title: str) -> Document:
    """What the calls of a transcript do; those of other tools are shown, and not made."""
    section = PlanningToolsSection(session=Session(history=_KEPT))
    session, toolbox = section.session, Toolbox(section.tools())
    document = Document(title=title, kind="transcript", source=title, is_timed=False)
    moments = Recent(session)
    for call in calls:
        if call.name.startswith(PREFIX):
            toolbox.call(call.name, call.arguments)
        else:
            session.dispatch(ToolInvoked(call.name, call.arguments, None))
        extra = {"call_id": call.call_id, "usage": dict(call.usage)}
        document.read(moments, {name: value for name, value in extra.items() if value})
    return document
