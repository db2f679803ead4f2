"""An SQLite file, and how it is read as of one moment without a file beside it.

For a database in WAL mode, SQLite makes the files ``-wal`` and ``-shm``, even when it opens it for reading,
and leaves them there. So as long as there is no ``-wal`` with changes in it, the file is opened as one that
does not change (``immutable``), and a statement during which it changed after all is run again. Where a
``-wal`` has changes in it, its writer has a ``-shm`` too, which readers share; only if the writer died and
its ``-shm`` was lost, SQLite creates it again.

Only SQLite opens the file: a process that closes a file in any other way gives up all its locks on
it, those of other connections included.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from math import prod
from time import monotonic, sleep
from typing import Any, Final, TypeVar
from urllib.parse import quote

from planning.agent.databases.opened import (
    Answer,
    OpenDatabase,
    Table,
    add_column,
    add_samples,
    count_rows,
    fetched,
    is_settled,
    new_table,
    stamp,
)
from planning.agent.sql.guard import Failure
from planning.agent.sql.schema import quoted, select

_LONGEST_VALUE: Final = 32_000_000
_LARGEST_ROW: Final = 256_000_000
_MOST_VALUES: Final = 2_000  # columns
_LONGEST_SQL: Final = 500_000
_LONGEST_PATTERN: Final = 500
_OPERATIONS: Final = 20_000  # between two looks at the clock: about a millisecond
_LENGTH: Final = sqlite3.SQLITE_LIMIT_LENGTH
# What a call of these takes grows with the square of its values: the most bytes of a value beside them.
_SLOW: Final = {
    "glob": 1_000_000, "like": 1_000_000, "instr": 200_000, "replace": 200_000, "json_patch": 50_000,
    "json_group_object": 1_000_000, "ltrim": 50_000, "rtrim": 50_000, "trim": 50_000, "unhex": 50_000,
}  # fmt: skip
_UNSAFE: Final = frozenset(
    {"load_extension", "fts3_tokenizer", "readfile", "writefile", "edit", "fsdir", "lsmode", "sqlite_log"}
)
_READ, _SELECT, _FUNCTION = 20, 21, 31
_READING: Final = frozenset({_READ, _SELECT, _FUNCTION, 33})  # 33: a recursive SELECT
# Functions and virtual tables in views need no switch of their own (trusted_schema): the authorizer sees
# those in views too, and there are none but SQLite's. With it no view of a full-text table could be read.
_PRAGMAS: Final = ("query_only = 1", "cell_size_check = ON")
_LIMITS: Final = (
    (sqlite3.SQLITE_LIMIT_ATTACHED, 0),
    (sqlite3.SQLITE_LIMIT_SQL_LENGTH, _LONGEST_SQL),
    (sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, _LONGEST_PATTERN),
    (sqlite3.SQLITE_LIMIT_EXPR_DEPTH, 1_000),
    (sqlite3.SQLITE_LIMIT_COMPOUND_SELECT, 500),
    (sqlite3.SQLITE_LIMIT_VDBE_OP, 10_000_000),
    (sqlite3.SQLITE_LIMIT_WORKER_THREADS, 0),
)
_VIRTUAL: Final = """
    SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage = 0
    UNION ALL VALUES ('json_each'), ('json_tree'), ('generate_series'), ('dbstat')
"""


def _connect(path: str, options: str, seconds: float) -> sqlite3.Connection:
    """Open a file for reading."""
    return sqlite3.connect(
        f"file:{quote(os.fsencode(path))}?mode=ro&{options}",
        uri=True,
        timeout=seconds,
        isolation_level=None,
        check_same_thread=False,  # another thread may interrupt it, and close it while it is idle
        cached_statements=0,  # each statement passes the authorizer again
    )


_QUOTED: Final = re.compile(
    r"""'(?:[^']|'')*+(?:'|\Z) | `(?:[^`]|``)*+(?:`|\Z) | \[[^]]*+(?:]|\Z) | --[^\n]*+ |
        /\*(?:[^*]|\*(?!/))*+(?:\*/|\Z) | "((?:[^"]|"")*+)" """,
    re.VERBOSE,
)
_WORD: Final = re.compile(rf"(?:{_QUOTED.pattern}) | (?:[\w$]|[^\x00-\x7f])+ | [(),]", re.VERBOSE)
_READS: Final = frozenset({"from", "join", "in", ",", "("})
_EXPLAIN: Final = "EXPLAIN "
_MOST_COPIED: Final = 100_000_000
"""The most characters of a statement together with its copies."""


