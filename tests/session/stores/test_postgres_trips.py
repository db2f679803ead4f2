"""How often a PostgreSQL store goes to the server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from postgres_server import PostgresServer

from planning import PlanningToolsSection, Toolbox
from session import Session
from session.stores import PostgresStore

pytestmark = pytest.mark.postgres


class Counting(PostgresStore):
    trips = 0

    def _execute(self, *asked: Any) -> Any:
        self.trips += 1
        return super()._execute(*asked)


@pytest.mark.parametrize("changes", [1, 40])
def test_a_request_of_a_warm_session_takes_two_trips_and_any_other_few_more(
    postgres: PostgresServer, changes: int
) -> None:
    schema = postgres.schema()

    async def request(store: Counting, title: str) -> tuple[str, int]:
        store.trips = 0
        session = Session(session_id="ada", store=store)
        toolbox = Toolbox(PlanningToolsSection(session=session).tools(), session=session)
        added = await toolbox.acall("planning_add_step", {"steps": [title]})
        return added.message, store.trips

    async def main(store: Counting, other: Counting) -> list[tuple[str, int]]:
        session = Session(session_id="ada", store=store)
        toolbox = Toolbox(PlanningToolsSection(session=session).tools(), session=session)
        await toolbox.acall("planning_setup_plan", {"objective": "o"})
        for _ in range(changes - 1):
            await toolbox.acall("planning_read_plan")
        del session, toolbox
        return [await request(store, "a"), await request(other, "b"), await request(store, "c")]

    store, other = Counting(postgres.url, schema=schema), Counting(postgres.url, schema=schema)
    store.create()
    warm, cold, changed = asyncio.run(main(store, other))
    store.close()
    other.close()
    assert warm == ("Added S001.", 2)
    assert cold == ("Added S002.", 3 if changes == 1 else 6)
    assert changed == ("Added S003.", 5)
