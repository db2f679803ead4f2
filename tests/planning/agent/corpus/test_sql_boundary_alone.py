"""The same statements with nothing between them and the connection: the boundary holds by itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hostile_reach import REACH
from hostile_writes import WRITES
from sql_bombs import TOO_MUCH
from sql_boundary import LIMIT, Shop, assert_gone, children, in_time, shop_alone
from sql_cases import Case
from wrong_sql import WRONG

from planning.agent.sql import SqlDatabase, guard

SENT = tuple(case for case in (*WRITES, *REACH, *WRONG, *TOO_MUCH) if isinstance(case.sql, str))
HARMLESS = {"upkeep: explain", "upkeep: explain query plan"}
"""What succeeds without the guard: it reads how a SELECT would be run."""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    with shop_alone(tmp_path_factory) as shop:
        yield shop


@pytest.fixture(scope="module")
def database(shop: Shop) -> Iterator[SqlDatabase]:
    before = children()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(guard, "check", lambda sql, dialect: sql)
        with SqlDatabase(shop.path, timeout=LIMIT) as database:
            yield database
    assert_gone(before)


@pytest.mark.parametrize("case", SENT, ids=[case.name for case in SENT])
def test_nothing_is_written_or_reached_without_the_guard(
    database: SqlDatabase, shop: Shop, case: Case
) -> None:
    with in_time():
        answer = database.execute(str(case.sent(shop.folder)))
    shop.told(answer)
    shop.assert_untouched()
    assert answer["success"] == (case.name in HARMLESS)
    assert database.execute("SELECT count(*) FROM customers")["data"] == [[3]]
