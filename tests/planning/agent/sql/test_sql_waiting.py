"""A wait for a free worker is a part of the time that a statement has, and a message says so."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import pytest
from readonly_files import ENDLESS

from planning.agent import SqlDatabase
from planning.agent.sql import process
from planning.agent.sql.worker.frames import unframed
from planning.tools import StorageUnavailable
from planning.tools.errors import ToolTimeout
from planning.workers import pool, worker
from planning.workers.worker import Worker, WorkerBusy


class Clock:
    """A clock that is ahead by what a test adds."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return monotonic() + self.ahead


class SlowPlaces:
    """Places for workers: each becomes free after so many seconds of the clock."""

    def __init__(self, clock: Clock, seconds: float) -> None:
        self._clock = clock
        self._seconds = seconds

    def __call__(self, seconds: float) -> object:
        self._clock.ahead += min(seconds, self._seconds)
        if self._seconds >= seconds:
            raise WorkerBusy
        return object()


Waiting = Callable[[float], list[float]]


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch, shop: SqlDatabase) -> Waiting:
    """Makes each request wait so many seconds, and tells the seconds that workers were given."""
    assert shop.execute("SELECT 1")["data"] == [[1]]
    given: list[float] = []
    send = Worker.send

    def seen(worker: Worker, content: bytes, until: float | None) -> None:
        given.append(unframed(content)[-1])
        send(worker, content, until)

    def waits(seconds: float) -> list[float]:
        clock = Clock()
        for module in (process, pool, worker):
            monkeypatch.setattr(module, "monotonic", clock)
        monkeypatch.setattr(Worker, "send", seen)
        monkeypatch.setattr(shop._workers._pool._crew, "_place", SlowPlaces(clock, seconds))
        return given

    return waits


def test_a_worker_gets_the_time_that_is_left_after_the_wait(waiting: Waiting, shop: SqlDatabase) -> None:
    given = waiting(3.0)
    assert shop.execute("SELECT 1")["success"] is True
    assert [round(seconds, 2) for seconds in given] == [pytest.approx(2.0, abs=0.1)]


def test_a_statement_that_is_stopped_after_a_wait_says_so(waiting: Waiting, shop: SqlDatabase) -> None:
    shop.timeout = 3.3
    given = waiting(3.0)
    answer = shop.execute(ENDLESS)
    assert (answer["code"], answer["error"]) == (
        "timeout",
        "the query waited 3 of its 3.3 s for other queries to end, and was stopped; try again later",
    )
    assert len(given) == 1


def test_a_wait_of_less_than_half_of_the_time_is_not_the_reason(waiting: Waiting, shop: SqlDatabase) -> None:
    shop.timeout = 0.3
    waiting(0.14)
    answer = shop.execute(ENDLESS)
    assert (answer["code"], answer["error"]) == (
        "timeout",
        "the query took longer than 0.3 s and was stopped; ask for less, with WHERE or LIMIT",
    )


def test_a_schema_that_is_not_read_in_time_after_a_wait_says_so(waiting: Waiting, shop: SqlDatabase) -> None:
    shop.timeout = 3.3
    waiting(3.0)
    os.kill(shop._workers._pool._crew._idle[0].process_id, signal.SIGSTOP)
    with pytest.raises(ToolTimeout) as caught:
        shop.get_schema()
    assert str(caught.value) == (
        "reading the schema waited 3 of its 3.3 s for other queries to end, and was stopped; try again later"
    )


def test_where_no_worker_becomes_free_the_message_says_how_long_it_waited(
    waiting: Waiting, shop: SqlDatabase, shop_path: Path
) -> None:
    given = waiting(10.0)
    told = (
        f"as many queries as can run at once are running on {shop_path}, and this one waited 5 s for its"
        " turn; try again later"
    )
    answer = shop.execute("SELECT 1")
    assert (answer["code"], answer["error"]) == ("storage", told)
    with pytest.raises(StorageUnavailable) as caught:
        shop.get_schema()
    assert str(caught.value) == told
    assert given == []


def test_the_first_look_into_a_file_is_a_part_of_the_time_too(shop_path: Path) -> None:
    with SqlDatabase(shop_path, timeout=0.2) as database:
        taken = [database._workers._pool._crew._place(1) for _ in range(4)]
        answer = database.execute("SELECT 1")
        assert (answer["code"], answer["error"]) == (
            "storage",
            f"as many queries as can run at once are running on {shop_path}, and this one waited 0.2 s for"
            " its turn; try again later",
        )
        del taken


def test_a_worker_that_was_killed_from_outside_blames_no_statement(
    shop: SqlDatabase, shop_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert shop.execute("SELECT 1")["data"] == [[1]]
    send = Worker.send

    def killed(worker: Worker, content: bytes, until: float | None) -> None:
        send(worker, content, until)
        os.kill(worker.process_id, signal.SIGKILL)

    monkeypatch.setattr(Worker, "send", killed)
    answer = shop.execute(ENDLESS)
    assert (answer["code"], answer["error"]) == (
        "storage",
        f"the process that read {shop_path} was killed (signal 9), by the system or by another program;"
        " try again, and ask for less if that fails too",
    )
