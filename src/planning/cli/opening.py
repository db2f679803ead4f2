"""The sources of commands, opened: a store and a session in it, a snapshot, a transcript or a workflow."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Final

import attrs

from planning.cli.source import SQLITE, Kind, kind_of, name_of, read_bytes, refuse_other
from planning.cli.transcript import Call, TranscriptError, parse_transcript
from planning.cli.usage import DEFAULT_STORE, LAST, Refused, bad_option
from planning.errors import line_of, listed, nearest, printable
from planning.observe.fact_words import NO_FACTS
from planning.observe.names import names_in
from planning.observe.steps import RunSteps
from planning.observe.stores import ShownStore, open_session, open_store
from planning.observe.timeline import Changes, Moment, Recent, Timeline
from planning.plan.facts import PlanFacts
from planning.plan.model import Plan
from planning.prompt import PlanningToolsSection
from planning.suite.tools import register_plan
from planning.tools import Toolbox
from planning.tools.result import ToolResult
from planning.view.document import Document, RunData
from planning.view.sources import read_session
from planning.workflow.model import Workflow
from planning.workflow.run.memory import MemoryItem
from planning.workflow.run.records import StepRecord, WorkflowRun, register_workflow
from planning.workflow.validate import validate_workflow
from session import Session, SessionError, Snapshot, SnapshotError, ToolInvoked
from session.address import is_address
from session.events import SessionId, session_id_of
from session.slices import type_name
from session.stores import Store, StoredSession

_TYPES: Final = (WorkflowRun, StepRecord, MemoryItem, Plan, PlanFacts)
_KEPT: Final = 64  # changes of a replayed session: the document has what each of them did
MOST_BYTES: Final = 100_000_000  # of a file that is not a store
_LISTED: Final = 5
_PREFIX: Final = "planning_"  # of the names of the planning tools


# Transcripts


def calls_in(data: bytes, source: str | None) -> tuple[Call, ...]:
    """The tool calls in a transcript."""
    try:
        return parse_transcript(data)
    except TranscriptError as error:
        refuse_other(data, source, "a transcript", "transcript")
        raise Refused(f"{name_of(source)} is not a transcript: {error}") from None


def replayed(calls: Iterable[Call], session: Session) -> Iterator[tuple[Call, ToolResult | None]]:
    """Run calls one by one in a session, each with its result; those of other tools are only noted."""
    toolbox = Toolbox(PlanningToolsSection(session=session).tools())
    for call in calls:
        if call.name.startswith(_PREFIX):
            yield call, toolbox.call(call.name, call.arguments)
        else:
            session.dispatch(ToolInvoked(call.name, call.arguments, None))
            yield call, None


# Sessions


class _Replay(Recent):
    """The changes that the calls of a transcript make, each when it is asked for."""

    def __init__(self, calls: Iterable[Call]) -> None:
        super().__init__(Session(history=_KEPT))
        self._made = replayed(calls, self.session)

    def new(self) -> Iterator[Moment]:
        for _ in self._made:
            yield from super().new()


@attrs.define(slots=False)
class Opened:
    """A session that a command was given, in a store or in a file."""

    kind: Kind
    title: str
    _store: ShownStore | None = None
    _head: StoredSession | None = None
    _snapshot: Session | None = None
    _calls: tuple[Call, ...] = ()
    _workflow: Workflow | None = None

    @cached_property
    def session(self) -> Session:
        """The session as it is; for a transcript, after all of its calls."""
        if self._store is not None and self._head is not None:
            return open_session(self._store, self._head.session_id)
        session = self._snapshot or Session(history=_KEPT)
        for _ in replayed(self._calls, session) if self._calls else ():
            pass
        return session

    @contextmanager
    def history(self, after: int | None = 0, limit: int | None = None) -> Iterator[Changes]:
        """Its changes after a version, at most so many; None for those that follow. A snapshot has none."""
        if self._store is None or self._head is None:
            yield _Replay(self._calls)
            return
        version = self._head.version
        if after is not None and after > version:
            raise Refused(f"the session has the versions 0 to {version}, got {after}")
        if after is not None and limit is not None:
            after = max(after, version - limit)
        with closing(self._store.another()) as store, nullcontext() if after is None else store.reading():
            yield Timeline(store, self._head, version if after is None else after)

    def document(self) -> Document:
        """It as the page shows it."""
        if self._store is not None and self._head is not None:
            return read_session(self._store, self._head, Path(self._store.name).name)[0]
        session = self._snapshot or Session(history=_KEPT)
        steps = RunSteps.of(session) if self._workflow is None else RunSteps(self._workflow)
        document = Document(
            title=self.title,
            kind="session" if self.kind == "store" else self.kind,
            source=self.title,
            is_timed=False,
            plan=session.select_latest(Plan),
            facts=session.select_latest(PlanFacts) or NO_FACTS,
            names=names_in(session),
            run=RunData(steps),
        )
        document.judge(session, datetime.now(UTC))
        recent = Recent(session)
        for call, _ in replayed(self._calls, session) if self._calls else ():
            extra = {"call_id": call.call_id, "usage": dict(call.usage)}
            document.read(recent, {name: value for name, value in extra.items() if value})
        return document


@contextmanager
def opened(
    source: str | None, session: str | None, *kinds: Kind, wanted: str = "one run", is_live: bool = False
) -> Iterator[Opened]:
    """Open what a command is given: a session of a store, None for its only one, or a file of these kinds.

    Without a source it is the store of ``planning run``, or standard input if there is no such store. Without
    kinds, only a store is taken. All is read as of one moment, unless it ``is_live``.
    """
    source = DEFAULT_STORE if source is None and (not kinds or is_store(DEFAULT_STORE)) else source
    if not kinds or session is not None or is_store(source):
        with opened_store(source or "-") as store, nullcontext() if is_live else store.reading():
            found = known_session(store, session)
            head = store.newest(found)
            if head is None:
                raise Refused(f"session '{found}' was deleted")
            yield Opened("store", str(found), store, head)
    else:
        yield _in_file(source, kinds, wanted)


def opened_page(source: str, session: str | None) -> AbstractContextManager[Opened]:
    """Open what the page can show; a session is named only in a store."""
    if session is not None and not is_store(source):
        reason = f"it names a session of a store, and {name_of(source)} is not a store"
        raise bad_option("SESSION", reason)
    return opened(source, session, "snapshot", "workflow", "transcript")


def _in_file(source: str | None, kinds: tuple[Kind, ...], wanted: str) -> Opened:
    data = read_bytes(source, "SOURCE", limit=MOST_BYTES)
    title = "standard input" if source in (None, "-") else Path(str(source)).name
    kind = kind_of(data)
    if kind is None or kind not in kinds:
        refuse_other(data, source, wanted)
        *names, last = ("store", *kinds)
        raise Refused(f"{name_of(source)} is not a {', a '.join(names)} or a {last}")
    if kind == "transcript":
        return Opened(kind, title, calls=calls_in(data, source))
    if kind == "snapshot":
        return Opened(kind, title, snapshot=session_of(data, source))
    report = validate_workflow(data)
    if not report.ok:
        raise Refused(f"{name_of(source)} is a workflow with errors; 'planning validate' lists them")
    return Opened(kind, title, workflow=report.workflow)


def session_of(data: bytes, source: str | None) -> Session:
    """A session with the plan and the run in a snapshot; a program's own slices cannot be read here."""
    document, known = json.loads(data), {type_name(each) for each in _TYPES}
    kept = {name: rows for name, rows in document["slices"].items() if name in known}
    session = Session()
    register_plan(session)
    register_workflow(session)
    try:
        session.rollback(Snapshot.from_json(json.dumps({**document, "slices": kept}), types=_TYPES))
    except SnapshotError as error:
        raise Refused(f"{name_of(source)} is not a snapshot of a session: {line_of(error)}") from None
    return session