def _check_names(connection: sqlite3.Connection, sql: str) -> None:
    """Check that each name in double quotes is a column: in backticks it is never a string."""
    strict = _QUOTED.sub(_in_backticks, sql) if '"' in sql else sql
    if strict == sql:
        return
    try:
        connection.execute(_EXPLAIN + strict.removeprefix(_EXPLAIN)).close()
    except sqlite3.Error as error:
        if not str(error).startswith("no such column"):
            connection.execute(_EXPLAIN + sql.removeprefix(_EXPLAIN)).close()  # in its own words
        raise


def _in_backticks(found: re.Match[str]) -> str:
    name = found[1]
    return found[0] if name is None else "`" + name.replace('""', '"').replace("`", "``") + "`"


def check_copies(sql: str) -> None:
    """Check that the tables of a WITH are not read too often, through each other."""
    if "with" not in sql.lower():
        return
    words = [
        "",
        *(found[0].lower() for found in _WORD.finditer(sql) if found[0][:2] not in {"--", "/*"}),
        "",
        "",
    ]
    made, reads, opened = dict[str, None](), Counter[str](), 0  # in the order of the text
    for place, (before, word, after, last) in enumerate(
        zip(words, words[1:], words[2:], words[3:], strict=False)
    ):
        if before == "(":
            opened = place
        is_made = after == "as" and last in {"(", "not", "materialized"}
        if is_made:
            made[_name(words[opened - 1] if word == ")" else word)] = None
        elif before in _READS and after != "(":
            reads[_name(word)] += 1
    if prod(max(1, reads[name]) for name in made) * len(sql) > _MOST_COPIED:
        raise Failure("expanded", max(made, key=lambda name: reads[name]))


def _name(word: str) -> str:
    return word[1:-1] if word[:1] in {'"', "`", "[", "'"} else word


# Without the tables that a virtual table, which has no root page, keeps its data in.
_TABLES: Final = """
    SELECT m.name, m.type FROM sqlite_master AS m
    WHERE m.type IN ('table', 'view') AND m.name NOT LIKE 'sqlite\\_%' ESCAPE '\\' AND NOT EXISTS (
        SELECT 1 FROM sqlite_master AS v WHERE v.type = 'table' AND v.rootpage = 0
        AND substr(m.name, 1, length(v.name) + 1) = v.name || '_'
        AND substr(m.name, length(v.name) + 2) IN ('config', 'content', 'data', 'docsize', 'idx', 'node',
            'parent', 'rowid', 'segdir', 'segments', 'stat'))
    ORDER BY m.rowid
"""
_COLUMNS: Final = """
    SELECT t.name, c.name, c.type, c."notnull", c.pk
    FROM sqlite_master AS t, pragma_table_xinfo(t.name) AS c
    WHERE t.type IN ('table', 'view') AND c.hidden <> 1 ORDER BY t.rowid, c.cid
"""
_KEYS: Final = """
    SELECT t.name, k.id, k."table", k."from", k."to"
    FROM sqlite_master AS t, pragma_foreign_key_list(t.name) AS k WHERE t.type = 'table'
    ORDER BY t.rowid, k.id DESC, k.seq
"""
_DAMAGED: Final = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_BUSY})


T = TypeVar("T")

_BUSY: Final = 2.0
_TRIES: Final = 5
_SOON: Final = 0.02
_ENDS: Final = {  # by SQLite's primary result code
    sqlite3.SQLITE_INTERRUPT: "timeout",
    sqlite3.SQLITE_NOMEM: "memory",
    sqlite3.SQLITE_TOOBIG: "large",
    sqlite3.SQLITE_BUSY: "locked",
    sqlite3.SQLITE_LOCKED: "locked",
    sqlite3.SQLITE_PROTOCOL: "locked",
    sqlite3.SQLITE_CORRUPT: "corrupt",
    sqlite3.SQLITE_NOTADB: "corrupt",
    sqlite3.SQLITE_CANTOPEN: "unreadable",
    sqlite3.SQLITE_IOERR: "unreadable",
    sqlite3.SQLITE_AUTH: "refused",
    sqlite3.SQLITE_READONLY: "refused",
}
_UNFINISHED: Final = frozenset({sqlite3.SQLITE_READONLY_ROLLBACK, sqlite3.SQLITE_READONLY_RECOVERY})


