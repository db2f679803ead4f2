"""``SqlDatabase``: a database that can only be read, and the threads that read it and can be interrupted."""

from __future__ import annotations

import _thread
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock
from time import monotonic, perf_counter, sleep
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from planning.agent.databases.base import database_tools
from planning.agent.databases.opened import OpenDatabase, is_settled, stamp
from planning.agent.databases.sqlite_file import SqliteFile
from planning.agent.sql import guard
from planning.agent.sql.guard import Failure, explain
from planning.agent.sql.schema import schema_text
from planning.agent.sql.schema import validate_results as _validate
from planning.errors import cut
from planning.tools import ErrorKind, StorageUnavailable, Tool
from planning.tools.background import is_given_up
from planning.tools.errors import ToolTimeout
from session.address import is_address, show_address
from session.locks import Ending, Held, ProcessLock

if TYPE_CHECKING:
    from planning.agent.sql.columns import Columns

T = TypeVar("T")

_MOST: Final = 8
_IDLE: Final = 0.25  # seconds after which a thread releases what other programs may wait for
_SHORT_WAIT: Final = 0.05
_GRACE: Final = 10  # ticks between the end of the time and leaving the thread behind
_LAST_GRACE: Final = 200  # the same at the end of the program: a busy machine is slow to stop DuckDB


class _Question:
    """The outcome of a piece of work for a thread."""

    def __init__(self) -> None:
        self.value: Any = None
        self.error: BaseException | None = None
        self.waiting = Lock()
        self.waiting.acquire()

    def answer(self) -> Any:
        if self.error is None:
            return self.value
        try:
            raise self.error
        finally:
            self.error = None  # its traceback holds this question


class _Reader:
    """A thread and the file that only it reads. The thread ends with this object, or with the program."""

    def __init__(self, file: OpenDatabase) -> None:
        self.file = file
        self.current: _Question | None = None
        self.lock = Lock()
        self.jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        threads: list[int] = []
        self.close = weakref.finalize(self, _close, file, self.jobs, threads, os.getpid())
        # Ctrl-C in the start of a threading.Thread may leave its locks locked for ever.
        _thread.start_new_thread(_serve, (self.jobs, file.rest, threads))

    def stop(self, question: _Question) -> None:
        """Stop a question, unless the thread is already at another one."""
        with self.lock:
            if self.current is question:
                self.file.deadline = 0.0
                self.file.interrupt()


class Readers:
    """The threads of one database; any thread may ask them. A forked process starts its own."""

    def __init__(self) -> None:
        self._process = 0
        self._idle: list[_Reader] = []
        self._free = ProcessLock(_MOST)

    def ask(
        self, open_file: Callable[[], OpenDatabase], work: Callable[[OpenDatabase], T], seconds: float
    ) -> T:
        """Run work on the file in a thread; it is stopped at its time, or when its caller stops waiting."""
        if self._process != os.getpid():
            self._process, self._idle, self._free = os.getpid(), [], ProcessLock(_MOST)
        until, idle, free = monotonic() + seconds, self._idle, self._free
        if seconds <= 0:
            raise Failure("timeout")
        question, place, asked = _Question(), Held(free), list[None]()

        def leave() -> None:
            if not asked:  # else the thread gives the place back
                free.give(place)

        def run() -> None:
            try:
                question.value = work(reader.file)
            except BaseException as error:  # noqa: BLE001 - it is raised again where the question was asked
                question.error = error
            with reader.lock:
                reader.current = None
            if idle is self._idle:
                idle.append(reader)
            else:
                reader.close()  # the database was closed meanwhile
            free.give(place)
            question.waiting.release()

        with Ending(leave):
            if not free.take(place, seconds):
                raise Failure("busy")
            try:
                reader = idle.pop() if idle else _Reader(open_file())
            except RuntimeError as error:
                raise Failure("unavailable", str(error)) from None
            reader.current, reader.file.deadline = question, until
            try:
                asked.extend(map(reader.jobs.put, (run,)))  # one step: Ctrl-C comes before or after it
                is_over = _wait(question, until)
            except BaseException:
                if asked:
                    _stop(reader, question)
                raise
        if not is_over and not _stop(reader, question):
            raise Failure("timeout")
        answer: T = question.answer()
        return answer

    def close(self) -> None:
        """End the threads: those at work as soon as they are done. A later question starts new ones."""
        idle, self._idle = self._idle, []
        for reader in idle:
            reader.close()