# Stores


def is_store(source: str | None) -> bool:
    """True if a source is a store, or an address as of one."""
    if source in {None, "-"}:
        return False
    if is_address(source):
        return True
    # What is read from a pipe is gone.
    return Path(source).is_file() and read_bytes(source, "STORE", first=len(SQLITE)) == SQLITE


@contextmanager
def opened_store(place: str, *, begins: bool = False) -> Iterator[ShownStore]:
    """Open a store, and close it after the block; ``begins`` creates a file that does not exist."""
    is_new = begins and not os.path.lexists(place)
    if place != "-" and not is_new and not is_store(place):  # to open it would begin a store
        if not os.path.lexists(place) or Path(place).is_file():  # to read a pipe would wait for its writer
            refuse_other(read_bytes(place, "STORE"), place, "a store of sessions")
        raise Refused(f"{name_of(place)} is not a store of sessions")
    try:
        with closing(found_store(place)) as store:
            yield store
    except SessionError as error:
        raise Refused(line_of(error)) from None


def found_store(place: str) -> ShownStore:
    """Open a store, or begin a file."""
    if place == "-":
        raise Refused("a store cannot be read from standard input; give the path of a SQLite file")
    try:
        return open_store(place)
    except (ImportError, ValueError) as error:
        raise Refused(printable(str(error))) from None


@contextmanager
def opened_session(place: str, name: str | None, *, is_read: bool = False) -> Iterator[Session]:
    """Open a session of a store; with ``is_read``, all that is read in the block is of one moment."""
    with opened_store(place) as store, store.reading() if is_read else nullcontext():
        yield open_session(store, known_session(store, name))


def valid_session(name: str, option: str) -> SessionId:
    """The id that a name is; another is a wrong option."""
    try:
        return session_id_of(name)
    except ValueError as error:
        raise bad_option(option, error) from None


def known_session(store: Store, name: str | None, *, is_whole: bool = False) -> SessionId:
    """The id of a session of a store, also by its beginning unless it ``is_whole``; None for its only one.

    ``LAST`` is the one that was changed last.
    """
    if name is None or name == LAST:
        heads = store.sessions(_LISTED + 1)
        if len(heads) == 1 or (heads and name == LAST):
            return heads[0].session_id
        names = listed(str(each.session_id) for each in heads[:_LISTED])
        more = ", ..." if len(heads) > _LISTED else ""
        several = f"several sessions; name one, or give {LAST}: {printable(names)}{more}"
        raise Refused(f"the store holds {several if heads else 'no session'}")
    found = begun_session(store, name)
    if found is not None and not (is_whole and str(found) != name):
        return found
    every = [str(each.session_id) for each in store.sessions()]
    near = nearest(name, every) if found is None else str(found)
    hint = "list them with 'planning sessions'" if near is None else f"did you mean {printable(near)}?"
    raise Refused(f"the store holds no session '{printable(name)}'; {hint}")


def begun_session(store: Store, name: str) -> SessionId | None:
    """The session with an id, or the only one whose id begins so; None if there is none."""
    if name == LAST:
        return known_session(store, name)
    identity = valid_session(name, "SESSION")
    if store.head(identity) is not None:
        return identity
    begun = [each.session_id for each in store.sessions() if str(each.session_id).startswith(name)]
    if len(begun) > 1:
        more = ", ..." if len(begun) > _LISTED else ""
        names = printable(listed(map(str, begun[:_LISTED])))
        raise Refused(f"several sessions begin with '{printable(name)}': {names}{more}")
    return begun[0] if begun else None
