"""The processes in which statements run, and what keeps them from outliving their use."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from readonly_files import COUNTING, ENDLESS, descriptors, workers

from planning.agent import SqlDatabase
from planning.agent.sql import process
from planning.agent.sql.failures import explain
from planning.agent.sql.process import WorkerDied, WorkerUnavailable
from planning.agent.sql.worker import chunks
from planning.agent.sql.worker.failure import Failure
from planning.agent.sql.worker.frames import unframed
from planning.agent.sql.worker.samples import Samples
from planning.agent.sql.worker.serve import Desk
from planning.workers import worker
from planning.workers.worker import Worker

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def started() -> Iterator[Callable[[], list[int]]]:
    """Tells the workers that a test has started and that are there; after it, none is."""
    gc.collect()
    known, files = set(workers()), descriptors()  # a test of Ctrl-C may have left one that nobody waited for

    def found() -> list[int]:
        return [each for each in workers() if each not in known]

    yield found
    gc.collect()
    assert found() == []
    assert descriptors() <= files


def pool_of(database: SqlDatabase) -> list[Any]:
    return database._workers._pool._crew._idle


def test_a_worker_is_used_again(shop_path: Path, started: Callable[[], list[int]]) -> None:
    with SqlDatabase(shop_path) as database:
        for _ in range(5):
            database.execute("SELECT 1")
        (process_id,) = started()
        assert [each.process_id for each in pool_of(database)] == [process_id]
        assert os.getsid(process_id) != os.getsid(0), "Ctrl-C in a terminal is not for it"


def test_a_worker_that_breaks_down_at_work_blames_the_statement(shop_path: Path) -> None:
    with SqlDatabase(shop_path) as database:
        database.execute("SELECT 1")
        (asked,) = pool_of(database)
        sender = subprocess.Popen(["/bin/sh", "-c", f"sleep 0.1; kill -SEGV {asked.process_id}"])
        given = database.execute(ENDLESS)
        told = "the database failed on it (signal 11); write the query in another way"
        assert (given["code"], given["error"]) == ("parameter", told)
        assert sender.wait() == 0


def test_a_worker_that_never_starts_is_told(shop_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with SqlDatabase(shop_path) as database:
        told = f"no process can be started that reads {shop_path} ({{}}); check this machine's memory"
        with monkeypatch.context() as patched:
            patched.setattr(sys, "executable", str(shop_path.with_name("nothing")))
            given = database.execute("SELECT 1")
            assert (given["code"], given["error"]) == ("storage", told.format("No such file or directory"))
        with monkeypatch.context() as patched:
            patched.setattr(worker, "_INSIDE", str(shop_path.with_name("nothing")))
            given = database.execute("SELECT 1")
            assert given["code"] == "storage"
            assert given["error"] in {
                told.format("it ended with status 1"),
                told.format("it ended with status 2"),
            }
        assert database.execute("SELECT 1")["data"] == [[1]]


def test_a_worker_that_its_own_alarm_ended_is_late(shop_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with SqlDatabase(shop_path) as database:
        database.execute("SELECT 1")
        send = Worker.send

        def alarmed(asked: Worker, content: bytes, until: float | None) -> None:
            send(asked, content, until)  # one that dies before it hears the request is replaced
            os.kill(asked.process_id, signal.SIGALRM)

        monkeypatch.setattr(Worker, "send", alarmed)
        given = database.execute(ENDLESS)
        told = "the query took longer than 5 s and was stopped; ask for less, with WHERE or LIMIT"
        assert (given["code"], given["error"]) == ("timeout", told)


def test_workers_end_with_their_database(shop_path: Path, started: Callable[[], list[int]]) -> None:
    database = SqlDatabase(shop_path)
    database.execute("SELECT 1")
    assert len(started()) == 1
    del database
    gc.collect()
    assert started() == []


def test_many_limits_leave_nothing_behind(shop_path: Path, started: Callable[[], list[int]]) -> None:
    with SqlDatabase(shop_path, timeout=0.01) as database:
        database.execute("SELECT 1")
        before = descriptors()
        for _ in range(5):
            assert database.execute(ENDLESS)["code"] == "timeout"
            assert database.execute(COUNTING)["code"] == "timeout"
        assert descriptors() <= before
        assert len(started()) <= 1


def test_an_interpreter_that_ends_takes_its_workers_along(shop_path: Path) -> None:
    code = (
        "import sys\nfrom planning.agent import SqlDatabase\n"
        "database = SqlDatabase(sys.argv[1]); database.execute('SELECT 1')\n"
        "print(database._workers._pool._crew._idle[0].process_id)\n"
    )
    given = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, shop_path], capture_output=True, check=True
    )
    assert given.stderr == b""
    assert not Path(f"/proc/{int(given.stdout)}").exists()


def test_a_compiled_file_is_not_written_where_none_is_wanted(
    shop_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    with SqlDatabase(shop_path) as database:
        database.execute("SELECT 1")
        command = Path(f"/proc/{pool_of(database)[0].process_id}/cmdline").read_bytes()
    assert command.split(b"\0")[1:4] == [b"-I", b"-S", b"-B"]


def test_a_desk_answers_every_request_with_a_frame(shop_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(str(shop_path), [])
    sent: list[Any] = []

    def ask(*request: Any) -> Any:
        sent.clear()
        desk.answer(request, lambda content: sent.append(unframed(content)))
        return sent[-1]

    desk.rest()
    assert ask("dialect", "", 1.0) == ("done", "sqlite")
    assert ask("run", "sqlite", "SELECT 1 AS a", 10, 1.0) == ("done", (["a"], False))
    assert sent[0] == ("rows", [(1,)])
    assert ask("run", "sqlite", "SELECT", 10, 1.0) == ("failed", ("sql", "incomplete input"))
    assert len(ask("facts", "sqlite", 3, 1.0, 1.0)[1]["tables"]) == 5
    assert ask("dialect", "", 1.0) == ("done", "sqlite")
    desk.rest()

    def lacking(*_: object) -> None:
        raise MemoryError

    def gone(*_: object) -> None:
        raise BrokenPipeError

    with monkeypatch.context() as patched:
        patched.setattr(desk._files["sqlite"], "run", lacking)
        assert ask("run", "sqlite", "SELECT 1", 10, 1.0) == ("failed", ("memory", ""))
    with monkeypatch.context() as patched:
        patched.setattr("builtins.open", lambda *_: (_ for _ in ()).throw(PermissionError(13, "no")))
        assert ask("dialect", "", 1.0) == ("done", None)
    with monkeypatch.context() as patched:
        patched.setattr(desk._files["sqlite"], "run", lambda *_: int("x"))
        told = "ValueError: invalid literal for int() with base 10: 'x'"
        assert ask("run", "sqlite", "SELECT 1", 10, 1.0) == ("failed", ("sql", told))
    with monkeypatch.context() as patched, pytest.raises(BrokenPipeError):
        patched.setattr(desk._files["sqlite"], "run", gone)
        ask("run", "sqlite", "SELECT 1", 10, 1.0)
    assert Desk(str(shop_path.parent), [])._dialect() is None
    desk._files["sqlite"].close()


def rows_of(rows: list[tuple[Any, ...]], most: int) -> tuple[list[Any], bool]:
    sent: list[Any] = []
    left = iter(rows)
    more = chunks.stream(
        lambda size: list(islice(left, size)),
        most,
        lambda content: sent.append(unframed(content)),
    )
    assert all(kind == "rows" and each for kind, each in sent)
    return [row for _, each in sent for row in each], more


def test_rows_are_sent_a_few_at_a_time_and_never_too_many() -> None:
    rows = [(number,) for number in range(3000)]
    for most in (1, 63, 64, 65, 2999, 3000, 3001):
        assert rows_of(rows, most) == (rows[:most], most < 3000)
    assert rows_of([], 5) == ([], False)
    large = [("x" * 10_000,)] * 3000
    kept, more = rows_of(large, 3000)
    assert more
    assert chunks.MOST_BYTES - 1_300_000 < len(kept) * 10_000 <= chunks.MOST_BYTES
    with pytest.raises(Failure) as caught:
        rows_of([("x" * 20_000_000,)], 5)
    assert caught.value.kind == "large"


def test_samples_are_different_values_of_the_first_rows() -> None:
    samples = Samples(3, 2)
    assert not samples.add((1, None, "a" * 300))
    assert not samples.add((1, b"x", "b"))
    assert not samples.add((2, None, "c"))
    assert not samples.add((3, 5, "d"))
    assert samples.add((3, 6.5, "d"))
    assert samples.values == [[1, 2], [5, 6.5], ["a" * 200, "b"]]


def test_an_unprintable_path_is_shown_with_escapes() -> None:
    assert explain("missing", "", "a\nb", 1.0)[0] == "there is no database at a\\nb; check the path"
    assert explain("unreadable", "", "a", 1.0)[0] == (
        "a cannot be read (no reason given); check the file and the disk it is on"
    )


def test_what_a_worker_raises_says_what_it_was() -> None:
    assert WorkerDied(-9).status == -9
    assert str(WorkerUnavailable("x")) == "x"


WORN = """
import sys
sys.path.insert(0, {folder!r})
from worker import serve as real
left, answer = [*range({answers})], real.Desk.answer
def worn(self, request, send):
    if not left:
        raise SystemExit(75)
    left.pop()
    answer(self, request, send)
real.Desk.answer = worn
serve = real.serve
"""


@pytest.mark.parametrize("answers", [1, 0])
def test_a_worn_worker_is_replaced_without_a_word_if_it_has_ever_worked(
    shop_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: int
) -> None:
    (tmp_path / "worn.py").write_text(WORN.format(folder=process._FOLDER, answers=answers))
    monkeypatch.setattr(process, "_FOLDER", str(tmp_path))
    monkeypatch.setattr(process, "_MODULE", "worn")
    with SqlDatabase(shop_path) as database:
        given = [database.execute(f"SELECT {number}") for number in range(3)]
    if answers:
        assert [each["data"] for each in given] == [[[0]], [[1]], [[2]]]
    else:
        assert [each["code"] for each in given] == ["storage"] * 3
        assert given[0]["error"] == (
            f"no process can be started that reads {shop_path} (it ended with status 75);"
            " check this machine's memory"
        )
