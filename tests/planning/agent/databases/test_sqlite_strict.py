"""A WITH that doubles with each of its tables is refused, and any other is not."""

# ruff: noqa: S608 - the statements are the subject of these tests

from __future__ import annotations

import pytest

from planning.agent.databases.sqlite_file import check_copies
from planning.agent.sql.guard import Failure

DOUBLING = [f"t{i} AS (SELECT x FROM t{i - 1} UNION ALL SELECT x FROM t{i - 1})" for i in range(1, 25)]
BASE = "t0 (x) AS (SELECT 1)"


@pytest.mark.parametrize(
    "tables",
    [
        [BASE, *DOUBLING],
        [*reversed(DOUBLING), BASE],
        [BASE.replace("AS", "AS NOT MATERIALIZED"), *(each.replace("AS", "AS/**/", 1) for each in DOUBLING)],
        [BASE, *(each.replace("t", '"t"').replace('"t"', "T") for each in DOUBLING)],
        [each.replace("t", "$\u2192t") for each in (BASE, *DOUBLING)],
        [f"[t0] AS (SELECT 1), {', '.join(DOUBLING).replace('FROM t', 'WHERE x IN t')}"],
    ],
    ids=["in order", "reversed", "with words between", "in capitals", "of signs", "in brackets"],
)
def test_a_chain_that_doubles_is_refused(tables: list[str]) -> None:
    with pytest.raises(Failure) as caught:
        check_copies(f"WITH {', '.join(tables)} SELECT count(*) FROM t24")
    assert caught.value.kind == "expanded"


@pytest.mark.parametrize(
    "sql",
    [
        f"WITH {', '.join([BASE, *DOUBLING[:14]])} SELECT count(*) FROM t14",
        f"WITH {', '.join([BASE, *(f't{i} AS (SELECT * FROM t{i - 1})' for i in range(1, 500))])} SELECT 1",
        "WITH RECURSIVE n AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM n, n AS m) SELECT 1 AS n FROM n",
        "SELECT 'with a as (b), c as (a)' AS a",
        "WITH a AS (",
    ],
)
def test_any_other_statement_is_not(sql: str) -> None:
    check_copies(sql)
