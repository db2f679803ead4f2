"""A file that was damaged, or that somebody made to do harm."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import attrs
import pytest
from store_cases import Note, busy, opened

from planning import Plan, PlanningToolsSection, Toolbox
from planning.plan.commands import MarkStep
from session import Session, StoreError, append
from session.stores import SqliteStore


def on_file(path: Path, session_id: str = "run-7") -> tuple[Session, Toolbox]:
    session = Session(session_id=session_id, store=SqliteStore(path, timeout=0.2))
    return session, Toolbox(PlanningToolsSection(session=session).tools(), session=session)


def test_what_is_no_store_is_refused_by_name(tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.write_text("no database" * 100)
    with pytest.raises(StoreError, match="it is not a SQLite file"):
        SqliteStore(text)
    shop = tmp_path / "shop.db"
    with sqlite3.connect(shop) as connection:
        connection.execute("CREATE TABLE orders (id INTEGER)")
    connection.close()
    with pytest.raises(StoreError, match="is a SQLite file, but not a store of sessions: use another file"):
        SqliteStore(shop)
    connection = sqlite3.connect(shop)
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == [("orders",)]
    connection.close()
    with pytest.raises(StoreError, match="check whether its folder exists"):
        SqliteStore(tmp_path / "nowhere" / "a.db")
    newer = tmp_path / "newer.db"
    SqliteStore(newer).close()
    with sqlite3.connect(newer) as connection:
        connection.execute("PRAGMA user_version = 3")
    connection.close()
    with pytest.raises(StoreError, match="has format 3; this release reads formats up to 2: use a newer one"):
        SqliteStore(newer)
    changed = tmp_path / "changed.db"
    SqliteStore(changed).close()
    with sqlite3.connect(changed) as connection:
        connection.execute("CREATE TRIGGER t AFTER INSERT ON changes BEGIN DELETE FROM changes; END")
    connection.close()
    with pytest.raises(StoreError, match="has other tables than a store of sessions"):
        SqliteStore(changed)


def test_what_is_before_the_damage_stays_readable(path: Path) -> None:
    with opened(lambda: SqliteStore(path)) as (session, toolbox):
        plans = busy(session, toolbox)
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE changes SET text = replace(text, 'Ship it', 'Skip it')")
    connection.close()
    session, _ = on_file(path)
    assert plans_of_until(session, 4) == plans[:5]
    with pytest.raises(StoreError) as caught:
        session.at(5).select_latest(Plan)
    assert (caught.value.version, str(caught.value)) == (
        5,
        "version 5 is damaged in the store; what is before it can be read with session.at(), and forked with "
        "session.fork(at=4)",
    )
    assert session.store is not None
    with pytest.raises(StoreError):
        session.store.verify("run-7")
    fork = session.fork(4, session_id="saved")
    fork.dispatch(MarkStep("S002", "done"))
    assert session.store.verify("saved") == 5


def plans_of_until(session: Session, version: int) -> list[Plan | None]:
    return [session.at(each).select_latest(Plan) for each in range(version + 1)]


def test_a_lost_tail_is_seen(path: Path) -> None:
    with opened(lambda: SqliteStore(path)) as (session, toolbox):
        busy(session, toolbox)
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM changes WHERE version = 10")
    connection.close()
    session, _ = on_file(path)
    assert session.store is not None
    with pytest.raises(StoreError, match="version 10 is damaged"):
        session.store.verify("run-7")


def test_what_is_found_by_keys_and_claims_outlives_forks_and_other_writers(path: Path) -> None:
    session, _ = on_file(path)
    session.claim("early")
    other, toolbox = on_file(path)
    setup = {"objective": "Ship it", "initial_steps": ["Build it"]}
    toolbox.call("planning_setup_plan", setup, context={"idempotency_key": "1"})
    session.claim("late")
    session.rewind(0)
    other.claim("later")
    fork = session.fork(1, session_id="fork")
    for each in ("run-7", "fork"):
        assert SqliteStore(path).verify(each) == (2 if each == "run-7" else 1)
        there, _ = on_file(path, each)
        assert (there.claim("early"), there.claim("late")) == (False, False)
        assert (there.find_call("1") is None) is (each == "run-7")
    assert fork.claim("later")
    assert SqliteStore(path).verify("fork") == 1
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE claims SET name = 'lame' WHERE name = 'late'")
        connection.commit()
    with pytest.raises(StoreError, match="the claim 'lame' of the session is damaged: restore the file"):
        SqliteStore(path).verify("run-7")


def test_only_registered_types_are_built(path: Path) -> None:
    store = SqliteStore(path)
    session = Session(session_id="a", store=store)
    session.register_reducer(Note, append)
    session.dispatch(Note("x"))
    name = f"{Note.__module__}:Note"
    again = Session(session_id="a", store=SqliteStore(path))
    with pytest.raises(StoreError) as caught:
        again.history()
    assert str(caught.value) == (
        f"version 1: '{name}' is unknown here: import its module and register a reducer for it, or pass "
        "the class to session.register_types"
    )
    (change,) = store.changes("a", 1, 1)
    assert name in change.text


def test_a_record_that_is_missing_or_disagrees_with_the_changes_is_damage(path: Path) -> None:
    with opened(lambda: SqliteStore(path)) as (session, toolbox):
        busy(session, toolbox)
    session, _ = on_file(path)
    watch = SqliteStore(path).watch("run-7", after=10, timeout=0)
    head = SqliteStore(path).head("run-7")
    assert head is not None
    early = SqliteStore(path).changes("run-7", 4, 4)[0]

    def written(row: tuple[object, ...]) -> None:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(
                "UPDATE sessions SET id = ?, version = ?, hash = ?, changed_at = ?, about = ?, checked = ?",
                row,
            )
            connection.commit()

    written(attrs.evolve(head, version=4, hash=early.hash).row())
    for read in (session.refresh, watch.poll):
        with pytest.raises(StoreError) as caught:
            read()
        assert caught.value.version == 5
    written(attrs.evolve(head, hash=early.hash).row())
    there, _ = on_file(path)
    for work in (there.history, lambda: SqliteStore(path).verify("run-7")):
        with pytest.raises(StoreError, match="version 10 is damaged") as caught:
            work()
        assert caught.value.version == 10
    written(head.row())
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE checkpoints SET text = text || ' '")
        connection.commit()
    with pytest.raises(StoreError, match="the checkpoint of version 10 is damaged: drop the checkpoints"):
        SqliteStore(path).verify("run-7")
    written(attrs.evolve(head, session_id="run-8").row())
    with pytest.raises(StoreError, match="the record of session 'run-7' is damaged"):
        SqliteStore(path).head("run-7")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM sessions")
        connection.commit()
    with pytest.raises(StoreError, match="the record of session 'run-7' is missing: the file is damaged"):
        SqliteStore(path).head("run-7")
