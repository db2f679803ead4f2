"""The input of commands: files and standard input, up to a limit, and their kinds."""

from __future__ import annotations

import json
import stat
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, Final, Literal

from planning.cli.transcript import is_transcript
from planning.cli.usage import DEFAULT_STORE, Refused, bad_option
from planning.errors import printable
from session.address import is_address, show_address

Kind = Literal["store", "snapshot", "workflow", "transcript"]

SQLITE: Final = b"SQLite format 3\0"  # the first bytes of every SQLite file
_NAMES: Final[Mapping[Kind, str]] = MappingProxyType({
    "store": "a SQLite file; 'planning sessions' lists the sessions of a store",
    "snapshot": "a snapshot of a session; 'planning show' shows it",
    "workflow": "a workflow; 'planning graph' draws it, 'planning run' runs it",
    "transcript": "a transcript; 'planning replay' replays it",
})  # fmt: skip
_MOST_BYTES: Final = 32_000_000  # 8,000,000 characters of 4 bytes each
_MEGABYTE: Final = 1_000_000


def read_bytes(path: str | None, what: str, *, limit: int = _MOST_BYTES, first: int | None = None) -> bytes:
    """The bytes of a file or of standard input."""
    try:
        if path is not None and path != "-":
            is_pipe = stat.S_ISFIFO(Path(path).lstat().st_mode)
            if is_pipe and not path.startswith("/dev/"):  # to open it would wait for its writer
                raise Refused(f"{name_of(path)} is a pipe; to read it, give - and write < {printable(path)}")
            with Path(path).open("rb") as file:
                data = _read(file, first or limit + 1)
        elif sys.stdin is None or (path is None and sys.stdin.isatty()):
            raise bad_option(what, "give a file, or pipe one in")
        else:
            data = _read(sys.stdin.buffer, first or limit + 1)
    except (OSError, ValueError) as error:  # ValueError: a null character in a path
        reason = getattr(error, "strerror", None) or error
        hint = "; 'planning run' creates it, or name another" if path == DEFAULT_STORE else ""
        raise Refused(f"cannot read {name_of(path)}: {reason}{hint}") from None
    if len(data) > limit:
        raise Refused(f"{name_of(path)} is larger than {limit // _MEGABYTE} MB; it was not read")
    return data


def read_text(path: str, what: str) -> str:
    """The same as text."""
    try:
        return read_bytes(path, what).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Refused(f"cannot read {name_of(path)}: it is not UTF-8 text") from None


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Refuse a file that cannot be written in the block."""
    try:
        yield
    except (OSError, ValueError) as error:  # ValueError: a null character in a path
        reason = getattr(error, "strerror", None) or error
        raise Refused(f"cannot write {name_of(path)}: {reason}") from None


def name_of(path: str | None) -> str:
    """A source as a message names it."""
    return "standard input" if path in (None, "-") else f"'{printable(without_password(str(path)))}'"


def without_password(source: str) -> str:
    """A path as it is; an address without its user and password."""
    return show_address(source) if is_address(source) else source


def _read(file: BinaryIO, limit: int) -> bytes:
    """The bytes of a file, up to a number; that many are not asked for at once, which would reserve them."""
    chunks = list[bytes]()
    while limit and (chunk := file.read(min(limit, _MEGABYTE))):
        chunks.append(chunk)
        limit -= len(chunk)
    return b"".join(chunks)


def kind_of(data: bytes) -> Kind | None:
    """The kind of a file; None if it is nothing that a command takes, or is damaged."""
    if data.startswith(SQLITE):
        return "store"
    for text in (data, data.lstrip().partition(b"\n")[0]):  # a transcript has one message a line
        try:
            return _kind_of_json(json.loads(text))
        except (ValueError, RecursionError):
            continue
    return None


def _kind_of_json(document: Any) -> Kind | None:
    if isinstance(document, dict) and isinstance(document.get("slices"), dict):
        return "snapshot"
    if is_transcript(document):
        return "transcript"
    steps = (
        document
        if isinstance(document, list)
        else document.get("steps")
        if isinstance(document, dict)
        else None
    )
    first = steps[0] if isinstance(steps, list) and steps else None
    return "workflow" if isinstance(first, dict) and first.keys() & {"step_id", "id"} else None


def refuse_other(data: bytes, source: str | None, wanted: str, *kinds: Kind) -> None:
    """Refuse a file of the wrong kind, with the command that takes it; ``wanted`` is what this command takes.

    What is of no kind is left to the caller.
    """
    kind = kind_of(data)
    if kind is not None and kind not in kinds:
        raise Refused(f"{name_of(source)} is not {wanted} but {_NAMES[kind]}")
