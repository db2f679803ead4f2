"""Contents that cannot be read, though their hashes are sound; and stores that others write to meanwhile."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
import pytest
from store_cases import SETUP, busy, opened
from typer.testing import CliRunner

from planning import Plan
from planning.cli.app import app
from planning.plan.commands import MarkStep, SetupPlan
from planning.suite.tools import register_plan
from planning.view.sources import StoreSource
from session import Session, StoreError, ToolInvoked, stored
from session.stores import MemoryStore, SqliteStore, Store
from session.stores.chain import chained, check_of, key_of

RAW = [
    "{",
    "",
    "[]",
    "null",
    "5",
    '"x"',
    "NaN",
    "1" * 5_000,
    "[" * 100_000,
    '{"a":' * 3_000 + "1" + "}" * 3_000,
    '{"slices":5}',
    '{"slices":{"planning.model:Plan":[]}}',
    '{"slices":{"planning.model:Plan":{"at":"1","items":[]}}}',
    '{"slices":{"planning.model:Plan":{"at":9999,"items":[]}}}',
    '{"slices":{"planning.model:Plan":{"at":1,"items":[{"!":[]}]}}}',
    '{"slices":{"planning.model:Plan":{"at":1,"items":[5]}}}',
    '{"format":2,"at":"2026-01-01","parts":[]}',
    '{"at":5,"parts":[]}',
    '{"at":"2026-01-01","parts":5}',
    '{"at":"2026-01-01","parts":[],"actor":5}',
    '{"at":"2026-01-01","parts":[],"slices":[{}]}',
    '{"at":"2026-01-01","slices":["planning.model:Plan"],"parts":[{"!":"planning.commands:SetupPlan","objective":5}]}',
    '{"at":"2026-01-01","slices":["planning.model:Plan"],"parts":[{"!":"planning.commands:SetupPlan",'
    '"objective":"x","initial_steps":5}]}',
    '{"at":"2026-01-01","parts":[{"!":"session.events:ToolInvoked","name":5,"params":null,"result":null}]}',
    '{"at":"2026-01-01","parts":[{"!":"session.events:ToolInvoked","name":"x","params":null,"result":null,'
    '"created_at":5}]}',
]
PARTS = [
    '{"!":"subprocess:Popen","args":"touch ran"}',
    '{"!":"planning.model:Plan","more":1}',
    '{"!":"planning.model:Plan@99999999999999999999"}',
    '{"!":"dict","items":[1]}',
    '{"!":"rewound","version":99}',
    '{"!":"rewound","version":-1}',
    '{"!":"rewound","version":1.5}',
    '{"!":"rolled back","session_id":"x","created_at":"2026-01-01T00:00:00+00:00","slices":[]}',
    '{"!":"rolled back","session_id":"../x","created_at":"2026-01-01T00:00:00+00:00","slices":{}}',
]
RAW += ['{"at":"2026-01-01","slices":["planning.model:Plan"],"parts":[' + part + "]}" for part in PARTS]


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A store with a busy session, which has checkpoints, and another one."""
    monkeypatch.setattr(stored, "CHECKPOINT", 3)
    path = tmp_path / "plans.db"
    for name in ("run-7", "other"):
        with opened(lambda: SqliteStore(path), name) as (session, toolbox):
            busy(session, toolbox)
            for status in ("done", "blocked", "done", "blocked"):
                session.dispatch(SETUP)
                session.dispatch(MarkStep("S001", status))
    return path


def texts(path: Path, table: str) -> list[tuple[int, str]]:
    with closing(sqlite3.connect(path)) as connection:
        statement = (
            f"SELECT version, text FROM {table} WHERE session = (SELECT key FROM sessions WHERE id = 'run-7')"  # noqa: S608
        )
        return sorted(connection.execute(statement).fetchall())


