"""``SqlDatabase``: a database file that can only be read, from Python and as tools for a model."""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from time import monotonic, perf_counter, time_ns
from types import TracebackType
from typing import Any, Final, Self

from planning.agent.databases.base import Engine
from planning.agent.databases.source import locate
from planning.agent.databases.tools import database_tools
from planning.agent.sql import failures, guard
from planning.agent.sql.process import (
    WorkerBusy,
    WorkerDied,
    WorkerLate,
    Workers,
    WorkerUnavailable,
)
from planning.agent.sql.results import validate_results as _validate
from planning.agent.sql.schema import schema_text
from planning.agent.sql.worker.dialects import DIALECTS, FILES
from planning.agent.sql.worker.stamp import WRITTEN, stamp
from planning.errors import cut
from planning.tools import ErrorKind, StorageUnavailable, Tool, ToolError
from planning.tools.errors import ToolTimeout

__all__ = ["SqlDatabase"]

_LONGEST: Final = 3_600
_MOST_ROWS: Final = 1_000_000
_MOST_SAMPLES: Final = 100
_MORE_TIME: Final = "try again, or allow more seconds"
_TICK: Final = 100_000_000  # nanoseconds
_EXPLAINING: Final = 1.0  # seconds for explaining why a statement failed
_LONGEST_ERROR: Final = 4_000  # characters: it may quote what is in the statement
_UNKNOWN: Final = FILES[0].name  # what a file is taken for that no process can read; the error comes later


