"""Fuzz one target: ``run.py TARGET --write-corpus FOLDER | [LIBFUZZER-OPTIONS] [FOLDER ...] | FILE``.

A target is a module beside this one: ``check`` checks one input and raises where a promise is broken,
``corpus`` gives the inputs to start from, ``TOKENS`` are what inputs are made of. With a file, a target
checks that one input, which repeats a failure. ``make fuzz`` calls all of them.
"""

from __future__ import annotations

import sys
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

TARGETS = {
    "plans": ["planning.workflow", "planning.reading"],
    "calls": ["planning.tools"],
    "conditions": ["planning.workflow.conditions"],
    "statements": ["planning.agent.sql"],
    "snapshots": ["session"],
}
"""The packages whose branches guide the fuzzer."""


def main() -> None:
    """Do what the command line says."""
    _, name, *arguments = sys.argv
    if arguments[:1] == ["--write-corpus"]:
        _write(Path(arguments[1]), import_module(name))
    elif len(arguments) == 1 and Path(arguments[0]).is_file():
        import_module(name).check(_text(Path(arguments[0]).read_bytes()))
    else:
        import atheris  # noqa: PLC0415 - an input is repeated without it

        with atheris.instrument_imports(include=TARGETS[name]):
            target = import_module(name)
            target.check(next(iter(target.corpus())))  # what is imported late, too
        atheris.Setup([name, *arguments], lambda data: target.check(_text(data)))
        atheris.Fuzz()


def _text(data: bytes) -> str:
    """The text of a fuzzer's bytes: UTF-8 in which lone surrogates may appear, or else Latin-1."""
    try:
        return data.decode("utf-8", errors="surrogatepass")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _write(folder: Path, target: Any) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for text in target.corpus():
        data = text.encode(errors="surrogatepass")
        (folder / sha256(data).hexdigest()[:16]).write_bytes(data)
    escaped = ("".join(f"\\x{byte:02x}" for byte in token.encode()) for token in target.TOKENS)
    (folder.parent / "tokens.txt").write_text("".join(f'"{token}"\n' for token in escaped), "ascii")


if __name__ == "__main__":
    main()
