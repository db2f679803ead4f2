"""What a file holds: a store, a snapshot, a workflow or a transcript, each with the command that takes it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal

from planning.cli.source import name_of
from planning.cli.usage import Refused
from planning.errors import printable

__all__ = ["SQLITE", "Kind", "kind_of", "refuse_other"]

Kind = Literal["store", "snapshot", "workflow", "transcript"]

SQLITE: Final = b"SQLite format 3\0"
"""The first bytes of a store, as of every SQLite file."""
_NAMES: Final[Mapping[Kind, tuple[str, str]]] = MappingProxyType({
    "store": ("a SQLite file", "'planning sessions {}' lists the sessions of a store"),
    "snapshot": ("a snapshot of a session", "'planning show {}' shows it"),
    "workflow": ("a workflow", "'planning graph {}' draws it, 'planning run {}' runs it"),
    "transcript": ("a transcript", "'planning replay {}' replays it"),
})  # fmt: skip
_STEP_KEYS: Final = {"step_id", "id"}


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
    if kind is None or kind in kinds:
        return
    name, remedy = _NAMES[kind]
    file = "-" if source in (None, "-") else shlex.quote(str(source))
    raise Refused(f"{name_of(source)} is {name}, not {wanted}; {remedy.replace('{}', printable(file))}")


def kind_of(data: bytes) -> Kind | None:
    """What is in a file; None where it is nothing that a command takes, or is damaged."""
    if data.startswith(SQLITE):
        return "store"
    try:
        return _kind_of_json(json.loads(data))
    except (ValueError, RecursionError):
        pass
    try:  # a transcript has one message a line
        first = json.loads(data.lstrip().partition(b"\n")[0])
    except (ValueError, RecursionError):
        return None
    return "transcript" if _is_message(first) else None


def _kind_of_json(document: object) -> Kind | None:
    if isinstance(document, list):
        document = {"messages": document, "steps": document}
    if not isinstance(document, dict):
        return None
    if isinstance(document.get("slices"), dict):
        return "snapshot"
    if _is_message(document) or _is_message(_first(document.get("messages"))):
        return "transcript"
    steps = _first(document.get("steps"))
    return "workflow" if isinstance(steps, dict) and steps.keys() & _STEP_KEYS else None


def _first(items: Any) -> object:
    return items[0] if isinstance(items, list) and items else None


def _is_message(document: object) -> bool:
    return isinstance(document, dict) and isinstance(document.get("role"), str)
