"""What each release wrote into ``tests/stored`` is read, and written on, by this one.

A release adds a folder with ``tests/stored/write.py``, which reads back what it wrote: ``read.json``. This
release reads the same. It may read more: names are added to an object, never taken away.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any
from zipfile import ZipFile

import pytest
from examples.folder_store import FolderStore
from postgres_server import shared_server
from session_records import printed, words_of
from store_places import refused
from stored_sessions import NAMES, SETUP, Said, Sample, opened, read, search, toolbox_of

from planning import ApprovePlan, Plan, plan_to_dict
from planning.suite.events import FrameworkChange
from planning.tools import tool
from planning.workflow import Capabilities, Workflow, dump_workflow, run_workflow, validate_workflow
from session import Session, SessionError, Snapshot, ToolInvoked, append
from session.slices import type_name
from session.stores import PostgresStore, SqliteStore, Store

STORED = Path(__file__).parents[2] / "stored"
RELEASES = sorted(path.name for path in STORED.iterdir() if (path / "read.json").exists())


def sqlite(release: Path, folder: Path) -> Store:
    return SqliteStore(shutil.copy(release / "plans.db", folder / "plans.db"))


def folder_store(release: Path, folder: Path) -> Store:
    for name, text in json.loads((release / "folder.json").read_text()).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return FolderStore(folder)


def postgres(release: Path, folder: Path) -> Store:
    import psycopg

    server = shared_server()
    schema = server.schema()
    sql = (release / "postgres.sql").read_text()
    with psycopg.connect(server.conninfo, autocommit=True) as connection:
        for old in ("SCHEMA written;", "written."):
            sql = sql.replace(old, old.replace("written", f'"{schema}"'))
        connection.execute(sql.encode())
    return PostgresStore(server.conninfo, schema=schema)


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest) -> Path:
    return STORED / str(request.param)


@pytest.fixture(params=[sqlite, folder_store, pytest.param(postgres, marks=pytest.mark.postgres)])
def store(request: pytest.FixtureRequest, release: Path, tmp_path: Path) -> Store:
    make: Callable[[Path, Path], Store] = request.param
    return make(release, tmp_path)


def shared(found: Any, known: Any) -> Any:
    """What is found, without the names that the release did not know yet."""
    if isinstance(found, dict) and isinstance(known, dict):
        return {key: shared(value, known[key]) for key, value in found.items() if key in known}
    if isinstance(found, list) and isinstance(known, list) and len(found) == len(known):
        return [shared(*pair) for pair in zip(found, known, strict=True)]
    return found


@pytest.mark.parametrize("name", NAMES)
def test_a_session_is_read_as_the_release_read_it(store: Store, release: Path, name: str) -> None:
    known = json.loads((release / "read.json").read_text())[name]
    assert shared(read(store, name), known) == known


def test_a_session_is_written_on(store: Store) -> None:
    plain = opened(store, "plain")
    toolbox = toolbox_of(plain)
    assert toolbox.call("planning_setup_plan", SETUP, context={"idempotency_key": "k1"}).message == (
        "Plan set: S001 to S003. Next: S001 Reproduce it"
    )
    assert not plain.claim("mailed the report")
    assert toolbox.call("planning_mark_step", {"step_id": "S002", "status": "done"}).message == (
        "S002 done. Next: S003 Test it"
    )
    assert plain.rewind(9) == 14
    assert [event.what == Sample() for event in plain.select_all(Said)] == [True]
    assert store.verify("plain") == 14
    plan = opened(store, "plain").select_latest(Plan)
    assert plan is not None
    assert plan.progress == (2, 4)


def test_a_plan_under_a_policy_goes_on(store: Store) -> None:
    steered = opened(store, "steered")
    call = toolbox_of(steered).call
    begin = {"step_id": "S005", "status": "in_progress"}
    assert call("planning_mark_step", begin).message == (
        "Refused, nothing changed. S005 waits for approval; work on another step, or ask the user to "
        "approve it"
    )
    steered.dispatch(ApprovePlan())
    assert call("planning_mark_step", begin).message == "S005 in_progress."
    proved = {"step_id": "S002", "status": "done", "evidence": ["e1"]}
    assert call("planning_mark_step", proved).message == "S002 done. Next: S003 Ship"


def test_a_run_is_resumed_without_the_step_that_was_done(store: Store) -> None:
    @tool
    def fetch(url: str) -> str:
        """Read a page."""
        return f"The text of {url}"

    run = opened(store, "run")
    workflow = run.select_latest(Workflow)
    assert workflow is not None
    tools = Capabilities(tools=[search, fetch])
    result = run_workflow(workflow, tools, session=run, user_prompt="What is new?")
    assert (result.status, result.outputs["read"]) == ("completed", "The text of https://example.org")
    called = [
        event.name for change in run.history() for event in change.events if isinstance(event, ToolInvoked)
    ]
    assert called == ["search", "fetch"]


@pytest.mark.parametrize("name", NAMES)
def test_a_snapshot_is_restored(release: Path, name: str) -> None:
    session = opened(None, name)
    text = (release / f"snapshot_{name.replace(':', '_')}.json").read_text()
    session.rollback(Snapshot.from_json(text))
    known = json.loads((release / "read.json").read_text())[name]
    assert shared(plan_to_dict(session), known["plan"]) == known["plan"]
    assert [each == Sample() for each in session.select_all(Sample)] == known["samples"]


def test_a_workflow_with_its_states_is_read(release: Path) -> None:
    text = (release / "workflow.json").read_text()
    workflow = validate_workflow(text).workflow
    assert isinstance(workflow, Workflow)
    assert dump_workflow(workflow) == text


@pytest.mark.parametrize("name", ["plain", "steered", "run"])
def test_a_snapshot_is_read_by_a_program_that_imports_the_package_alone(name: str) -> None:
    file = STORED / f"snapshot_{name}.json"
    code = (
        "import sys, planning.workflow.run.records\n"
        "from session import Snapshot\n"
        "print(Snapshot.from_json(open(sys.argv[1]).read()).to_json())"
    )
    assert printed(code, file) == file.read_text()


def test_a_program_with_a_class_of_the_same_name_and_without_the_package_reads_its_own(path: Path) -> None:
    shutil.copy(STORED / "0.2" / "plans.db", path)
    code = (
        "import sys, attrs\n"
        "from session import Session, replace_latest, select_latest\n"
        "Plan = attrs.make_class('Plan', ['name'], frozen=True)\n"
        "session = Session(session_id='plain', store=sys.argv[1])\n"
        "session.register_reducer(Plan, replace_latest)\n"
        "print(select_latest(session, Plan), 'planning' in sys.modules)"
    )
    assert printed(code, path) == "None False\n"


def test_a_class_that_is_in_no_file_of_a_release_keeps_its_name() -> None:
    assert type_name(FrameworkChange) == "planning.events:FrameworkChange"


# Classes that were moved since a store was written

CLASSES = """
from dataclasses import dataclass
import attrs
from session import SessionEvent