def rewritten(path: Path, table: str, version: int, text: str) -> None:
    """Put a text in the place of that of a change or of a checkpoint, and make all hashes sound."""
    store = SqliteStore(path)
    head = store.head("run-7")
    assert head is not None
    store.close()
    changes, checkpoints = texts(path, "changes"), texts(path, "checkpoints")
    with closing(sqlite3.connect(path)) as connection:
        (key,) = connection.execute("SELECT key FROM sessions WHERE id = 'run-7'").fetchone()
        before, hashes = b"", {}
        for at, known in changes:
            new = text if (table, at) == ("changes", version) else known
            before = hashes[at] = chained(before, new)
            connection.execute(
                "UPDATE changes SET text = ?, hash = ? WHERE session = ? AND version = ?",
                (new, before, key, at),
            )
        for at, known in checkpoints:
            new = text if (table, at) == ("checkpoints", version) else known
            connection.execute(
                "UPDATE checkpoints SET text = ?, checked = ? WHERE session = ? AND version = ?",
                (new, chained(hashes[at], new), key, at),
            )
        write_head(connection, attrs.evolve(head, hash=before).row()[:-1])
        connection.commit()


def write_head(connection: sqlite3.Connection, values: tuple[Any, ...]) -> None:
    """Write the record of a session, with a sound hash."""
    connection.execute(
        "INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?)",
        (key_of(values[0]), *values, check_of(values)),
    )


def read_all(path: Path) -> list[StoreError]:
    """What every reader says of the session; anything but a StoreError is raised."""
    store = SqliteStore(path)
    session = Session(session_id="run-7", store=store)
    register_plan(session)
    readers: list[Callable[[], object]] = [
        lambda: session.select_latest(Plan),
        lambda: session.select_all(ToolInvoked),
        session.snapshot,
        session.history,
        *(
            lambda version=version: session.at(version).select_latest(Plan)
            for version in range(session.version)
        ),
        lambda: list(store.watch("run-7", after=0, timeout=0)),
        lambda: store.verify("run-7"),
        lambda: session.fork(5, session_id="fork").select_latest(Plan),
    ]
    errors = []
    for read in readers:
        try:
            read()
        except StoreError as error:
            errors.append(error)
    store.close()
    return errors


