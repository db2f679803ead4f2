"""What all fuzz targets share: how a promise is checked, and the command line of a target.

usage of a target: TARGET.py --write-corpus FOLDER | [LIBFUZZER-OPTIONS] [FOLDER] | FILE

``make fuzz`` calls the targets. With a file, a target checks that one input, which repeats a failure.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from hashlib import sha256
from pathlib import Path

__all__ = ["BrokenPromise", "demand", "fuzz"]

MOST_FOR_A_MODEL = 50_000


class BrokenPromise(Exception):
    """An answer is not what the library promises."""


def demand(is_kept: bool, promise: str) -> None:  # noqa: FBT001 - it reads as an assertion does
    """Raise unless a promise is kept, also where assertions are switched off.

    Raises:
        BrokenPromise: It is not.
    """
    if not is_kept:
        raise BrokenPromise(promise)


def demand_readable(message: str) -> None:
    """Check a message that a model reads: short enough, and text that every client can encode.

    Raises:
        BrokenPromise: It is too long, or holds half of a surrogate pair.
    """
    demand(len(message) <= MOST_FOR_A_MODEL, "a message to a model has at most 50,000 characters")
    demand(not any("\ud800" <= each <= "\udfff" for each in message), "a message can be encoded as UTF-8")


def text_of(data: bytes) -> str:
    """The text of a fuzzer's bytes: UTF-8 in which lone surrogates may appear, or else Latin-1."""
    try:
        return data.decode("utf-8", errors="surrogatepass")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def fuzz(
    check: Callable[[str], None], *, corpus: Callable[[], Iterable[str]], tokens: Iterable[str], watched: str
) -> None:
    """Do what the command line says.

    Args:
        check: Checks one input; raises where a promise is broken.
        corpus: Gives the inputs to start from.
        tokens: What inputs are made of, for the fuzzer's dictionary.
        watched: The packages whose branches guide the fuzzer, with spaces between them.
    """
    arguments = sys.argv
    if arguments[1:2] == ["--write-corpus"]:
        _write(Path(arguments[2]), corpus(), tokens)
        return
    if len(arguments) == 2 and Path(arguments[1]).is_file():
        check(text_of(Path(arguments[1]).read_bytes()))
        return
    import atheris  # noqa: PLC0415 - an input is repeated without it

    with atheris.instrument_imports(include=watched.split()):
        check(next(iter(corpus())))
    atheris.Setup(arguments, lambda data: check(text_of(data)))
    atheris.Fuzz()


def _write(folder: Path, texts: Iterable[str], tokens: Iterable[str]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for text in texts:
        data = text.encode(errors="surrogatepass")
        (folder / sha256(data).hexdigest()[:16]).write_bytes(data)
    escaped = ("".join(f"\\x{byte:02x}" for byte in token.encode()) for token in tokens)
    (folder.parent / "tokens.txt").write_text("".join(f'"{token}"\n' for token in escaped), "ascii")