def _close(
    file: OpenDatabase, jobs: SimpleQueue[Callable[[], None] | None], threads: list[int], process: int
) -> None:
    """Close a file once its thread is over: DuckDB crashes when the program ends while it is called."""
    if process != os.getpid():
        return  # the thread and the file are the parent's
    jobs.put(None)
    for tick in range(_LAST_GRACE):
        if not threads or _thread.get_ident() in threads:
            file.close()
            return
        file.deadline = 0.0
        file.interrupt()
        sleep(min(_SHORT_WAIT, 0.001 * 2**tick))


def _serve(
    jobs: SimpleQueue[Callable[[], None] | None], rest: Callable[[], None], threads: list[int]
) -> None:
    threads.append(_thread.get_ident())
    while True:
        try:
            job = jobs.get(timeout=_IDLE)
        except Empty:
            rest()
            job = jobs.get()
        if job is None:
            break
        job()
        del job  # it holds the reader, which could not be collected
    threads.clear()


def _wait(question: _Question, until: float) -> bool:
    """Wait for a question to end; False if its time is over, or the caller stopped waiting."""
    while not question.waiting.acquire(timeout=max(0.0, min(_SHORT_WAIT, until - monotonic()))):
        if monotonic() >= until or is_given_up():
            return False
    return True


def _stop(reader: _Reader, question: _Question) -> bool:
    """Stop a question; False if it does not end, within a call that cannot be interrupted."""
    for _ in range(_GRACE):
        reader.stop(question)
        if question.waiting.acquire(timeout=_SHORT_WAIT):
            return True
    return False


_LONGEST: Final = 3_600
_LIBRARIES: Final = {"duckdb": ("duckdb", "duckdb"), "postgres": ("postgres", "psycopg")}
"""The extra, and the library in it, that reads each kind of database."""
_MOST_ROWS: Final = 1_000_000
_MOST_SAMPLES: Final = 100
_TICK: Final = 0.1
_MOST_ASKED: Final = 1_000
_EXPLAINING: Final = 1.0  # seconds for explaining why a statement failed
_LONGEST_ERROR: Final = 4_000  # characters: it may quote what is in the statement

_KINDS: Final = frozenset({"sqlite", "duckdb"})
_OF_DUCKDB: Final = frozenset({".duckdb", ".ddb"})
_SERVERS: Final = ("postgresql://", "postgres://")
_WANTED: Final = (
    "give postgresql://HOST/DATABASE, the path of an SQLite or DuckDB file, or sqlite:///PATH, or "
    "duckdb:///PATH"
)

Tables = Sequence[Mapping[str, Any]]


