"""What commands read: files and standard input, up to a limit."""

from __future__ import annotations

import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from planning.cli.usage import Refused, bad_option
from planning.errors import printable
from session.address import is_address, show_address

DEFAULT_STORE: Final = ".planning/runs.db"
"""Where ``planning run`` keeps runs, in the current folder."""
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
