"""``planning store copy``, ``store create`` and ``sessions delete``: stores as a whole."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from cli_runs import printed, refused, run, written_in_terminal
from store_files import all_of
from syrupy.assertion import SnapshotAssertion

from planning.cli.source import without_password
from session import Session, replace_latest
from session.stores import SqliteStore, StoreError

NAMES = ["nightly", "other", "run", "what-if"]


pytestmark = pytest.mark.usefixtures("store_folder")


def names_in(path: str) -> list[str]:
    return sorted(all_of(SqliteStore(path)))


def test_all_sessions_are_copied_with_their_hashes(snapshot: SnapshotAssertion) -> None:
    assert run("store", "copy", "plans.db", "copy.db") == snapshot
    assert all_of(SqliteStore("copy.db")) == all_of(SqliteStore("plans.db"))
    assert run("show", "copy.db", "nightly") == run("show", "plans.db", "nightly")
    assert Path("copy.db").stat().st_mode & 0o777 == 0o600


def test_named_sessions_are_copied(snapshot: SnapshotAssertion) -> None:
    shown = run("store", "copy", "plans.db", "copy.db", "run", "nightly", "run", "--json")
    with closing(SqliteStore("plans.db")) as store:
        for head in store.sessions():
            shown = shown.replace(head.hash.hex(), f"<the hash of {head.session_id}>")
    assert shown == snapshot
    assert names_in("copy.db") == ["nightly", "run"]


def test_a_session_that_is_there_already_is_refused_and_nothing_is_copied() -> None:
    run("store", "copy", "plans.db", "copy.db", "run")
    there = "'{}' has run already; nothing was copied"
    assert run("store", "copy", "plans.db", "copy.db") == refused(there.format("copy.db"))
    assert names_in("copy.db") == ["run"]
    assert run("store", "copy", "plans.db", "plans.db", "run") == refused(there.format("plans.db"))


def test_a_damaged_session_is_not_copied_and_the_others_are(snapshot: SnapshotAssertion) -> None:
    with closing(sqlite3.connect("plans.db")) as connection, connection:
        connection.execute("UPDATE changes SET text = replace(text, 'cookie', 'biscuit') WHERE version = 2")
    assert run("store", "copy", "plans.db", "copy.db") == snapshot
    assert names_in("copy.db") == ["other", "run"]
    assert run("store", "copy", "plans.db", "again.db", "nightly", "--json") == snapshot(name="json")
    assert names_in("again.db") == []


def test_an_empty_store_is_shown_and_copied_in_a_word() -> None:
    SqliteStore("empty.db").close()
    for command, found in {
        "store copy empty.db copy.db": {"copied": [], "failed": {}},
        "sessions empty.db": [],
    }.items():
        assert run(*command.split()) == "exit code 0\n--- stdout\nNo sessions.\n"
        assert printed(*command.split(), "--json") == found


def test_sessions_are_deleted_and_forks_stay_whole() -> None:
    before = all_of(SqliteStore("plans.db"))
    assert run("sessions", "delete", "plans.db", "nightly", "run", "nightly", "--yes") == (
        "exit code 0\n--- stdout\nDeleted nightly.\nDeleted run.\n"
    )
    assert all_of(SqliteStore("plans.db")) == {name: before[name] for name in ("other", "what-if")}
    shown = printed("sessions", "delete", "plans.db", "what-if", "--yes", "--json")
    assert shown == {"deleted": ["what-if"]}


@pytest.mark.parametrize(("answer", "left"), [("yes", ["other", "what-if"]), ("no", NAMES), ("", NAMES)])
def test_a_terminal_asks_before_it_deletes(answer: str, left: list[str]) -> None:
    shown = written_in_terminal(80, "sessions", "delete", "plans.db", "nightly", "run", typed=f"{answer}\n")
    done = "Deleted nightly.\nDeleted run.\n" if answer == "yes" else "Nothing was deleted.\n"
    assert shown == f"{answer}\nDelete nightly, run for good? Type yes: {done}"
    assert names_in("plans.db") == left


def test_a_file_is_compacted_while_others_read_it(folder: Path, snapshot: SnapshotAssertion) -> None:
    with closing(SqliteStore("plans.db")) as store:
        session = Session(session_id="large", store=store)
        session.register_reducer(str, replace_latest)
        for number in range(30):
            session.dispatch(f"{number}" * 50_000)
        kept = {name: all_of(SqliteStore("plans.db"))[name] for name in NAMES}
        assert run("store", "compact", "plans.db") == snapshot
        del session
        store.delete("large")
        with store.reading():
            assert sorted(str(each.session_id) for each in store.sessions()) == NAMES
            assert run("store", "compact", "plans.db").startswith("exit code 0")
        assert run("store", "compact", "plans.db") == snapshot
        assert all_of(SqliteStore("plans.db")) == kept
        Session(session_id="nightly", store=store).rewind(1)
    assert run("store", "compact", "postgresql://localhost/plans") == snapshot
    assert run("store", "compact", "none.db") == snapshot


def test_an_address_is_named_without_its_user_and_password() -> None:
    assert without_password("postgresql://me:secret@db:5433/plans") == "postgresql://db:5433/plans"


ADDRESSES = [
    "host=127.0.0.1 port=1 user=me password=secret dbname=plans",
    "postgrsql://me:secret@127.0.0.1:1/plans",
    "POSTGRESQL://me:secret@127.0.0.1:1/plans",
    "mysql://me:secret@127.0.0.1/plans",
    "me:secret@127.0.0.1/plans",
]
COMMANDS = [
    *("sessions STORE", "show STORE run", "history STORE run", "rewind STORE run 1", "graph STORE"),
    *("store create STORE", "store copy plans.db STORE", "sessions delete STORE run --yes"),
    *("mcp --store STORE", "mcp --http STORE", "validate STORE --tools STORE"),
    *("ask why --db STORE --model m", "show STORE run STORE"),
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_no_command_shows_a_password_or_makes_a_file_of_an_address(address: str, folder: Path) -> None:
    files = {path.name for path in folder.iterdir()}
    for command in COMMANDS:
        shown = run(*(address if word == "STORE" else word for word in command.split()))
        assert shown.startswith("exit code 2\n"), command
        assert "secret" not in shown, command
    assert {path.name for path in folder.iterdir()} == files


def test_a_session_takes_a_path_and_no_address_of_something_else(folder: Path) -> None:
    one, other = (Session(session_id="run", store=path) for path in ("plans.db", folder / "plans.db"))
    assert one.store is other.store
    for place in ADDRESSES[1], *ADDRESSES[3:]:
        with pytest.raises(StoreError) as refusal:
            Session(store=place)
        assert "are not supported; give a SQLite file, or postgresql://HOST/DATABASE" in str(refusal.value)
        assert "secret" not in str(refusal.value)
        with pytest.raises(StoreError, match="got the address"):
            SqliteStore(place)
