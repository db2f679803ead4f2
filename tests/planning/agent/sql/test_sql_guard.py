"""Which statements are sent to a database at all."""

from __future__ import annotations

import sys

import pytest

from planning.agent.sql import guard
from planning.agent.sql.guard import check


@pytest.mark.parametrize(
    ("sql", "sent"),
    [
        ("select 1;", "select 1"),
        (" \n-- DROP TABLE x\n;SELECT 1;; -- x", "SELECT 1"),
        ("\ufeffSELECT 1", "SELECT 1"),
        ("/* /* */ SELECT ';' -- ;", "SELECT ';' -- ;"),
        ("SELECT '\U0001f600;', 1; -- \U0001f600", "SELECT '\U0001f600;', 1"),
        ('SELECT 1 AS "a;b", [c;d], `e;f`', 'SELECT 1 AS "a;b", [c;d], `e;f`'),
        ("WITH RECURSIVE a(x) AS (VALUES (1)), delete_me AS NOT MATERIALIZED (SELECT 2) SELECT 1", ...),
        ("WITH replace AS (SELECT 1) SELECT * FROM replace", ...),
        ("WITH a AS (SELECT 1) VALUES (1)", ...),
        ("WITH a", ...),
        ("SELECT 'no end", ...),
        ("SELECT 1 /* no end", ...),
        ("DELETE FROM x /* no end", ...),
        ("SELECT (" * 5000, ...),
    ],
)
def test_what_reads_is_sent_without_what_ends_it(sql: str, sent: object) -> None:
    assert check(sql, "sqlite") == (sql if sent is ... else sent)


def test_tokens_that_cannot_be_told_are_left_to_the_database(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object, **__: object) -> None:
        raise RecursionError

    monkeypatch.setattr("sqlglot.tokenize", failing)
    assert check("DELETE FROM x", "sqlite") == "DELETE FROM x"


def test_without_sqlglot_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    with pytest.raises(ImportError) as caught:
        guard.check("SELECT 1", "sqlite")
    assert str(caught.value) == "reading SQL needs sqlglot: pip install 'session-planning[agent]'"