def printed(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output


@pytest.mark.parametrize("text", RAW, ids=lambda text: text[:60])
@pytest.mark.parametrize("table", ["changes", "checkpoints"])
def test_contents_that_cannot_be_read_are_an_error_with_the_version_and_hide_no_other(
    path: Path, table: str, text: str
) -> None:
    version = texts(path, table)[-2][0]
    rewritten(path, table, version, text)
    errors = read_all(path)
    assert errors
    assert {error.version for error in errors} == {version}
    assert not any("\n" in str(error) or "Traceback" in str(error) for error in errors)
    code, listed = printed("sessions", str(path), "--json")
    assert code == 0
    found = {each["session_id"]: each for each in json.loads(listed)}
    assert found["other"]["objective"] == SETUP.objective
    assert "problem" not in found["other"]
    source = StoreSource(path, None)
    assert {"run-7", "other"} <= {each["id"] for each in source.listed()["sessions"]}
    run = source.open("run-7")
    assert "".join(run.document.parts())
    run.close()
    for command in ("show", "history", "verify"):
        code, output = printed(command, str(path), "run-7")
        assert (code in {0, 1, 2}, "Traceback" in output) == (True, False)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE sessions SET about = 'x' WHERE id = 'run-7'",
        "UPDATE sessions SET id = 'run-8' WHERE id = 'run-7'",
        "UPDATE sessions SET id = x'ff' WHERE id = 'run-7'",
        "UPDATE sessions SET version = 'x' WHERE id = 'run-7'",
        "UPDATE sessions SET changed_at = 5 WHERE id = 'run-7'",
        "UPDATE sessions SET checked = 5 WHERE id = 'run-7'",
    ],
)
def test_a_damaged_record_is_listed_and_hides_no_other(path: Path, damage: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(damage)
        connection.commit()
    found = {each.damage is None: each for each in SqliteStore(path).sessions()}
    assert str(found[True].session_id) == "other"
    name = str(found[False].session_id)
    assert found[False].damage == f"the record of session {name!r} is damaged"
    code, output = printed("sessions", str(path))
    assert code == 0
    assert {line.split()[0] for line in output.splitlines()[1:3]} == {"other", name}
    assert "cannot be read: the record of session" in output
    listed = StoreSource(path, None).listed()
    assert {each["id"]: "problem" not in each for each in listed["sessions"]} == {"other": True, name: False}


@pytest.mark.parametrize(
    "about", ["{}", "[]", "{", "5", "[" * 50_000, '{"created_at":"2026-01-01","tags":{},"forked_from":[]}']
)
def test_a_record_with_a_sound_hash_that_cannot_be_read_is_damaged(path: Path, about: str) -> None:
    store = SqliteStore(path)
    head = store.head("run-7")
    assert head is not None

    with closing(sqlite3.connect(path)) as connection:
        write_head(connection, (*head.row()[:4], about))
        connection.commit()
    with pytest.raises(StoreError, match="the record of session 'run-7' is damaged"):
        store.head("run-7")
    assert [each.damage is None for each in store.sessions()] == [
        each.session_id == "other" for each in store.sessions()
    ]


# Beside a writer


class Busy:
    """Another process that writes between two reads of a store."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.work = work

    def beside(self, store: Store, *methods: str) -> Store:
        """The store, whose methods are called after some work of another."""
        for name in methods:
            method = getattr(store, name)
            setattr(store, name, self._after(method))
        return store

    def _after(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def called(*arguments: Any) -> Any:
            self.work()
            return method(*arguments)

        return called


def test_verify_beside_a_writer_finds_no_damage_and_true_damage_still(path: Path) -> None:
    other = Session(session_id="run-7", store=SqliteStore(path))
    register_plan(other)

    def work() -> None:
        other.dispatch(SetupPlan("another"))
        other.rewind(1)

    store = Busy(work).beside(SqliteStore(path), "changes", "checkpoints", "rewinds")
    for _ in range(3):
        before = other.version
        assert store.verify("run-7") == before
        assert other.version > before
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE changes SET text = text || ' ' WHERE version = 3")
        connection.commit()
    with pytest.raises(StoreError) as caught:
        store.verify("run-7")
    assert caught.value.version == 3


@pytest.mark.parametrize("begins_again", [False, True])
def test_a_session_that_is_deleted_while_it_is_read_is_not_called_damaged(
    path: Path, begins_again: bool
) -> None:
    store = SqliteStore(path)
    session = Session(session_id="run-7", store=store)
    register_plan(session)
    other = SqliteStore(path)
    watch = store.watch("run-7", after=1, timeout=0)
    next(watch)
    assert other.delete("run-7")
    expected = "session 'run-7' was deleted from the store"
    if begins_again:
        expected = "session 'run-7' was replaced by another: open it again"
        there = Session(session_id="run-7", store=other)
        register_plan(there)
        there.dispatch(SetupPlan("new"))
    readers: list[Callable[[], object]] = [
        session.history,
        lambda: session.select_latest(Plan),
        lambda: session.at(3).select_latest(Plan),
        session.refresh,
    ]
    for read in readers:
        with pytest.raises(StoreError) as caught:
            read()
        assert str(caught.value) == expected
    watch._found.clear()
    with pytest.raises(StoreError, match="was deleted" if not begins_again else "was replaced by another"):
        next(watch)


@pytest.mark.parametrize("kind", ["memory", "file"])
def test_what_is_read_in_one_block_is_of_one_moment(kind: str, path: Path) -> None:
    store = MemoryStore() if kind == "memory" else SqliteStore(path)
    session = Session(session_id="x", store=store)
    register_plan(session)
    session.dispatch(SETUP)
    with store.reading(), store.reading():
        first = store.head("x")
        if kind == "file":
            other = Session(session_id="x", store=SqliteStore(path))
            register_plan(other)
            other.dispatch(SetupPlan("another"))
            assert other.store is not None
            other.store.delete("other")
        assert store.head("x") == first
        assert len(store.changes("x", 1, 9)) == 1
    assert session.refresh() == (1 if kind == "memory" else 2)
