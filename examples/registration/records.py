"""The registrations in their SQLite database: read for the tools, and made for a demonstration."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Final, Literal

import attrs

from examples.registration.desk import RegistrationDesk
from planning.tools import StorageUnavailable

__all__ = ["DOCUMENTS", "Document", "Registration", "create_database", "find_registrations"]

Document = Literal["badge", "invoice", "confirmation"]
DOCUMENTS: Final[tuple[Document, ...]] = ("badge", "invoice", "confirmation")

_SCHEMA: Final = """
CREATE TABLE registrations (
    id TEXT PRIMARY KEY COLLATE NOCASE,
    name TEXT NOT NULL,
    email TEXT NOT NULL,
    conference TEXT NOT NULL,
    status TEXT NOT NULL
);
CREATE INDEX registrations_by_email ON registrations (lower(trim(email)));
CREATE TABLE documents (
    registration_id TEXT NOT NULL REFERENCES registrations (id),
    kind TEXT NOT NULL CHECK (kind IN ('badge', 'invoice', 'confirmation')),
    content TEXT NOT NULL,
    PRIMARY KEY (registration_id, kind)
);
"""
_SAMPLES: Final[tuple[tuple[tuple[str, str, str, str, str], tuple[Document, ...]], ...]] = (
    (("REG-1001", "Ada Example", "ada@example.org", "PyGrove 2026", "confirmed"), DOCUMENTS),
    (("REG-1002", "Ben Sample", "ben@example.org", "PyGrove 2026", "confirmed"), DOCUMENTS),
    (("REG-2017", "Ben Sample", "Ben@Example.org", "Data Harbour 2026", "waiting"), ("confirmation",)),
    (("REG-2018", "Cleo Mock", "cleo@example.org", "Data Harbour 2026", "unpaid"), ("invoice",)),
)
# SQLite's lower() knows ASCII alone: so no letter of another alphabet is taken for one that looks like it.
_FIND: Final = """
SELECT id, name, email, conference, status FROM registrations
WHERE id = :identifier OR lower(trim(email)) = lower(:identifier) ORDER BY conference, id
"""
_DOCUMENTS_OF: Final = "SELECT kind, content FROM documents WHERE registration_id = ?"


@attrs.frozen
class Registration:
    """One registration as it is on file.

    Attributes:
        id: The registration id.
        name: Of the person.
        email: Of the person: where the documents go.
        conference: For which conference.
        status: How far it is.
        documents: The text of each document that is there.
    """

    id: str
    name: str
    email: str
    conference: str
    status: str
    documents: Mapping[str, str] = attrs.field(repr=False)


def find_registrations(desk: RegistrationDesk, identifier: str) -> tuple[Registration, ...]:
    """The registrations with this id or this email address; upper and lower case are the same. It blocks.

    Raises:
        StorageUnavailable: The database is not there, is locked, or cannot be read. No path, no SQL and
            nothing of the data is in the message.
    """
    try:
        return _find(desk, identifier.strip())
    except UnicodeEncodeError:
        return ()  # half a character: no database has it
    except sqlite3.Error:
        pass  # raised below and not here: its text may hold a path, SQL or data
    raise StorageUnavailable(
        "the registrations cannot be read now; try again later, or continue without them"
    )


def _find(desk: RegistrationDesk, identifier: str) -> tuple[Registration, ...]:
    address = f"{desk.database.absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(address, uri=True, timeout=desk.timeout_s)) as connection:
        connection.execute("BEGIN")  # one state of the data for all that is read
        found = connection.execute(_FIND, {"identifier": identifier}).fetchall()
        return tuple(
            Registration(number, name, email, conference, status, _documents(connection, number))
            for number, name, email, conference, status in found
        )


def _documents(connection: sqlite3.Connection, number: str) -> Mapping[str, str]:
    return dict(connection.execute(_DOCUMENTS_OF, [number]).fetchall())


def create_database(path: Path) -> None:
    """Make a database with a few invented registrations, to try the tools on.

    Raises:
        FileExistsError: Something is there already.
    """
    path.open("xb").close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(_SCHEMA)
        for row, kinds in _SAMPLES:
            connection.execute("INSERT INTO registrations VALUES (?, ?, ?, ?, ?)", row)
            texts = [(row[0], kind, f"The {kind} of {row[1]} for {row[3]}.\n") for kind in kinds]
            connection.executemany("INSERT INTO documents VALUES (?, ?, ?)", texts)
