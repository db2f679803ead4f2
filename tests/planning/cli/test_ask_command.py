"""``planning ask``: what it prints, whom it asks, and how it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from chat_server import ChatServer, failure, is_silent, reply, says
from cli_runs import ROOT, commands_in, in_terminal, run, runs, started
from examples.shop import create_database
from syrupy.assertion import SnapshotAssertion

KEY = "sk-very-secret-1234"
COUNT = "SELECT count(*) AS customers FROM customers"
SPENT = "Which customers spent the most?"
OPEN = "SELECT id, ordered_on FROM orders WHERE status = '{}' ORDER BY id"
SLOW = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"
OSLO = "SELECT customers.name FROM customers JOIN cities ON cities.id = city_id WHERE cities.name = 'Oslo'"


@pytest.fixture(autouse=True)
def shop(monkeypatch: pytest.MonkeyPatch) -> None:
    """A shop in the folder, and no environment with a key or a proxy of whoever runs the tests."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    create_database("shop.db")
    Path("count.sql").write_text(COUNT)
    Path("spent.sql").write_text((ROOT / "examples" / "shop" / "spent_most.sql").read_text())


def ask(*arguments: str, stdin: str | bytes | None = None) -> str:
    """What a run shows that asks the shop."""
    return run("ask", *arguments, "--db", "shop.db", stdin=stdin)


def ask_model(server: ChatServer, question: str, *options: str) -> str:
    """What a run shows that asks the shop with the SQL of a model."""
    return ask(question, "--model", "local", "--base-url", server.url, *options)


def final(shown: str) -> dict[str, Any]:
    """The state that a run with --json prints, which is nothing but that."""
    head, _, text = shown.partition("--- stdout\n")
    assert head in {"exit code 0\n", "exit code 1\n"}
    state: dict[str, Any] = json.loads(text)
    return state


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param([SPENT, "--sql-from", "spent.sql"], id="repaired"),
        pytest.param(["which orders are still OPEN", "--sql-from", "open.sql"], id="reflected"),
        pytest.param(["Which customers live in Oslo?", "--sql-from", "oslo.sql"], id="no rows"),
        pytest.param(["--sql-from", "count.sql"], id="SQL from a file"),
        pytest.param(["--sql-from", "wrong.sql"], id="SQL that stays wrong"),
    ],
)
def test_a_question_of_the_shop_is_shown_whole(arguments: list[str], snapshot: SnapshotAssertion) -> None:
    Path("wrong.sql").write_text("DELETE FROM customers")
    Path("open.sql").write_text(f"{OPEN.format('Open')}\n---\n{OPEN.format('open')}")
    Path("oslo.sql").write_text(OSLO)
    assert ask(*arguments) == snapshot


def test_json_is_the_final_state_and_nothing_else(snapshot: SnapshotAssertion) -> None:
    shown = ask(SPENT, "--sql-from", "spent.sql", "--json")
    timeless = re.sub(r'("elapsed": )[\d.e-]+', r"\g<1>0.0", shown)
    assert timeless.replace(f"SQLite {sqlite3.sqlite_version}", "SQLite VERSION") == snapshot
    assert final(shown)["resolved_query"] == SPENT


ODD = "SELECT 'a,b' AS \"x,y\", NULL AS n, 'NULL' AS t, x'00ff' AS b, 'two\nlines\t\x1b[2J' AS s, '' AS e"


@pytest.mark.parametrize("option", [[], ["--csv"]], ids=["rows", "csv"])
def test_a_program_gets_the_rows_alone(option: list[str], snapshot: SnapshotAssertion) -> None:
    Path("odd.sql").write_text(ODD)
    log, _, rows = ask("--sql-from", "odd.sql", *option).partition("--- stdout\n")
    assert ascii(rows) == snapshot
    assert log.startswith("exit code 0\n--- stderr\nNew plan: ")
    assert log.endswith("\n1 row\n")


def test_csv_in_a_terminal_cannot_act_on_it() -> None:
    Path("odd.sql").write_text(ODD)
    shown = in_terminal(80, "ask", "--db", "shop.db", "--sql-from", "odd.sql", "--csv", NO_COLOR="1")
    assert shown.endswith('"x,y",n,t,b,s,e\n"a,b",,NULL,x\'00ff\',"two\nlines\\t\\x1b[2J",\n')


