"""The slices of a session as JSON, for checkpoints and snapshots."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import attrs
import typing_extensions

from session.codec import fields_of, is_record
from session.errors import RecordError, ReducerError, StoreError, shown
from session.records import Records
from session.slices import check_items


def write_items(kind: type, items: Sequence[Any], records: Records) -> list[Any]:
    """The items of a slice as JSON has them.

    Raises:
        RecordError: One has no JSON form.
    """
    written: list[Any] = []
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
    name = kind.__qualname__
    found: list[Any] = []
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
    """The slices of a checkpoint, by the name of their type: ``at`` which version, and the ``items``.

    Raises:
        StoreError: It cannot be read.
    """
    with Reading(f"the checkpoint of version {version}", version):
        slices: dict[str, dict[str, Any]] = json.loads(text)["slices"]
        for each in slices.values():
            if (
                type(each["at"]) is not int
                or not 0 <= each["at"] <= version
                or type(each["items"]) is not list
            ):
                raise StoreError("it is malformed: drop the checkpoints")
        return slices


def _read_item(kind: type, item: object, records: Records) -> Any:
    read = records.read_as(item, kind)
    if is_item(kind, read):
        return read
    names = ", ".join([field.name for field in fields_of(kind)]) if is_record(kind) else ""
    wanted = f"an object with {names or 'no fields'}" if is_record(kind) else kind.__name__
    raise RecordError(f"expected {wanted}, got {shown(item)}")


def is_item(kind: type, item: object) -> bool:
    """True if a value may be in a slice: of a TypedDict, any dict."""
    return isinstance(item, dict if typing_extensions.is_typeddict(kind) else kind)


@attrs.define
class Reading:
    """Make a StoreError of whatever reading raises, within a ``with`` block.

    Attributes:
        what: What is read, for the message.
        version: The version that it is of; None where that is not known here.
    """

    what: str
    version: int | None = None

    def __enter__(self) -> None:
        """Begin to read."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Name what was read, if that raised."""
        if error is None or isinstance(error, MemoryError) or not isinstance(error, Exception):
            return
        if isinstance(error, RecursionError):
            raise StoreError(f"{self.what} is nested too deep to be read", version=self.version) from error
        if not isinstance(error, StoreError):
            raise StoreError(f"{self.what} cannot be read: {error}", version=self.version) from error
        if error.version is None and self.version is not None:
            raise StoreError(f"{self.what}: {error}", version=self.version) from error
