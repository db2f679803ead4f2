"""The commands on a store in PostgreSQL: its URL in place of a file, and no password in any output."""

from __future__ import annotations

import re
from itertools import count
from pathlib import Path

import psycopg
import pytest
from cli_runs import refused, run
from postgres_server import ESCAPED, PASSWORD, PostgresServer
from run_folders import plan, thought
from store_files import a_store, all_of, timeless
from syrupy.assertion import SnapshotAssertion

from planning.plan.commands import RemoveStep
from planning.view.sources import StoreSource
from session.stores import PostgresStore, SqliteStore

pytestmark = pytest.mark.postgres
_NUMBERS = count(1)
DONE = "exit code 0\n--- stdout\n"


@pytest.fixture
def bare(postgres: PostgresServer) -> str:
    """The URL of a database without tables."""
    name = f"commands_{next(_NUMBERS)}"
    with psycopg.connect(postgres.conninfo, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return postgres.url.rpartition("/")[0] + f"/{name}"


@pytest.fixture
def url(bare: str) -> str:
    """The URL of a database with the sessions of ``plans.db``, in whose folder commands run."""
    a_store(Path("plans.db"))
    made = f"{DONE}The tables are in postgresql://127.0.0.1:5432/plans.\n"
    assert shown(bare, "store", "create", bare) == made
    assert run("store", "copy", "plans.db", bare).startswith("exit code 0\n")
    return bare


def shown(url: str, *arguments: str, stdin: str | None = None) -> str:
    """What a command shows; the database's own place and name left out, and no password in it."""
    text = run(*arguments, stdin=stdin)
    assert PASSWORD not in text
    assert ESCAPED not in text
    place, _, name = url.rpartition("@")[2].partition("/")
    return text.replace(place, "127.0.0.1:5432").replace(name, "plans")


def on(place: str, command: str) -> list[str]:
    """The words of a command, with a place for the word STORE."""
    return [place if word == "STORE" else word for word in command.split()]


READING = [
    *("sessions STORE", "show STORE nightly --at 2 --json", "show STORE run", "history STORE nightly"),
    *("diff STORE nightly 2 6", "audit STORE nightly", "verify STORE nightly --json"),
]


def test_a_database_is_read_and_copied_back_as_the_file_that_was_copied_into_it(url: str) -> None:
    for command in READING:
        of_file = run(*on("plans.db", command))
        assert timeless(run(*on(url, command))) == timeless(of_file), command
        assert of_file.startswith(("exit code 0\n", "exit code 1\n")), command
    assert run("export", url, "run", "-o", "b.html") == "exit code 0\n"
    assert b"p%40ss" not in Path("b.html").read_bytes()
    assert run("store", "copy", url, "back.db").startswith("exit code 0\n")
    first = all_of(SqliteStore("plans.db"))
    assert sorted(first) == ["nightly", "other", "run", "what-if"]
    assert first == all_of(PostgresStore(url)) == all_of(SqliteStore("back.db"))


CHANGING = [
    *("rewind STORE nightly 2", "fork STORE nightly --at 3 --as trial"),
    *(f"run plan.json --store STORE thinking{more}" for more in ("", " --resume")),
    *("sessions delete STORE nightly --yes", "sessions STORE"),
]


def test_a_database_is_changed_by_what_changes_a_file(url: str, snapshot: SnapshotAssertion) -> None:
    Path("plan.json").write_text(plan(thought("think")))
    done = "\n".join(timeless(shown(url, *on(url, command))) for command in CHANGING)
    assert re.sub(r"\d+\.\d s", "0.0 s", done) == snapshot


def test_the_page_shows_a_database_as_the_file_and_steers_it(url: str) -> None:
    file, database = (StoreSource(place, None) for place in ("plans.db", url))
    assert database.listed() == file.listed()
    for name in ("nightly", "run", "what-if"):
        shown = ["".join(source.open(name).document.parts()) for source in (file, database)]
        address = f"postgresql://{url.rpartition('@')[2]}"
        assert shown[1] == shown[0].replace('"plans.db"', f'"{address}"')
    run = database.open("nightly")
    assert database.steer("nightly", RemoveStep("S002"), 6) == 7
    run.document.read(run.moments)
    run.close()
    assert (run.document.version, run.document.problem) == (7, None)
    with pytest.raises(LookupError):
        database.open("missing")


def test_the_statement_is_printed_for_an_administrator(bare: str) -> None:
    text = run("store", "create", bare, "--print").removeprefix(DONE)
    assert text == f"{PostgresStore.schema_sql()};\n"
    with psycopg.connect(bare, autocommit=True) as connection:
        connection.execute(text.encode())
    assert run("sessions", bare) == f"{DONE}No sessions.\n"
    said = f"{DONE}The tables are in postgresql://{bare.rpartition('@')[2]}.\n"
    assert [run("store", "create", bare) for _ in range(2)] == [said, said]


def test_a_schema_of_its_own_is_named_in_the_url(url: str) -> None:
    own = f"{url}?connect_timeout=9&schema=my%20agents"
    assert "tables do not exist" in shown(url, "sessions", own)
    assert 'CREATE SCHEMA "my agents";' in run("store", "create", own, "--print")
    assert shown(url, "store", "create", own).startswith("exit code 0\n")
    assert run("store", "copy", url, own, "nightly") == f"{DONE}Copied nightly: 6 versions.\n"
    assert run("show", own, "nightly") == run("show", url, "nightly")
    assert run("sessions", "delete", own, "nightly", "--yes") == f"{DONE}Deleted nightly.\n"
    assert run("sessions", own) == f"{DONE}No sessions.\n"
    reason = "schema must be 1 to 63 bytes of text without $ % ? { }, got 'a$b'"
    assert shown(url, "sessions", f"{url}?schema=a$b") == refused(reason)


def test_wrong_urls_are_refused_without_the_password(bare: str, snapshot: SnapshotAssertion) -> None:
    a_store(Path("plans.db"))
    login, _, place = bare.rpartition("@")
    wrong = {
        "no tables": bare,
        "no such host": f"{login}@no-such-host.invalid/plans",
        "nothing listens": f"{login}@127.0.0.1:1/plans",
        "another password": f"postgresql://planning:wr0ng-secret@{place}",
        "no such database": f"{login}@{place.partition('/')[0]}/missing",
        "a password that is not escaped": f"postgresql://planning:{PASSWORD}@{place}",
        "no host": f"postgresql://planning:{ESCAPED}",
        "an option that is none": f"{bare}?passw0rd={ESCAPED}",
    }
    found = []
    for name, given in wrong.items():
        for command in (("sessions", given), ("store", "copy", "plans.db", given, "run")):
            text = shown(bare, *command)
            assert "wr0ng" not in text
            assert "ss/word" not in text
            found.append(f"{name}: {' '.join(command).replace(given, 'URL')}\n{text}")
    assert "\n".join(found) == snapshot