# SQL from a file


def test_no_more_rows_are_read_than_were_asked_for() -> None:
    Path("all.sql").write_text("SELECT id, status FROM orders")
    assert ask("--sql-from", "all.sql", "--max-rows", "2").endswith(
        "\nthe first 2 rows; there are more, see --max-rows\n--- stdout\nid\tstatus\n1\tshipped\n2\tshipped\n"
    )


def test_a_statement_has_no_more_time_than_it_is_given() -> None:
    Path("slow.sql").write_text(SLOW)
    shown = ask("--sql-from", "slow.sql", "--timeout", "0.3")
    assert shown.startswith("exit code 1\n")
    assert "0.3 s" in shown.splitlines()[-1]


# A model


def test_a_model_writes_the_sql(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ChatServer(says("SELECT nmae FROM customers"), says(f"Here:\n```sql\n{COUNT}\n```")) as server:
        shown = ask_model(server, "How many customers are there?", "--json")
    state = final(shown)
    assert (state["success"], state["sql_query"]) == (True, COUNT)
    assert [each["key"] for each in server.requests] == [f"Bearer {KEY}"] * 2
    assert "one SQLite SELECT" in server.requests[0]["body"]["messages"][0]["content"]
    assert "shop" not in json.dumps(server.requests[0]["body"]["messages"][1])
    roles = [each["role"] for each in server.requests[1]["body"]["messages"]]
    assert roles == ["system", "user", "assistant", "user"]
    assert KEY not in shown


def test_a_model_is_heard_when_it_asks_back(snapshot: SnapshotAssertion) -> None:
    text = '{"needs_user_input": true, "input_request": "Which year\\u001b[2J?"}'
    with ChatServer(says(text), says(text)) as server:
        assert ask_model(server, SPENT) == snapshot
        assert final(ask_model(server, SPENT, "--json"))["needs_user_input"] is True
    assert SPENT in server.requests[0]["body"]["messages"][1]["content"]


def test_a_model_that_cannot_be_asked_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ChatServer(reply(failure(f"Bad key {KEY}"), 401)) as server:
        shown = ask_model(server, "How many customers?")
    assert shown.startswith("exit code 1\n--- stderr\n")
    assert "--- stdout" not in shown
    assert KEY not in shown
    assert "refused the API key (401); set OPENAI_API_KEY to a valid one" in shown.splitlines()[-1]


def test_a_slow_model_is_asked_twice_for_as_long_and_with_as_much_text_as_it_may() -> None:
    question = "How many customers? " * 100
    with ChatServer(is_silent) as server:
        shown = ask_model(server, question, "--model-timeout", "0.2", "--prompt-limit", "4000")
    why = f"the model's server {server.host} did not answer in time; ask again"
    assert shown.splitlines()[-1] == f"The question could not be answered: {why}"
    asked = ["".join(each["content"] for each in sent["body"]["messages"]) for sent in server.requests]
    assert [len(each) <= 4_000 for each in asked] == [True] * 2
    assert f"Question: {question[:640]}... (1,360 more characters are not shown)" in asked[0]


# Nothing is asked


def test_what_cannot_be_asked_is_refused(snapshot: SnapshotAssertion) -> None:
    Path("blank.sql").write_text("\n---\n \n")
    commands = commands_in(snapshot)
    shown = runs(commands, "ask ")
    assert shown.count("exit code 2\n") == len(commands)
    assert shown == snapshot


# As a process


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_without_a_trace(
    number: signal.Signals, code: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = folder / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    Path("slow.sql").write_text(SLOW)
    command = ["ask", "--db", "shop.db", "--sql-from", "slow.sql", "--timeout", "60"]
    running = started(*command, start_new_session=True)
    assert running.stderr is not None
    while not running.stderr.readline().startswith("S003 in_progress"):
        assert running.poll() is None
    running.send_signal(number)
    assert (*running.communicate(timeout=30), running.returncode) == ("", "", code)
    assert list(temporary.iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.killpg(running.pid, 0)  # no process of its group is left