class SqlDatabase:
    """A database that statements can only read: a file of SQLite or DuckDB, or PostgreSQL.

    Statements run in separate threads, are stopped at the time limit, and write nothing, neither to the file
    nor beside it. Any thread may use this object.

    Attributes:
        dialect: ``sqlite``, ``duckdb`` or ``postgres``.
        timeout: The seconds that a statement may take.
        max_rows: The most rows of an answer.
        samples: How many values of each column the schema shows.
    """

    def __init__(
        self, source: str | os.PathLike[str], *, timeout: float = 5.0, max_rows: int = 1_000, samples: int = 3
    ) -> None:
        """Choose the database; it is opened by the first question.

        Args:
            source: The path of a file, ``sqlite:///PATH`` or ``duckdb:///PATH``. A file whose name ends in
                ``.duckdb`` or ``.ddb`` is DuckDB's; any other is SQLite's. Or ``postgresql://HOST/DATABASE``.
            timeout: The seconds that a statement may take.
            max_rows: The most rows of an answer.
            samples: How many values of each column the schema shows; 0 for none, as for private data.

        Raises:
            ValueError: The source does not name a database, or a number is out of its range.
        """
        self.dialect, place = locate(source)
        is_server = self.dialect == "postgres"
        self._path = show_address(place) if is_server else place  # without a password
        self._place = place if is_server else str(Path(place).absolute())
        self.timeout = float(_check_range("timeout", timeout, (int, float), 0.001, _LONGEST))
        self.max_rows = int(_check_range("max_rows", max_rows, (int,), 1, _MOST_ROWS))
        self.samples = int(_check_range("samples", samples, (int,), 0, _MOST_SAMPLES))
        self._readers = Readers()
        self._known: dict[str, tuple[tuple[int, ...], Any]] = {}  # what was read, and the file's stamp then

    def __repr__(self) -> str:
        return f"SqlDatabase({self._path!r})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End the threads. The database can be asked again, which starts new ones."""
        self._readers.close()

    def get_schema(self, query: str | None = None) -> str:  # noqa: ARG002 - the tool takes the question
        """The tables, their columns, keys and row counts, and a few values: as a model reads it.

        It is read again only after the file has changed; that of a server, after a minute.

        Args:
            query: What it is needed for; the schema is the same for every question.

        Raises:
            StorageUnavailable: The file is missing, locked, corrupt, or has no tables.
            ToolTimeout: It took too long.
        """

        def read() -> str:
            until = monotonic() + self.timeout / 2
            tables, version = self._ask(
                lambda file: (file.tables(self.samples, until), file.version), self.timeout
            )
            if not tables:
                raise Failure("empty")
            return schema_text(tables, self.dialect, version)

        try:
            return self._read_once("schema", read)
        except Failure as failure:
            if failure.kind == "timeout":
                raise ToolTimeout(
                    f"reading the schema took longer than {self.timeout:g} s and was stopped; try again, or"
                    " allow more seconds"
                ) from None
            raise StorageUnavailable(explain(failure, self._path, self.timeout)[0]) from None

    def execute(self, sql: str) -> dict[str, Any]:
        """Run one statement that reads. An error of the statement or the database is in the answer.

        Args:
            sql: A SELECT, which may begin WITH, or VALUES.

        Returns:
            ``{"success", "data", "columns", "row_count", "truncated", "error", "elapsed"}``: ``data`` is a
            list of rows, each a list; ``truncated`` says that there were more. A failure has no rows, an
            ``error`` that says what to do, and a ``code``: ``parameter``, ``timeout`` or ``storage``.

        Raises:
            ImportError: A library that this needs is not installed.
        """
        started, until = perf_counter(), monotonic() + self.timeout
        columns, rows, truncated, error, code = list[str](), list[list[Any]](), False, None, None
        try:
            statement = guard.check(sql, self.dialect)
            answer = self._ask(lambda file: file.run(statement, self.max_rows), self.timeout)
            self._check_answer(statement, answer[0], until)
            columns, rows, truncated = answer
        except Failure as failure:
            error, code = self._explain(failure, sql)
        return {
            "success": error is None,
            "data": rows,
            "columns": columns,
            "row_count": len(rows),
            "truncated": truncated,
            "error": error and cut(error, _LONGEST_ERROR),
            "elapsed": perf_counter() - started,
            **({} if code is None else {"code": str(code)}),
        }

    def validate_results(
        self,
        query: object,  # noqa: ARG002 - the tool takes all three
        sql: object,
        results: object,
    ) -> dict[str, Any]:
        """Check what ``execute`` returned; never raises.

        Returns:
            ``{"is_valid", "has_results", "row_count", "issues"}``. A division of whole numbers in the SQL
            that drops the rest is an issue.
        """
        verdict = _validate(results)
        if verdict["is_valid"] and isinstance(sql, str) and "/" in sql:
            from planning.agent.sql.judge import whole_divisions

            with suppress(Failure, ImportError):
                until = monotonic() + min(_EXPLAINING, self.timeout)
                verdict["issues"] += whole_divisions(self._columns_of(sql, until))
        return verdict

    def missing_values(self, sql: str) -> list[str]:
        """Find the strings that a statement compares with columns which do not hold them.

        Use it for a statement without rows. It returns nothing if ``samples`` is 0.

        Args:
            sql: The statement.

        Returns:
            A line for each, such as "orders.status has no 'Open'; it has 'open'".
        """
        from planning.agent.sql.columns import attempt, missing_values

        until = monotonic() + self.timeout
        found = attempt(lambda: missing_values(self._columns_of(sql, until))) if self.samples else []
        return found or []

    def tools(self) -> tuple[Tool, Tool, Tool]:
        """The tools ``get_schema``, ``execute_sql`` and ``validate_results`` for a model."""
        return database_tools(self)

    def _open_file(self) -> OpenDatabase:
        if self.dialect == "sqlite":
            return SqliteFile(self._place, self.timeout)
        try:
            if self.dialect == "postgres":
                from planning.agent.databases.postgres import PostgresDatabase

                return PostgresDatabase(self._place)
            import_module("duckdb")
            from planning.agent.databases.duckdb_file import DuckdbFile
        except ImportError:
            extra, library = _LIBRARIES[self.dialect]
            raise Failure("library", f"{library}: pip install 'session-planning[{extra}]'") from None
        return DuckdbFile(self._place)

    def _ask(self, work: Callable[[OpenDatabase], T], seconds: float) -> T:
        return self._readers.ask(self._open_file, work, seconds)

    def _check_answer(self, statement: str, columns: list[str], until: float) -> None:
        """Fail if the answer to a statement, which has run, is not what was asked."""
        from planning.agent.sql.judge import wrong_answer

        # There are no columns where a comment is not closed.
        problem = wrong_answer(self._columns_of(statement, until)) if columns else guard.EMPTY
        if problem is not None:
            raise Failure("statement", problem)

    def _columns_of(self, sql: str, until: float) -> Columns:
        """The values of the columns of a statement, to be asked for in that time."""
        from planning.agent.sql.columns import SAMPLE, Columns

        def rows_of(sql: str) -> list[list[Any]] | None:
            try:
                return self._ask(lambda file: file.run(sql, SAMPLE), until - monotonic())[1]
            except Failure as failure:
                if failure.kind == "timeout":
                    raise
                return None

        asked: dict[str, Any] = self._read_once("answers", dict)
        if len(asked) > _MOST_ASKED:  # other threads may use them still
            self._known.pop("answers", None)
        return Columns(sql, self.dialect, lambda: self._tables(until), rows_of, asked)

    def _explain(self, failure: Failure, sql: str) -> tuple[str, ErrorKind]:
        """Why a statement failed, and what to do; names are looked up if one may be misspelled."""
        if failure.kind != "sql":
            return explain(failure, self._path, self.timeout)
        from planning.agent.sql.diagnosis import diagnose

        until = monotonic() + min(_EXPLAINING, self.timeout)
        return diagnose(failure.text, sql, self.dialect, lambda: self._tables(until)), ErrorKind.PARAMETER

    def _tables(self, until: float) -> Tables | None:
        """The tables with their columns; None where they cannot be read in that time."""
        try:
            return self._read_once(
                "tables", lambda: self._ask(lambda file: file.tables(-1, until), until - monotonic())
            )
        except Failure:
            return None

    def _read_once(self, name: str, read: Callable[[], T]) -> T:
        """The answer that is read of the database, again only after it has changed."""
        now, known = stamp(self._place, self.dialect), self._known.get(name)
        if known is not None and known[0] == now:
            value: T = known[1]
            return value
        value = read()
        if is_settled(now, _TICK):
            self._known[name] = now, value
        else:
            self._known.pop(name, None)
        return value


