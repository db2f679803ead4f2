"""Files of an older format are brought to today's when they are opened."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from planning import Plan, PlanningToolsSection, Toolbox
from planning.tools.ledger import ToolCall
from session import Rewound, Session
from session.stores import SqliteStore
from session.stores import sqlite_file as files

FORMAT_1 = Path(__file__).with_name("format_1.sql")
"""A dump of a file that the last release with format 1 wrote: a session with a rewind, a call id that was
used twice and claims, and its fork."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "plans.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(f"PRAGMA journal_mode = WAL; {FORMAT_1.read_text()}")
    return path


def tables(path: Path) -> tuple[int, dict[str, str]]:
    with closing(sqlite3.connect(path)) as connection:
        (number,) = connection.execute("PRAGMA user_version").fetchone()
        found = connection.execute("SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    return number, dict(found)


def test_a_file_of_format_1_is_brought_to_format_2_with_all_that_is_in_it(path: Path, tmp_path: Path) -> None:
    store = SqliteStore(path)
    session = Session(session_id="run-7", store=store)
    toolbox = Toolbox(PlanningToolsSection(session=session).tools(), session=session)
    assert (store.verify("run-7"), store.verify("fork")) == (6, 2)
    assert [(str(each.session_id), each.version, dict(each.tags)) for each in store.sessions()] == [
        ("fork", 2, {"project": "login"}),
        ("run-7", 6, {"project": "login"}),
    ]
    plans = [session.at(version).select_latest(Plan) for version in range(7)]
    assert [plan and (plan.status, plan.progress) for plan in plans] == [
        None,
        ("active", (0, 2)),
        ("active", (1, 2)),
        ("abandoned", (0, 0)),
        *[("active", (1, 2))] * 3,
    ]
    assert [line.call_id for line in session.select_all(ToolCall)] == [f"call_{n}" for n in (1, 2, 3, 1, 4)]
    assert isinstance(session.history(after=3)[0].events[0], Rewound)
    assert (session.claim("mailed the report"), session.claim("another")) == (False, True)
    by = {"call_id": "call_1", "idempotency_key": "1"}
    for _ in "ab":
        assert toolbox.call("planning_mark_step", {"step_id": "S002", "status": "done"}, context=by).success
    assert (session.version, store.verify("run-7")) == (7, 7)
    store.close()
    SqliteStore(tmp_path / "new.db").close()
    assert tables(path) == tables(tmp_path / "new.db")


def test_a_migration_that_is_cut_off_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = tables(path)

    def killed(_row: object) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(files, "check_of", killed)
        with pytest.raises(KeyboardInterrupt):
            SqliteStore(path)
    assert tables(path) == before
    assert SqliteStore(path).verify("run-7") == 6


def test_two_processes_that_open_it_at_once_migrate_it_once(path: Path) -> None:
    program = (
        "import sys; from session.stores import SqliteStore; print(SqliteStore(sys.argv[1]).verify('run-7'))"
    )
    started = [
        subprocess.Popen([sys.executable, "-c", program, str(path)], stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    assert [process.communicate(timeout=60)[0] for process in started] == ["6\n"] * 3
