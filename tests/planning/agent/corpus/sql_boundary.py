"""What shows that a statement did nothing but read: files and locks."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from hashlib import sha256
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import duckdb
import pytest
from agent_samples import failing

CANARY = "canary-that-sings-in-another-file"
FOLDER = "@FOLDER@"
"""Stands in a statement for the folder of the database, where the canary is."""
CITIES = """
CREATE TABLE cities (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
INSERT INTO cities VALUES (1, 'Zürich'), (2, 'Oslo'), (3, 'Lima');
"""
_SHOP = Path(__file__).with_name("shop.sql").read_text(encoding="utf-8")
LIMIT = 0.1
LATER = LIMIT + 20.0
"""When an answer must be there, in seconds: a second after the limit, the rest is for a slow machine."""


def build_shop(folder: Path) -> Path:
    """A small database, beside a text file and another database that hold the canary."""
    (folder / "canary.txt").write_text(CANARY, encoding="utf-8")
    with closing(sqlite3.connect(folder / "other.db")) as other, other:
        other.execute("CREATE TABLE secrets (word TEXT)")
        other.execute("INSERT INTO secrets VALUES (?)", (CANARY,))
    path = folder / "shop.db"
    with closing(sqlite3.connect(path)) as shop:
        shop.executescript(CITIES)
        shop.executescript(_SHOP)
        shop.execute("INSERT INTO measures VALUES (4, NULL, ?, ?)", (b"\x00\xff", -(2**63)))
        shop.commit()
    return path


class Shop:
    """The database of the corpus, alone in a folder, and a process whose other folders are empty ones."""

    def __init__(self, folder: Path, elsewhere: Path, build: Callable[[Path], Path]) -> None:
        self.folder = folder
        self.elsewhere = elsewhere
        self.path = build(folder)
        self.is_sqlite = self.path.suffix == ".db"
        self._before = self.files()

    def files(self) -> dict[str, str]:
        found = [*self.folder.rglob("*"), *self.elsewhere.rglob("*")]
        return {str(path): sha256(path.read_bytes()).hexdigest() for path in found if path.is_file()}

    def assert_untouched(self) -> None:
        """No file has changed, and nobody is kept from writing: a reader of SQLite lets go of it at once."""
        assert self.files() == self._before
        if self.is_sqlite:
            self.assert_writable()

    def assert_writable(self) -> None:
        if self.is_sqlite:
            with closing(sqlite3.connect(self.path, timeout=0, isolation_level=None)) as writer:
                writer.execute("BEGIN EXCLUSIVE")
                writer.execute("ROLLBACK")
        else:
            until = monotonic() + 60
            while not self._can_be_connected():  # a call that cannot be interrupted may still run
                assert monotonic() < until
                sleep(0.05)

    def _can_be_connected(self) -> bool:
        try:
            with duckdb.connect(str(self.path)) as other:
                other.execute("BEGIN")
                other.execute("ROLLBACK")
        except duckdb.ConnectionException:
            return False
        return True

    def told(self, answer: object) -> str:
        """An answer as text, which is the same wherever the folder is; the canary is not in it."""
        text = str(answer)
        assert CANARY not in text
        return text.replace(str(self.folder), FOLDER)


@contextmanager
def shop_alone(factory: pytest.TempPathFactory, build: Callable[[Path], Path] = build_shop) -> Iterator[Shop]:
    """A shop; what is started meanwhile has an empty folder to work in, and to put temporary files into."""
    elsewhere = factory.mktemp("elsewhere")
    with pytest.MonkeyPatch.context() as patch:
        for name in ("TMPDIR", "SQLITE_TMPDIR", "TEMP", "TMP", "HOME"):
            patch.setenv(name, str(elsewhere))
        patch.setattr(tempfile, "tempdir", None)
        patch.chdir(elsewhere)
        yield Shop(factory.mktemp("shop"), elsewhere, build)


@contextmanager
def in_time(seconds: float = LATER) -> Iterator[None]:
    """What happens within is over by then."""
    started = monotonic()
    yield
    assert monotonic() - started < seconds


def assert_failed(answer: dict[str, Any]) -> None:
    """It has no rows, and all that a failure has."""
    assert answer == failing(answer["error"], answer["code"]) | {"elapsed": answer["elapsed"]}
