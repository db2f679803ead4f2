"""What a file holds: a store, a snapshot, a workflow or a transcript, each with the command that takes it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal

from planning.cli.source import name_of, read_bytes
from planning.cli.transcript import is_transcript
from planning.cli.usage import Refused

Kind = Literal["store", "snapshot", "workflow", "transcript"]

_SQLITE: Final = b"SQLite format 3\0"  # the first bytes of every SQLite file
_NAMES: Final[Mapping[Kind, str]] = MappingProxyType({
    "store": "a SQLite file; 'planning sessions' lists the sessions of a store",
    "snapshot": "a snapshot of a session; 'planning show' shows it",
    "workflow": "a workflow; 'planning graph' draws it, 'planning run' runs it",
    "transcript": "a transcript; 'planning replay' replays it",
})  # fmt: skip


def is_store(source: str | None) -> bool:
    """Whether a source is a store, or an address as of one.

    Raises:
        Refused: It is a file that cannot be read.
    """
    from session.address import is_address

    if source in {None, "-"}:
        return False
    if is_address(source):
        return True
    # What is read from a pipe is gone.
    return Path(source).is_file() and read_bytes(source, "STORE", first=len(_SQLITE)) == _SQLITE


def refuse_other(data: bytes, source: str | None, wanted: str, *kinds: Kind) -> None:
    """Refuse a file that holds something else which a command takes; any other is left to the caller.

    Args:
        data: What is in the file.
        source: The file; None and ``-`` for standard input.
        wanted: What the command takes, as a message names it: ``a workflow``.
        kinds: The kinds that are that.

    Raises:
        Refused: It is another kind; the message names the kind, and the command that takes it.
    """
    kind = kind_of(data)
    if kind is not None and kind not in kinds:
        raise Refused(f"{name_of(source)} is not {wanted} but {_NAMES[kind]}")


def kind_of(data: bytes) -> Kind | None:
    """What is in a file; None where it is nothing that a command takes, or is damaged."""
    if data.startswith(_SQLITE):
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
    if isinstance(document, list):
        document = {"steps": document}
    if not isinstance(document, dict):
        return None
    return "workflow" if _first(document.get("steps")).keys() & {"step_id", "id"} else None


def _first(items: Any) -> dict[str, Any]:
    return items[0] if isinstance(items, list) and items and isinstance(items[0], dict) else {}