class SqlDatabase:
    """A database file that statements can only read: SQLite, or DuckDB.

    Statements run in separate processes, which start when they are needed, stop at the time limit whatever
    they are doing, and end with this object. Nothing is ever written, neither to the file nor beside it. Any
    thread may use it, and it can be pickled.

    Attributes:
        timeout: The seconds that a statement may take.
        max_rows: The most rows of an answer.
        samples: How many values of each column the schema shows.
    """

    def __init__(
        self,
        source: str | os.PathLike[str],
        *,
        timeout: float = 5.0,
        max_rows: int = 1_000,
        samples: int = 3,
    ) -> None:
        """Name the file; it is opened when it is first asked.

        Args:
            source: The path of a file, or ``sqlite:///PATH``, ``duckdb:///PATH`` or ``file:PATH``. A file
                whose name ends in ``.duckdb`` or ``.ddb``, or that DuckDB wrote, is DuckDB's; any other is
                SQLite's.
            timeout: The seconds that a statement may take.
            max_rows: The most rows of an answer.
            samples: How many values of each column the schema shows; 0 for none, as for private data.

        Raises:
            ValueError: The source does not name such a file, or a number is out of its range.
        """
        self._source = os.fspath(source) if isinstance(source, os.PathLike) else source
        self._dialect, self._path = locate(source)
        self.timeout = float(_checked("timeout", timeout, (int, float), 0.001, _LONGEST))
        self.max_rows = int(_checked("max_rows", max_rows, (int,), 1, _MOST_ROWS))
        self.samples = int(_checked("samples", samples, (int,), 0, _MOST_SAMPLES))
        self._file = str(Path(self._path).absolute())
        self._workers = Workers(self._file)
        self._schema: tuple[tuple[int, ...], str] | None = None
        self._tables: tuple[tuple[int, ...], Mapping[str, Any]] | None = None

    def __repr__(self) -> str:
        return f"SqlDatabase({self._source!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        options = {"timeout": self.timeout, "max_rows": self.max_rows, "samples": self.samples}
        return _rebuild, (self._dialect, self._file, self._source, options)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def dialect(self) -> str:
        """``sqlite`` or ``duckdb``: by the name of the file, or else by how it begins."""
        try:
            return self._dialect_within(_Budget(self.timeout))
        except _Unanswered:
            return _UNKNOWN

    def _dialect_within(self, left: _Budget) -> str:
        """The dialect.

        Raises:
            _Unanswered: No process could read the file.
        """
        if self._dialect is None:
            self._dialect, _ = self._ask("dialect", "", seconds=left.seconds)
        return self._dialect or _UNKNOWN

    def close(self) -> None:
        """End the processes. The database can be asked again, which starts new ones."""
        self._workers.close()

    def get_schema(self, query: str | None = None) -> str:  # noqa: ARG002 - the tool takes the question
        """The tables, their columns, keys and row counts, and a few values: as a model reads it.

        It is read again only after the file has changed.

        Args:
            query: What it is needed for; the schema is the same for every question.

        Raises:
            StorageUnavailable: The file is missing, locked, corrupt, or has no tables.
            ToolTimeout: It took too long.
        """
        left = _Budget(self.timeout)
        try:
            dialect = self._dialect_within(left)
        except _Unanswered as failure:
            raise self._unread(failure) from None
        before = self._stamp()
        if self._schema is not None and before is not None and self._schema[0] == before:
            return self._schema[1]
        facts = self._facts(self.samples, left.seconds)
        if not facts["tables"]:
            raise StorageUnavailable(failures.explain("empty", "", self._path, self.timeout)[0])
        text = schema_text(facts, dialect)
        self._schema = None if before is None else (before, text)
        return text

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
        started, left = perf_counter(), _Budget(self.timeout)
        try:
            dialect = self._dialect_within(left)
            seconds = left.seconds
            statement = guard.check(sql, dialect)
            left = _Budget(seconds)  # the check does not count against the statement
            (columns, truncated), rows = self._ask(
                "run", dialect, statement, self.max_rows, seconds=left.seconds
            )
        except guard.Refused as refusal:
            return _failed(refusal.message, ErrorKind.PARAMETER, started)
        except _Unanswered as failure:
            return _failed(*self._explained(failure, sql, left), started)
        if not columns:  # such as a comment that is not closed
            return _failed(guard.EMPTY, ErrorKind.PARAMETER, started)
        looking = _Budget(min(self.timeout, _EXPLAINING))
        problem = _engine(dialect).wrong_answer(statement, lambda: self._tables_within(looking))
        if problem is not None:
            return _failed(problem, ErrorKind.PARAMETER, started)
        return {
            "success": True,
            "data": rows,
            "columns": columns,
            "row_count": len(rows),
            "truncated": truncated,
            "error": None,
            "elapsed": perf_counter() - started,
        }

    def validate_results(self, query: object, sql: object, results: object) -> dict[str, Any]:  # noqa: ARG002 - the tool takes all three
        """Check what ``execute`` returned; never raises.

        Returns:
            ``{"is_valid", "has_results", "row_count", "issues"}``.
        """
        return _validate(results)

    def missing_values(self, sql: str) -> list[str]:
        """Find the strings that a statement compares with columns which do not hold them.

        Use it for a statement without rows. It never raises, takes no longer than a statement may, and
        returns nothing if ``samples`` is 0.

        Args:
            sql: The statement.

        Returns:
            A line for each, such as "orders.status has no 'Open'; it has 'open'".
        """
        left = _Budget(self.timeout)
        tables = self._tables_within(left) if self.samples else None
        if tables is None:
            return []
        from planning.agent.sql.values import missing_values  # noqa: PLC0415 - it loads sqlglot

        return missing_values(sql, self.dialect, tables, lambda query: self._looked_up(query, left))

    def tools(self) -> tuple[Tool, Tool, Tool]:
        """The tools ``get_schema``, ``execute_sql`` and ``validate_results`` for a model."""
        return database_tools(self)

    def _stamp(self) -> tuple[int, ...] | None:
        """What differs once the file has changed; None where that cannot be known."""
        try:
            known = stamp(self._file, DIALECTS[self.dialect].log)
        except OSError:
            return None
        is_settled = max(known[WRITTEN], known[-1]) < time_ns() - _TICK
        return known if is_settled else None  # a change in the same tick of the clock would not be seen

    def _facts(self, samples: int, seconds: float) -> Mapping[str, Any]:
        """What is in the database.

        Raises:
            StorageUnavailable: It cannot be read.
            ToolTimeout: It took too long.
        """
        try:
            facts, _ = self._ask("facts", self.dialect, samples, seconds / 4, seconds=seconds)
        except _Unanswered as failure:
            raise self._unread(failure) from None
        known: Mapping[str, Any] = facts
        return known

    def _unread(self, failure: _Unanswered) -> ToolError:
        """Why what is in the database could not be read."""
        if failure.kind == "timeout":
            return ToolTimeout(failures.late("reading the schema", failure.text, self.timeout, _MORE_TIME))
        return StorageUnavailable(failures.explain(failure.kind, failure.text, self._path, self.timeout)[0])

    def _explained(self, failure: _Unanswered, sql: str, rest: _Budget) -> tuple[str, ErrorKind]:
        """Why a statement failed, and what to do; names are looked up if one may be misspelled."""
        if failure.kind != "sql":
            return failures.explain(failure.kind, failure.text, self._path, self.timeout)
        left = _Budget(min(rest.seconds, _EXPLAINING))
        message = _engine(self.dialect).explain(
            failure.text, sql, lambda: self._tables_within(left), lambda part: self._probe(part, left)
        )
        return message, ErrorKind.PARAMETER

    def _probe(self, sql: str, left: _Budget) -> str:
        """The error of the database for a statement that it parses but does not run."""
        explain = "EXPLAIN {}" if self.dialect == "sqlite" else "SELECT 1 FROM ({}) LIMIT 0"
        try:
            self._ask("run", self.dialect, explain.format(sql), 1, seconds=left.seconds)
        except _Unanswered as failure:
            return failure.text
        return ""

    def _looked_up(self, sql: str, left: _Budget) -> Mapping[str, Any]:
        """The answer to a statement of this package."""
        try:
            _, rows = self._ask("run", self.dialect, sql, self.max_rows, seconds=left.seconds)
        except _Unanswered:
            return {"success": False, "data": []}
        return {"success": True, "data": rows}

    def _tables_within(self, left: _Budget) -> list[Mapping[str, Any]] | None:
        """The tables with their columns; None where they cannot be read in that time."""
        names = self._names(left)
        return None if names is None else names["tables"]

    def _names(self, left: _Budget) -> Mapping[str, Any] | None:
        before = self._stamp()
        if self._tables is not None and before is not None and self._tables[0] == before:
            return self._tables[1]
        try:
            facts = self._facts(-1, left.seconds)
        except ToolError:
            return None
        self._tables = None if before is None else (before, facts)
        return facts

    def _ask(self, verb: str, *given: Any, seconds: float) -> tuple[Any, list[list[Any]]]:
        """Ask a worker process.

        Raises:
            _Unanswered: The worker did not answer.
        """
        if seconds <= 0:
            raise _Unanswered("timeout")
        try:
            how, what, rows = self._workers.ask((verb, *given), seconds)
        except WorkerLate as late:
            raise _Unanswered("timeout", str(late.waited)) from None
        except WorkerDied as death:
            raise _Unanswered("died", str(death.status)) from None
        except WorkerBusy:
            raise _Unanswered("busy") from None
        except WorkerUnavailable as reason:
            raise _Unanswered("unavailable", str(reason)) from None
        if how == "failed":
            raise _Unanswered(*what)
        return what, rows