@dataclass(frozen=True)
class Note:
    text: str

class Put(Note): ...

class Last(Note): ...

@attrs.frozen(kw_only=True)
class Heard(SessionEvent):
    number: int = 0
"""
MOVED = (
    "the store has {0}, whose class cannot be found, and not {1}: if the class was moved, call "
    "session.register_types({2}, written_as={0!r}) first; if that is another class, import its module first"
)


def moved_from(name: str, kind: type) -> str:
    return MOVED.format(f"{name}:{kind.__name__}", f"new.place:{kind.__name__}", kind.__name__)


def place(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    module = ModuleType(name)
    monkeypatch.setitem(sys.modules, name, module)
    exec(CLASSES, vars(module))  # noqa: S102 - what importing it would do
    return module


def reopened(path: Path, module: Any) -> Session:
    session = Session(session_id="run-7", store=SqliteStore(path))
    session.register_reducer(module.Note, append)
    session.register_reducer(module.Put, lambda _, put: (module.Last(put.text),), module.Last)
    session.register_types(module.Heard)
    return session


def moved(path: Path, monkeypatch: pytest.MonkeyPatch, name: str = "old_place") -> tuple[Session, Any, str]:
    """A session whose classes were in another module when it was written; and a snapshot of then."""
    before = place(name, monkeypatch)
    session = reopened(path, before)
    for value in (before.Note("old"), before.Put("old"), before.Heard(number=1)):
        session.dispatch(value)
    session.rewind(2)
    snapshot = session.snapshot().to_json()
    assert session.store is not None
    session.store.close()
    monkeypatch.delitem(sys.modules, name)
    after = place("new.place", monkeypatch)
    return reopened(path, after), after, snapshot


def test_a_slice_whose_class_has_moved_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session, after, _ = moved(path, monkeypatch)
    for kind in (after.Note, after.Last):
        for use in (session.select_all, session.select_latest, session.at(3).select_all):
            assert refused(partial(use, kind)) == moved_from("old_place", kind)
    grown = Session(session_id="run-7", store=SqliteStore(path))  # without a slice that is read
    grown.register_reducer(after.Note, append)
    assert refused(partial(grown.dispatch, after.Note("new"))) == moved_from("old_place", after.Note)
    assert refused(partial(session.dispatch, after.Put("new"))) == moved_from("old_place", after.Last)
    assert refused(lambda: session.select_all(after.Heard)) == moved_from("old_place", after.Heard)
    assert session.version == 4


def test_a_class_that_has_moved_keeps_its_written_name(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session, after, snapshot = moved(path, monkeypatch)
    for kind in (after.Note, after.Put, after.Last, after.Heard):
        session.register_types(kind, written_as=f"old_place:{kind.__name__}")
    for value in (after.Note("new"), after.Put("new"), after.Heard(number=2)):
        session.dispatch(value)
    for each in (session, reopened(path, after)):
        assert each.select_all(after.Note) == (after.Note("old"), after.Note("new"))
        assert each.select_all(after.Last) == (after.Last("new"),)
        assert [heard.number for heard in each.select_all(after.Heard)] == [1, 2]
        assert [change.version for change in each.history()] == [*range(1, 8)]
        assert each.at(3).select_all(after.Last) == (after.Last("old"),)
    assert Snapshot.from_json(snapshot).select_all(after.Last) == (after.Last("old"),)
    assert type_name(after.Note) == "old_place:Note"


def test_a_class_of_the_same_name_elsewhere_is_another(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session, after, _ = moved(path, monkeypatch)
    place("old_place", monkeypatch)
    assert session.select_all(after.Last) == ()
    session.dispatch(after.Put("new"))
    assert session.select_all(after.Last) == (after.Last("new"),)


IN_PACKAGE = "old_package.inner.old_place"
PACKAGES = {"old_package/__init__.py": "", "old_package/inner/__init__.py": ""}


@pytest.mark.parametrize(
    ("name", "files", "is_found"),
    [
        ("old_place", {"old_place.py": CLASSES}, True),
        ("old_place", {"old_place.py": "Other = 1"}, False),
        ("old_place", {}, False),
        (IN_PACKAGE, {**PACKAGES, "old_package/inner/old_place.py": CLASSES}, True),
        # As planning has it:
        (IN_PACKAGE, {"old_package/__init__.py": f'MOVED = {{"{IN_PACKAGE}": "new"}}'}, True),
        (IN_PACKAGE, PACKAGES, False),
        (IN_PACKAGE, {"old_package.py": "", "old_place.py": CLASSES}, False),
    ],
)
@pytest.mark.parametrize("is_archive", [False, True])
def test_a_module_that_is_not_loaded_is_looked_for_and_never_imported(
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    files: dict[str, str],
    is_found: bool,
    is_archive: bool,
) -> None:
    session, after, _ = moved(path, monkeypatch, name)
    there = path.with_name("old.zip") if is_archive else path.parent
    for file, source in files.items():
        if is_archive:
            with ZipFile(there, "a") as archive:
                archive.writestr(file, f"{source}\nraise RuntimeError")
        else:
            (there / file).parent.mkdir(parents=True, exist_ok=True)
            (there / file).write_text(f"{source}\nraise RuntimeError")
    monkeypatch.syspath_prepend(there)
    if is_found:
        assert session.select_all(after.Last) == ()
    else:
        assert refused(lambda: session.select_all(after.Last)) == moved_from(name, after.Last)
    assert not {"old_place", "old_package"} & sys.modules.keys()


def test_a_module_is_looked_for_in_a_loaded_package(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session, after, _ = moved(path, monkeypatch, IN_PACKAGE)
    place("old_package", monkeypatch).__path__ = [str(path.parent)]
    path.with_name("inner").mkdir()
    (path.with_name("inner") / "old_place.py").write_text(CLASSES)
    assert session.select_all(after.Last) == ()


@pytest.mark.parametrize("name", ["Note", "old:", ":Note", "a b:Note", "a:b:Note", ""])
def test_what_is_not_a_written_name_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = place("somewhere", monkeypatch).Note
    message = f"written_as must be module:QualifiedName, got {name!r}"
    assert words_of(ValueError, Session().register_types, kind, written_as=name) == message


def test_a_class_has_one_written_name(monkeypatch: pytest.MonkeyPatch) -> None:
    kind, session = place("somewhere", monkeypatch).Note, Session()
    for _ in range(2):
        session.register_types(kind, written_as="old_place:Note")
    assert words_of(ValueError, session.register_types, kind, written_as="older:Note") == (
        "Note is written as old_place:Note: a class has one name"
    )
    with pytest.raises(ValueError, match="too many"):
        session.register_types(kind, SessionError, written_as="old_place:Note")
