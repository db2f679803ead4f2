"""A session's state at one moment: kept, compared, put back, and carried as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, TypeVar
from uuid import UUID

import attrs

from session.errors import SnapshotError
from session.events import SessionEvent
from session.slices import Slice, items_of, latest_of

__all__ = ["SNAPSHOT_VERSION", "Snapshot"]

S = TypeVar("S")

SNAPSHOT_VERSION = 1


@attrs.frozen
class Snapshot:
    """All slices of a session but its event logs, which record what happened and are not rewound.

    Two snapshots are equal when their slices are. Taking one costs the same however much the
    slices hold.

    Attributes:
        session_id: The session that it was taken from.
        created_at: When, in UTC.
    """

    _slices: Mapping[type, Slice] = attrs.field(repr=False)
    session_id: UUID = attrs.field(eq=False)
    created_at: datetime = attrs.field(eq=False, factory=lambda: datetime.now(UTC))
    _tags: Mapping[str, str] = attrs.field(eq=False, repr=False, factory=dict)

    @property
    def tags(self) -> Mapping[str, str]:
        """The session's tags."""
        return MappingProxyType(dict(self._tags))

    @property
    def slices(self) -> Mapping[type, tuple[Any, ...]]:
        """The slices by type."""
        return MappingProxyType({kind: items_of(slice_) for kind, slice_ in self._slices.items()})

    def select_all(self, slice_type: type[S], /) -> tuple[S, ...]:
        """All items of a slice, oldest first."""
        return items_of(self._slices.get(slice_type, ()))

    def select_latest(self, slice_type: type[S], /) -> S | None:
        """The newest item of a slice, or None."""
        found: S | None = latest_of(self._slices.get(slice_type, ()))
        return found

    def select_where(self, slice_type: type[S], predicate: Callable[[S], bool], /) -> tuple[S, ...]:
        """The items of a slice that ``predicate`` accepts, oldest first."""
        return tuple(item for item in self.select_all(slice_type) if predicate(item))

    def to_json(self, *, indent: int | None = None) -> str:
        """Write the snapshot as JSON text.

        Slices of dataclasses and attrs classes are written by the types of their fields, and read
        back at once to be sure of them: what this returns, ``from_json`` turns into an equal
        snapshot.

        Raises:
            SnapshotError: A value has no JSON form that reads back equal; the text names its place.
        """
        import json  # noqa: PLC0415 - most sessions are never written

        try:
            return json.dumps(self._document(), indent=indent, allow_nan=False)
        except SnapshotError:
            raise
        except Exception as error:
            raise SnapshotError(f"the snapshot cannot be written: {_reason(error)}") from error

    @classmethod
    def from_json(cls, text: str | bytes, *, types: Iterable[type] = ()) -> Snapshot:
        """Read a snapshot that ``to_json`` wrote.

        A slice's type is found among ``types``, then among the modules that are loaded already:
        reading a snapshot never imports anything.

        Raises:
            SnapshotError: The text is no snapshot, is one of another version, or names a type that
                is not loaded.
        """
        import json  # noqa: PLC0415 - most sessions are never read

        try:
            document = json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
        except (TypeError, ValueError, RecursionError) as error:
            raise SnapshotError(f"a snapshot must be JSON text: {_reason(error)}") from None
        if not isinstance(document, dict):
            raise SnapshotError("a snapshot must be a JSON object")
        version = document.get("version")
        if type(version) is not int or version != SNAPSHOT_VERSION:
            raise SnapshotError(
                f"snapshot version {version!r} is not known; this release reads {SNAPSHOT_VERSION}"
            )
        try:
            return cls._from_document(document, types)
        except SnapshotError:
            raise
        except Exception as error:
            raise SnapshotError(f"the snapshot cannot be read: {_reason(error)}") from error

    def _document(self) -> dict[str, Any]:
        from session.codec import encode, type_name  # noqa: PLC0415 - for JSON alone

        slices: dict[str, list[Any]] = {}
        for kind, slice_ in self._slices.items():
            name = kind.__qualname__
            rows = [encode(item, f"{name}[{place}]") for place, item in enumerate(items_of(slice_))]
            if _decode_rows(rows, kind) != items_of(slice_):
                raise SnapshotError(f"{name} does not read back equal: give its fields exact type hints")
            if type_name(kind) in slices:
                raise SnapshotError(f"two slice types are named {type_name(kind)}: rename one")
            slices[type_name(kind)] = rows
        return {
            "version": SNAPSHOT_VERSION,
            "session_id": str(self.session_id),
            "created_at": self.created_at.isoformat(),
            "tags": dict(self.tags),
            "slices": slices,
        }

    @classmethod
    def _from_document(cls, document: dict[str, Any], types: Iterable[type]) -> Snapshot:
        from session.codec import decode, type_name, type_of  # noqa: PLC0415 - for JSON alone

        known = {type_name(kind): kind for kind in types}
        slices: dict[type, Slice] = {}
        for name, rows in decode(document.get("slices"), dict[str, list[Any]], "slices").items():
            kind = known.get(name) or type_of(name)
            if issubclass(kind, SessionEvent):
                raise SnapshotError(f"{name} is an event: event logs are no part of a snapshot")
            slices[kind] = _decode_rows(rows, kind)
        created_at: datetime = decode(document.get("created_at"), datetime, "created_at")
        if created_at.utcoffset() is None:
            raise SnapshotError("created_at: expected a time with a time zone")
        return cls(
            slices=slices,
            session_id=decode(document.get("session_id"), UUID, "session_id"),
            created_at=created_at,
            tags=decode(document.get("tags"), dict[str, str], "tags"),
        )


def _decode_rows(rows: list[Any], kind: type) -> tuple[Any, ...]:
    from session.codec import decode  # noqa: PLC0415 - for JSON alone

    return tuple(decode(row, kind, f"{kind.__qualname__}[{place}]") for place, row in enumerate(rows))


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")


def _finite(number: str) -> float:
    value = float(number)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{number} is too large")
    return value


def _reason(error: Exception) -> str:
    """A RecursionError's own text says nothing of the cause."""
    return "it is nested too deep" if isinstance(error, RecursionError) else str(error)
