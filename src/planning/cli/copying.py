"""Stores as a whole: ``planning store create``, ``copy``, ``compact``, and ``planning sessions delete``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from planning.cli.arguments import AsJson, StoreFile, session_ids
from planning.cli.opening import known_session, opened_store
from planning.cli.source import name_of, without_password
from planning.cli.terminal import as_json, count, say
from planning.cli.usage import Refused, bad_option, examples
from planning.errors import line_of, listed, printable
from session import stores
from session.address import database_of, is_address
from session.stores import SqliteStore, StoreError, copy_session

DELETE_HELP: Final = examples(
    "sessions delete plans.db what-if", "sessions delete plans.db nightly what-if --yes"
)
COPY_HELP: Final = examples(
    "store copy plans.db postgresql://me@db.example.org/plans",
    "store copy postgresql://me@db.example.org/plans copy.db nightly",
)
COMPACT_HELP: Final = examples("store compact plans.db")

# \b keeps a paragraph as it is written.
CREATE_HELP: Final = """\b
Examples:
  planning store create postgresql://me@db.example.org/plans
  planning store create postgresql://me@db.example.org/plans --print

\b
Passwords:
  Better than in the URL, where other users of this machine may see it,
  is a password in ~/.pgpass or in the variable PGPASSWORD.
"""
_Names = Annotated[
    list[str],
    typer.Argument(metavar="SESSION", help="The ids of sessions in it.", autocompletion=session_ids),
]


def create(
    database: Annotated[
        str,
        typer.Argument(
            metavar="URL",
            help="postgresql://HOST/DATABASE, with ?schema=NAME for another schema than sessions.",
        ),
    ],
    *,
    print_: Annotated[
        bool, typer.Option("--print", help="Print the statement for an administrator, and run nothing.")
    ] = False,
) -> None:
    """Make the tables of a store in a PostgreSQL database, where they are not yet."""
    if not is_address(database):
        raise bad_option("URL", "give postgresql://HOST/DATABASE; a SQLite file is created on first use")
    with opened_store(database) as store:
        if print_:
            typer.echo(f"{stores.PostgresStore.schema_sql(database_of(database)[1])};")
        elif isinstance(store, stores.PostgresStore):
            store.create()
            typer.echo(f"The tables are in {printable(without_password(database))}.")


def copy(
    source: Annotated[
        str, typer.Argument(metavar="FROM", help="A SQLite file, or postgresql://HOST/DATABASE.")
    ],
    target: Annotated[str, typer.Argument(metavar="TO", help="The same; a new file is created.")],
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SESSION", help="The sessions to copy; all if omitted.", autocompletion=session_ids
        ),
    ] = None,
    *,
    as_json_: AsJson = False,
) -> None:
    """Copy sessions to another store, with their history, hashes, checkpoints and claims.

    Each session is copied whole, as it is at one moment, or not at all: programs may keep writing to it. If
    TO has one of the sessions already, nothing is copied. If one cannot be copied, the others are, and the
    exit code is 1.
    """
    copied, failed = list[dict[str, Any]](), dict[str, str]()
    with opened_store(source) as store:
        chosen = [head.session_id for head in store.sessions()]
        if names:
            chosen = [known_session(store, name) for name in dict.fromkeys(names)]
        with opened_store(target, begins=True) as other:
            if there := [str(name) for name in chosen if other.head(name) is not None]:
                raise Refused(f"{name_of(target)} has {printable(listed(there))} already; nothing was copied")
            for name in chosen:
                try:
                    head = copy_session(store, other, name)
                except StoreError as error:
                    failed[str(name)] = line_of(error)
                    say(f"{name}: {failed[str(name)]}")
                    continue
                copied.append({"session_id": str(name), "version": head.version, "hash": head.hash.hex()})
                if not as_json_:
                    typer.echo(f"Copied {name}: {count(head.version, 'version')}.")
    if as_json_:
        typer.echo(as_json({"copied": copied, "failed": failed}))
    elif not chosen:
        typer.echo("No sessions.")
    if failed:
        raise typer.Exit(1)


def compact(store: StoreFile) -> None:
    """Give the space of deleted sessions back to the file system: only a SQLite file keeps it.

    Programs may run meanwhile; those that write wait until it is over.
    """
    with opened_store(store) as opened:
        if not isinstance(opened, SqliteStore):
            raise bad_option("STORE", "give a SQLite file; a PostgreSQL server reuses the space by itself")
        before = _kilobytes(store)
        opened.compact()
        typer.echo(f"{printable(store)} has {_kilobytes(store)}; it had {before}.")


def _kilobytes(path: str) -> str:
    files = [each for each in (Path(path), Path(f"{path}-wal")) if each.exists()]
    return f"{sum(each.stat().st_size for each in files) / 1000:,.0f} kB"


def delete(
    store: StoreFile,
    sessions: _Names,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Delete them without a question.")] = False,
    as_json_: AsJson = False,
) -> None:
    """Delete sessions of a store, with their history. Their forks stay whole.

    In a terminal you are asked first. The exit code is 1 where you answer no.
    """
    with opened_store(store) as opened:
        chosen = [known_session(opened, name, is_whole=True) for name in dict.fromkeys(sessions)]
        if not yes:
            _require_yes(f"Delete {listed(map(str, chosen))} for good?")
        for name in chosen:
            opened.delete(name)
            if not as_json_:
                typer.echo(f"Deleted {name}.")
    if as_json_:
        typer.echo(as_json({"deleted": [str(name) for name in chosen]}))


def _require_yes(question: str) -> None:
    """Ask the user."""
    if sys.stdin is None or not sys.stdin.isatty():
        raise Refused("nothing was deleted: give --yes, or run this in a terminal, which asks")
    typer.echo(f"{question} Type yes: ", nl=False, err=True)
    if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
        typer.echo("Nothing was deleted.")
        raise typer.Exit(1)