class SqliteFile(OpenDatabase):
    """One file of SQLite; its connection may only read."""

    version = sqlite3.sqlite_version

    def __init__(self, path: str, seconds: float) -> None:
        super().__init__(path)
        self._busy = min(_BUSY, seconds / 2)
        self._stamp: tuple[int, ...] = ()
        self._is_immutable = False
        self._is_live = False
        self._until = 0.0  # the deadline, or sooner
        self._denied = ""  # the action that the current statement was denied
        self._is_lifted = False

    def run(self, sql: str, most_rows: int) -> Answer:
        """See ``OpenDatabase``."""
        with self._session():
            return self._steadily(lambda connection: self._query(connection, sql, most_rows))

    def tables(self, samples: int, until: float) -> list[Table]:
        """See ``OpenDatabase``."""
        with self._session():
            return self._steadily(lambda connection: self._describe(connection, samples, until))

    def interrupt(self) -> None:
        """See ``OpenDatabase``."""
        if connection := self._connection:
            with suppress(sqlite3.Error):  # it was closed just now
                connection.interrupt()

    def rest(self) -> None:
        """Let the last writer of a log clean up."""
        if self._is_live:
            self.close()

    def close(self) -> None:
        """Close the connection."""
        self._is_live = False
        super().close()

    @contextmanager
    def _session(self) -> Iterator[None]:
        """Raise the errors of the block as a ``Failure``."""
        self._until, self._denied = self.deadline, ""
        try:
            yield
        except MemoryError:
            self.close()
            raise Failure("memory") from None
        except sqlite3.Error as error:
            raise self._failure(error) from None
        except sqlite3.Warning as error:  # before Python 3.12: more than one statement
            raise Failure("sql", str(error)) from None
        except UnicodeError:
            raise Failure("sql", "the SQL, or a name in the database, is not valid UTF-8") from None

    def _failure(self, error: sqlite3.Error) -> Failure:
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        if code in _UNFINISHED:
            return Failure("unfinished")
        kind, denied = _ENDS.get(code & 0xFF, "sql"), self._denied
        if not denied and "not authorized" in str(error):  # it was late while the statement was prepared
            return Failure("timeout")
        if kind == "refused" or (denied and kind == "sql"):
            return Failure("refused", denied or "writing")
        if kind in {"corrupt", "unreadable", "memory"}:
            self.close()
        if kind == "unreadable" and not os.access(self._place, os.R_OK, effective_ids=True):
            return Failure("denied")
        return Failure(kind, str(error))

    # What the connection may do

    def _begin(self, connection: sqlite3.Connection, sql: str = "") -> None:
        """Begin a statement: the more values it may hold at once, the smaller each of them has to be."""
        self._denied = ""
        values = 1 + min(_MOST_VALUES, sql.count(",") + sql.count("("))
        connection.setlimit(_LENGTH, min(_LONGEST_VALUE, _LARGEST_ROW // values))

    @contextmanager
    def _lift_guard(self, connection: sqlite3.Connection) -> Iterator[None]:
        """Let statements of this package read the description of the tables."""
        self._begin(connection)
        self._is_lifted = True
        try:
            yield
        finally:
            self._is_lifted = False

    def _authorize(self, action: int, _first: str | None, second: str | None, *_: object) -> int:
        if self._is_late():  # while the statement is prepared: views of views may take forever
            return sqlite3.SQLITE_DENY
        if self._is_lifted:
            return sqlite3.SQLITE_OK
        name = (second or "").lower() if action == _FUNCTION else ""
        if action in _READING and name not in _UNSAFE:
            if name in _SLOW:
                limit = min(_SLOW[name], self._connection.getlimit(_LENGTH))
                self._connection.setlimit(_LENGTH, limit)
            return sqlite3.SQLITE_OK
        self._denied = self._denied or (second if action == _FUNCTION and second else "more than reading")
        return sqlite3.SQLITE_DENY

    def _bind(self, connection: sqlite3.Connection) -> None:
        connection.set_progress_handler(self._is_late, _OPERATIONS)
        for name, value in _LIMITS:
            connection.setlimit(name, value)
        for pragma in _PRAGMAS:
            connection.execute(f"PRAGMA {pragma}").close()
        connection.set_authorizer(self._authorize)
        with self._lift_guard(connection):  # connecting a virtual table takes more rights than reading it
            for (table,) in connection.execute(_VIRTUAL).fetchall():
                with suppress(sqlite3.DatabaseError):  # this SQLite may lack its module
                    connection.execute(select("1", quoted(table), 0)).close()

    # Opening

    def _steadily(self, read: Callable[[sqlite3.Connection], T]) -> T:
        """Read the file as of one moment: again if it changed under an immutable connection."""
        for _ in range(_TRIES):
            answer = read(self._reconnect())
            if not self._is_immutable or self._look() == self._stamp:
                return answer
        raise Failure("locked")

    def _look(self) -> tuple[int, ...]:
        try:
            return stamp(self._place, "sqlite")
        except Failure:
            self.close()
            raise

    def _reconnect(self) -> sqlite3.Connection:
        """The connection to the current file: it may have been replaced since the last statement."""
        now = self._look()
        if self._connection is None or now != self._stamp:
            self.close()
            self._is_live = now[-1] > 0  # when its log was changed
            self._is_immutable = not self._is_live and self._keeps_log()
            if self._is_immutable and not is_settled(now, _SOON):
                sleep(_SOON)  # a change in the same tick of the clock as the last one would not be seen
                now = self._look()
            connection = _connect(self._place, "immutable=1" if self._is_immutable else "", self._busy)
            try:
                self._bind(connection)
            except BaseException:
                connection.close()
                raise
            self._connection, self._stamp = connection, now
        bound: sqlite3.Connection = self._connection
        return bound

    def _keeps_log(self) -> bool:
        """True if the file is in WAL mode: without locks SQLite cannot open one that is."""
        try:
            with closing(_connect(self._place, "nolock=1", self._busy)) as connection:
                connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").close()
        except sqlite3.Error as error:
            return getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_CANTOPEN
        return False

    def _is_late(self) -> bool:
        return monotonic() > min(self._until, self.deadline)

    # Statements

    def _query(self, connection: sqlite3.Connection, sql: str, most_rows: int) -> Answer:
        try:
            return self._rows(connection, sql, most_rows)
        except sqlite3.OperationalError as error:
            if not str(error).startswith("Could not decode to UTF-8"):
                raise
        connection.text_factory = _decode  # from now on
        return self._rows(connection, sql, most_rows)

    def _rows(self, connection: sqlite3.Connection, sql: str, most_rows: int) -> Answer:
        self._begin(connection, sql)
        check_copies(sql)
        _check_names(connection, sql)
        with closing(connection.execute(sql)) as cursor:  # one that is open would hold a lock
            names = [column[0] for column in cursor.description or ()]
            return names, *fetched(cursor, most_rows)

    # Tables

    def _describe(self, connection: sqlite3.Connection, samples: int, until: float) -> list[Table]:
        connection.text_factory = _decode
        try:
            with self._lift_guard(connection):
                tables = self._read_tables(connection)
                if samples >= 0:
                    self._until = min(self.deadline, until)
                    self._add_values(connection, tables, samples)
        finally:
            connection.text_factory = str
            self._until = self.deadline
        return tables

    def _read_tables(self, connection: sqlite3.Connection) -> list[Table]:
        tables: dict[str, Table] = {
            name: new_table(name, kind) for name, kind in connection.execute(_TABLES).fetchall()
        }

        def rows_of(query: str) -> Iterator[tuple[Any, ...]]:
            """The rows of a query over all tables; table by table if one of them cannot be read."""
            of_one = query.replace("WHERE ", "WHERE t.name = ? AND ", 1)
            for names, each in [([], query)] + [([name], of_one) for name in tables]:
                try:
                    yield from [row for row in connection.execute(each, names) if row[0] in tables]
                except sqlite3.OperationalError as error:
                    if self._is_late():
                        raise Failure("timeout") from error
                else:
                    if not names:
                        return

        for name, column, kind, not_null, primary in rows_of(_COLUMNS):
            add_column(tables[name], column, kind, not_null, primary)
        keys: dict[tuple[str, int], Table] = {}
        for name, number, target, column, to in rows_of(_KEYS):
            if (name, number) not in keys:
                keys[name, number] = {"columns": [], "table": target, "targets": []}
                tables[name]["foreign_keys"].append(keys[name, number])
            keys[name, number]["columns"].append(column)
            keys[name, number]["targets"] += [] if to is None else [to]  # None is the primary key
        return list(tables.values())

    def _add_values(self, connection: sqlite3.Connection, tables: list[Table], samples: int) -> None:
        """Add values and then counts of rows to the tables, for as long as the time lasts."""
        for is_count in (False, True) if samples else (True,):
            for table in tables:
                source = quoted(table["name"])
                try:
                    if table["kind"] == "table" and is_count:
                        count_rows(table, source, connection.execute)
                    elif table["kind"] == "table":
                        with closing(connection.cursor()) as cursor:
                            add_samples(table, source, cursor.execute, samples)
                except sqlite3.DatabaseError as error:
                    if not self._is_late() and getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGED:
                        raise
                if self._is_late():
                    return


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "replace")
