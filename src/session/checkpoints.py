"""The slices of a session as JSON: what a checkpoint and a snapshot hold."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import typing_extensions

from session.codec import fields_of, is_record
from session.errors import RecordError, ReducerError, StoreError, shown
from session.records import Records
from session.routes import check_items

__all__ = [
    "DEEPEST",
    "NOT_STORED",
    "is_item",
    "read_items",
    "reading",
    "slices_of",
    "write_items",
    "written_text",
]

DEEPEST: Final = 128
"""How many levels a text may have: it is read back wherever the reader is called from."""
NOT_STORED: Final = "the change cannot be stored"


def written_text(
    written: Any,
    what: str = NOT_STORED,
    *,
    separators: tuple[str, str] | None = (",", ":"),
    indent: int | None = None,
) -> str:
    """What was written as JSON text, which is read back wherever this is called from.

    Args:
        written: What was written.
        what: What is wrong where that is refused.
        separators: See ``json.dumps``.
        indent: Likewise.

    Raises:
        StoreError: It is nested too deep, or a number is too long.
    """
    too_deep = f"{what}: it is nested more than {DEEPEST} levels deep"
    try:
        text = json.dumps(written, separators=separators, allow_nan=False, indent=indent)
    except (ValueError, RecursionError) as error:
        raise StoreError(too_deep if isinstance(error, RecursionError) else f"{what}: {error}") from error
    # Each level has a bracket of its own: few texts have enough of them to be nested too deep.
    if text.count("[") + text.count("{") > DEEPEST:
        level, depth = [written], 0
        while level:
            depth += 1
            if depth > DEEPEST:
                raise StoreError(too_deep)
            inner = [each.values() if type(each) is dict else each for each in level]
            level = [each for items in inner for each in items if type(each) in (dict, list)]
    return text


def write_items(kind: type, items: Sequence[Any], records: Records) -> list[Any]:
    """The items of a slice as JSON has them.

    Raises:
        RecordError: One has no JSON form.
    """
    written = list[Any]()
    try:
        for item in items:
            written.append(records.write_as(item, kind))
    except RecordError as error:
        raise error.inside(f"{kind.__qualname__}[{len(written)}]") from error.__cause__
    return written


def read_items(kind: type, items: object, records: Records) -> tuple[Any, ...]:
    """The items of a slice, checked by its type.

    Raises:
        RecordError: They are not items of it.
    """
    name, found = kind.__qualname__, list[Any]()
    if not isinstance(items, list):
        raise RecordError(f"expected a list of items, got {shown(items)}", name)
    try:
        for item in items:
            found.append(_read_item(kind, item, records))
    except RecordError as error:
        raise error.inside(f"{name}[{len(found)}]") from error.__cause__
    try:
        check_items(kind, tuple(found))
    except ReducerError as error:
        raise RecordError(str(error.__cause__), name) from error
    return tuple(found)


def slices_of(text: str, version: int) -> dict[str, dict[str, Any]]:
    """What a checkpoint has of each slice, by the name of its type: ``at`` which version, and its ``items``.

    Raises:
        StoreError: It cannot be read.
    """
    with reading(f"the checkpoint of version {version}", version):
        slices: dict[str, dict[str, Any]] = json.loads(text)["slices"]
        for each in slices.values():
            if (
                type(each["at"]) is not int
                or not 0 <= each["at"] <= version
                or type(each["items"]) is not list
            ):
                raise StoreError("it has another form than it must have: drop the checkpoints")
        return slices


def _read_item(kind: type, item: object, records: Records) -> Any:
    read = records.read_as(item, kind)
    if is_item(kind, read):
        return read
    names = ", ".join([field.name for field in fields_of(kind)]) if is_record(kind) else ""
    wanted = f"an object with {names or 'no fields'}" if is_record(kind) else kind.__name__
    raise RecordError(f"expected {wanted}, got {shown(item)}")


def is_item(kind: type, item: object) -> bool:
    """Whether a value may be in a slice: of a TypedDict, any dict."""
    return isinstance(item, dict if typing_extensions.is_typeddict(kind) else kind)


@contextmanager
def reading(what: str, version: int | None = None) -> Iterator[None]:
    """Make a StoreError of whatever reading raises.

    Args:
        what: What is read, for the message.
        version: The version that it is of; None where that is not known here.
    """
    try:
        yield
    except StoreError as error:
        if error.version is not None or version is None:
            raise
        raise StoreError(f"{what}: {error}", version=version) from error
    except RecursionError as error:
        raise StoreError(f"{what} is nested too deep to be read", version=version) from error
    except MemoryError:
        raise
    except Exception as error:
        raise StoreError(f"{what} cannot be read: {error}", version=version) from error