def locate(source: str | os.PathLike[str]) -> tuple[str, str]:
    """The dialect of a database, such as ``sqlite``, and the path of its file or its URL."""
    if not isinstance(source, (str, os.PathLike)):
        raise ValueError(  # noqa: TRY004 - whatever is wrong with a source is one kind of error
            f"a database is a path or a URL, got {type(source).__name__}; {_WANTED}"
        )
    path = os.fsdecode(source)
    if path.startswith(_SERVERS) and "\0" not in path:
        return "postgres", path
    dialect, _, rest = path.partition("://")
    if is_address(path):
        path = rest.removeprefix("/")
        if dialect not in _KINDS or path == rest or "?" in rest:
            shown = source if dialect in _KINDS and "@" not in rest else show_address(os.fsdecode(source))
            raise ValueError(f"unsupported database URL {shown}; {_WANTED}, four slashes if it is absolute")
    else:
        dialect = "duckdb" if Path(path).suffix.lower() in _OF_DUCKDB else "sqlite"
    if "\0" in path or not path.strip() or path.startswith((":memory:", "file:")):
        raise ValueError(f"{path!r} is not the path of a file; {_WANTED}")
    return dialect, path


def _check_range(name: str, value: Any, kinds: tuple[type, ...], least: float, limit: float) -> Any:
    """A number in its range.

    Raises:
        ValueError: It is not a number, or out of the range.
    """
    if type(value) not in kinds or not least <= value <= limit:
        what = "a whole number" if kinds == (int,) else "seconds"
        raise ValueError(f"{name} must be {what} from {least:,} to {limit:,}, got {value!r}")
    return value
