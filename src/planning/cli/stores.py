"""Stores of sessions as the commands open them, and the sessions in them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Final

from planning.cli.kinds import is_store, refuse_other
from planning.cli.source import name_of, read_bytes
from planning.cli.usage import Refused, bad_option
from planning.errors import listed, nearest, printable
from planning.observe.stores import ShownStore, open_session, open_store
from planning.observe.text import line_of
from session import Session, SessionError
from session.events import SessionId, session_id_of
from session.stores import Store

_LISTED: Final = 5


@contextmanager
def opened_store(place: str, *, begins: bool = False) -> Iterator[ShownStore]:
    """Open a store, and close it after the block.

    Args:
        place: The path of a file, or the URL of a database.
        begins: Whether a file that does not exist is created.

    Raises:
        Refused: It cannot be opened; or the block raised an error of the store or a session.
    """
    if place != "-" and (not begins or os.path.lexists(place)):
        _require_store(place)
    try:
        with closing(found_store(place)) as store:
            yield store
    except SessionError as error:
        raise Refused(line_of(error)) from None


def found_store(place: str) -> ShownStore:
    """Open a store, or begin a file.

    Raises:
        Refused: There is no such schema, or psycopg is missing.
        StoreError: It cannot be opened.
    """
    if place == "-":
        raise Refused("a store cannot be read from standard input; give the path of a SQLite file")
    try:
        return open_store(place)
    except (ImportError, ValueError) as error:
        raise Refused(printable(str(error))) from None


def _require_store(place: str) -> None:
    """Refuse what is not a store, without opening it: that would begin one."""
    if not is_store(place):
        if not os.path.lexists(place) or Path(place).is_file():  # to read a pipe would wait for its writer
            refuse_other(read_bytes(place, "STORE"), place, "a store of sessions")
        raise Refused(f"{name_of(place)} is not a store of sessions")


@contextmanager
def opened_session(place: str, name: str | None, *, is_read: bool = False) -> Iterator[Session]:
    """Open a session of a store, and close the store after the block.

    Args:
        place: As for ``opened_store``.
        name: The session; None for the only one.
        is_read: Whether all that is read in the block is of one moment, and nothing is written.

    Raises:
        Refused: It cannot be opened; or the block raised an error of the store or a session.
    """
    with opened_store(place) as store, store.reading() if is_read else nullcontext():
        yield open_session(store, known_session(store, name))


def valid_session(name: str, option: str) -> SessionId:
    """The id that a name is.

    Raises:
        BadParameter: No session can have that name.
    """
    try:
        return session_id_of(name)
    except ValueError as error:
        raise bad_option(option, error) from None


def known_session(store: Store, name: str | None) -> SessionId:
    """The id of a session that a store has; without a name, of its only one.

    Raises:
        Refused: There is no such session, or several.
        StoreError: The store cannot be read.
    """
    if name is None:
        heads = store.sessions(_LISTED + 1)
        if len(heads) == 1:
            return heads[0].session_id
        names = listed(str(each.session_id) for each in heads[:_LISTED])
        more = ", ..." if len(heads) > _LISTED else ""
        several = f"several sessions; name one: {printable(names)}{more}"
        raise Refused(f"the store holds {several if heads else 'no session'}")
    identity = valid_session(name, "SESSION")
    if store.head(identity) is None:
        near = nearest(name, [str(each.session_id) for each in store.sessions()])
        hint = "list them with 'planning sessions'" if near is None else f"did you mean {printable(near)}?"
        raise Refused(f"the store holds no session '{printable(name)}'; {hint}")
    return identity
