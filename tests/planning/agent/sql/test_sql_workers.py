"""The processes in which statements run, and what keeps them from outliving their use."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import islice
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from readonly_files import COUNTING, ENDLESS, descriptors, until, workers

from planning.agent import SqlDatabase
from planning.agent.sql import process
from planning.agent.sql.failures import explain
from planning.agent.sql.process import WorkerDied, WorkerLate, Workers, WorkerUnavailable
from planning.agent.sql.worker import chunks
from planning.agent.sql.worker.failure import Failure
from planning.agent.sql.worker.frames import frame, read_frame, unframed
from planning.agent.sql.worker.samples import Samples
from planning.agent.sql.worker.serve import Desk

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
    return database._workers._pool._idle


def test_a_worker_is_used_again(shop_path: Path, started: Callable[[], list[int]]) -> None:
    with SqlDatabase(shop_path) as database:
        for _ in range(5):
            database.execute("SELECT 1")
        (process_id,) = started()
        assert [worker._process.pid for worker in pool_of(database)] == [process_id]
        assert os.getsid(process_id) != os.getsid(0), "Ctrl-C in a terminal is not for it"


def test_a_worker_that_was_killed_while_it_waited_is_replaced(shop_path: Path) -> None:
    with SqlDatabase(shop_path) as database:
        database.execute("SELECT 1")
        (killed,) = pool_of(database)
        killed._process.kill()
        killed._process.wait()
        assert database.execute("SELECT 2")["data"] == [[2]]
        (killed,) = pool_of(database)
        killed.is_alive = lambda: True  # it goes between the look and the request
        killed._process.kill()
        until(lambda: killed._process.poll() is not None)
        assert database.execute("SELECT 3")["data"] == [[3]]


def test_a_worker_that_breaks_down_at_work_blames_the_statement(shop_path: Path) -> None:
    with SqlDatabase(shop_path) as database:
        database.execute("SELECT 1")
        (worker,) = pool_of(database)
        sender = subprocess.Popen(["/bin/sh", "-c", f"sleep 0.1; kill -SEGV {worker._process.pid}"])
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
            patched.setattr(process, "_PROGRAM", str(shop_path.with_name("nothing")))
            given = database.execute("SELECT 1")
            assert given["code"] == "storage"
            assert given["error"] in {
                told.format("it ended with status 1"),
                told.format("it ended with status 2"),
            }
        assert database.execute("SELECT 1")["data"] == [[1]]


def test_a_worker_that_is_gone_before_it_hears_anything_is_told(
    shop_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gone(self: Any, *_: object) -> None:
        self._process.kill()
        raise process._Unheard

    with SqlDatabase(shop_path) as database:
        monkeypatch.setattr(process._Worker, "send", gone)
        assert database.execute("SELECT 1")["code"] == "storage"


def test_a_worker_that_does_not_listen_is_ended(shop_path: Path) -> None:
    asked = Workers(str(shop_path))
    assert asked.ask(("run", "sqlite", "SELECT 1", 10), 5.0)[2] == [[1]]
    (worker,) = asked._pool._idle
    os.kill(worker._process.pid, signal.SIGSTOP)
    with pytest.raises(WorkerLate):
        asked.ask(("run", "sqlite", "SELECT 1 -- " + "x" * 300_000, 10), 0.1)
    assert worker._process.returncode == -signal.SIGKILL
    asked.close()


def test_a_worker_that_its_own_alarm_ended_is_late(shop_path: Path) -> None:
    asked = Workers(str(shop_path))
    asked.ask(("run", "sqlite", "SELECT 1", 10), 5.0)
    (worker,) = asked._pool._idle
    os.kill(worker._process.pid, signal.SIGALRM)
    until(lambda: worker._process.poll() is not None)
    with pytest.raises(WorkerLate):
        worker.receive(monotonic() + 5)
    asked.close()


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
        "print(database._workers._pool._idle[0]._process.pid)\n"
    )
    given = subprocess.run(
        [sys.executable, "-W", "error", "-c", code, shop_path], capture_output=True, check=True
    )
    assert given.stderr == b""
    assert not Path(f"/proc/{int(given.stdout)}").exists()


def test_a_pool_that_was_forked_is_forgotten_and_not_ended(shop_path: Path) -> None:
    asked = Workers(str(shop_path))
    asked.ask(("run", "sqlite", "SELECT 1", 10), 5.0)
    pool = asked._pool
    (worker,) = pool._idle
    spare = (os.dup(worker._in.fileno()), os.dup(worker._out.fileno()))  # what the parent would keep
    child = worker._process
    pool.process_id = -1
    process._end_all([worker], -1)
    process._end(child, -1)
    assert child.poll() is None
    assert asked.ask(("run", "sqlite", "SELECT 2", 10), 5.0)[2] == [[2]]
    assert asked._pool is not pool
    assert worker._in.closed
    child.returncode = None
    child.kill()
    child.wait()
    for each in spare:
        os.close(each)
    asked.close()


def test_closing_in_a_forked_process_leaves_the_workers_of_the_other_alone(
    shop_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = Workers(str(shop_path))
    asked.ask(("run", "sqlite", "SELECT 1", 10), 5.0)
    (worker,) = asked._pool._idle
    with monkeypatch.context() as patched:
        patched.setattr(asked._pool, "process_id", -1)
        patched.setattr(worker, "forget", lambda: None)
        asked.close()
    assert worker.is_alive()
    worker.end()


def test_a_worker_that_is_put_back_after_the_end_is_ended(shop_path: Path) -> None:
    asked = Workers(str(shop_path))
    asked.ask(("run", "sqlite", "SELECT 1", 10), 5.0)
    pool = asked._pool
    worker = pool.take()
    assert worker is not None
    asked.close()
    pool.put(worker)
    assert not worker.is_alive()
    assert pool.take() is None


def test_a_compiled_file_is_not_written_where_none_is_wanted(
    shop_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    with SqlDatabase(shop_path) as database:
        database.execute("SELECT 1")
        assert "-B" in pool_of(database)[0]._process.args


def test_the_program_of_a_worker_does_nothing_when_it_is_imported() -> None:
    assert import_module("planning.agent.sql.worker.__main__").__doc__ is not None


def test_frames_go_through_a_pipe_until_it_ends() -> None:
    reading, writing = os.pipe()
    value = ("run", "é\ud800", 1.5, None, b"\0", [1, (2,)], {"a": 2**70})
    os.write(writing, frame(value) + frame(1) + b"\1\0")
    os.close(writing)
    assert (read_frame(reading), read_frame(reading)) == (value, 1)
    with pytest.raises(EOFError):
        read_frame(reading)
    os.close(reading)


def test_a_desk_answers_every_request_with_a_frame(shop_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    desk = Desk(str(shop_path), [])
    sent: list[Any] = []

    def ask(*request: Any) -> Any:
        sent.clear()
        desk.answer(request, lambda content: sent.append(unframed(content[4:])))
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
        lambda content: sent.append(unframed(content[4:])),
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
from worker import serve
left, answer = [*range({answers})], serve.Desk.answer
def worn(self, request, send):
    if not left:
        raise SystemExit(75)
    left.pop()
    answer(self, request, send)
serve.Desk.answer = worn
serve.main()
"""


@pytest.mark.parametrize("answers", [1, 0])
def test_a_worn_worker_is_replaced_without_a_word_if_it_has_ever_worked(
    shop_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answers: int
) -> None:
    program = tmp_path / "worn.py"
    program.write_text(WORN.format(folder=str(Path(process.__file__).parent), answers=answers))
    monkeypatch.setattr(process, "_PROGRAM", str(program))
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