class _Budget:
    """Seconds for several requests together."""

    def __init__(self, seconds: float) -> None:
        self._until = monotonic() + seconds

    @property
    def seconds(self) -> float:
        """How many are left."""
        return self._until - monotonic()


class _Unanswered(Exception):
    """A request that has no answer; see ``worker.failure`` for the kinds."""

    def __init__(self, kind: str, text: str = "") -> None:
        super().__init__(kind, text)
        self.kind = kind
        self.text = text


def _checked(name: str, value: Any, kinds: tuple[type, ...], least: float, most: float) -> Any:
    """A number in its range.

    Raises:
        ValueError: It is not a number, or out of the range.
    """
    if type(value) not in kinds or not least <= value <= most:
        what = "a whole number" if kinds == (int,) else "seconds"
        raise ValueError(f"{name} must be {what} from {least:,} to {most:,}, got {value!r}")
    return value


def _engine(dialect: str) -> Engine:
    """The module of this package that knows a dialect; loaded when its first statement runs."""
    engine: Engine = import_module(f"planning.agent.databases.{dialect}")
    return engine


def _failed(error: str, code: ErrorKind, started: float) -> dict[str, Any]:
    return {
        "success": False,
        "data": [],
        "columns": [],
        "row_count": 0,
        "truncated": False,
        "error": cut(error, _LONGEST_ERROR),
        "elapsed": perf_counter() - started,
        "code": str(code),
    }


def _rebuild(dialect: str | None, file: str, source: str, options: dict[str, Any]) -> SqlDatabase:
    """Restore a pickled database: the same file, whatever the current folder is."""
    database = SqlDatabase(file, **options)
    database._dialect, database._source = dialect, source
    return database
