"""Statements of other databases: what is offered as a hint."""

from __future__ import annotations

import pytest

from planning.agent.sql.transpiled import transpiled


@pytest.mark.parametrize("dialect", ["sqlite", "duckdb"])
def test_a_statement_that_would_write_is_no_hint_even_if_the_database_would_take_it(dialect: str) -> None:
    assert transpiled("SELECT * INTO evil FROM customers", dialect, lambda _sql: "") is None


def test_a_unit_in_quotes_is_not_read_as_a_date() -> None:
    written = transpiled("SELECT DATEDIFF('month', '2021-11-30', day) FROM visits", "duckdb", lambda _sql: "")
    assert written is not None
    assert "DATE_DIFF('MONTH'" in written
