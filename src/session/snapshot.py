"""A session's state at one moment: kept, compared, restored, and stored as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, TypeVar

import attrs

from session.errors import SnapshotError, shown
from session.events import SessionEvent, SessionId, session_id_of
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
    session_id: SessionId = attrs.field(eq=False, converter=session_id_of)
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

        Slices of dataclasses and attrs classes are written by the types of their fields. The text is
        read back at once to be sure of it: ``from_json`` turns what this returns into an equal snapshot
        with the same identity, time and tags.

        Raises:
            SnapshotError: A value has no JSON form that reads back equal; the text names its place.
        """
        import json  # noqa: PLC0415 - most sessions are never written

        with _refusing("the snapshot cannot be written"):
            text = json.dumps(self._document(), indent=indent, allow_nan=False)
            self._compare(Snapshot.from_json(text, types=self._slices))
        return text

    @classmethod
    def from_json(cls, text: str | bytes, *, types: Iterable[type] = ()) -> Snapshot:
        """Read a snapshot that ``to_json`` wrote.

        A slice's type is found among ``types``, then among the modules that are loaded already:
        reading a snapshot never imports anything. A type of ``__main__`` is found among ``types`` by its
        qualified name too, for that module is another in each program. A type with a static method
        ``check_slice`` has its items checked by it.

        Raises:
            SnapshotError: The text is not a snapshot, has another version, or names a type that
                is not loaded or whose values no snapshot holds.
        """
        from session.strict_json import read_json  # noqa: PLC0415 - most sessions are never read

        with _refusing("a snapshot must be JSON text"):
            document = read_json(text)
        if not isinstance(document, dict):
            raise SnapshotError("a snapshot must be a JSON object")
        version = document.get("version")
        if type(version) is not int or version != SNAPSHOT_VERSION:
            raise SnapshotError(
                f"snapshot version {shown(version)} is not known; this release reads {SNAPSHOT_VERSION}"
            )
        with _refusing("the snapshot cannot be read"):
            return cls._from_document(document, types)

    def _document(self) -> dict[str, Any]:
        from session.codec import encode, require_plain, type_name  # noqa: PLC0415 - for JSON alone

        slices: dict[str, list[Any]] = {}
        for kind, slice_ in self._slices.items():
            rows = encode(list(items_of(slice_)), kind.__qualname__)
            require_plain(kind)
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

    def _compare(self, read: Snapshot) -> None:
        """Refuse what does not read back equal."""
        for kind, slice_ in self._slices.items():
            if read.select_all(kind) != items_of(slice_):
                raise SnapshotError(
                    f"{kind.__qualname__} does not read back equal: give its fields exact type hints"
                )
        for name in ("session_id", "created_at", "tags"):
            if getattr(read, name) != getattr(self, name):
                raise SnapshotError(f"{name} does not read back equal")

    @classmethod
    def _from_document(cls, document: dict[str, Any], types: Iterable[type]) -> Snapshot:
        from session.codec import type_name  # noqa: PLC0415 - for JSON alone
        from session.reader import Reader  # noqa: PLC0415 - for JSON alone

        reader = Reader(types)
        slices: dict[type, Slice] = {}
        for name, rows in reader.decode(document.get("slices"), dict[str, list[Any]], "slices").items():
            kind = reader.find_type(name)
            if issubclass(kind, SessionEvent):
                raise SnapshotError(f"{type_name(kind)} is an event: event logs are not part of a snapshot")
            if kind in slices:
                raise SnapshotError(f"{type_name(kind)} is there twice, under two names")
            slices[kind] = tuple(
                reader.decode(row, kind, (kind.__qualname__, index)) for index, row in enumerate(rows)
            )
            if hasattr(kind, "check_slice"):
                with _refusing(kind.__qualname__):
                    kind.check_slice(slices[kind])
        created_at: datetime = reader.decode(document.get("created_at"), datetime, "created_at")
        if created_at.utcoffset() is None:
            raise SnapshotError("created_at: expected a time with a time zone")
        with _refusing("session_id"):
            session_id = session_id_of(reader.decode(document.get("session_id"), str, "session_id"))
        tags = reader.decode(document.get("tags"), dict[str, str], "tags")
        return cls(slices=slices, session_id=session_id, created_at=created_at, tags=tags)


@contextmanager
def _refusing(what: str) -> Iterator[None]:
    """Make a SnapshotError of whatever goes wrong inside.

    Args:
        what: What is wrong, or where; the error's own text says why.
    """
    try:
        yield
    except SnapshotError:
        raise
    except RecursionError as error:  # its own text says nothing of the cause
        raise SnapshotError(f"{what}: it is nested too deep") from error
    except Exception as error:
        raise SnapshotError(f"{what}: {error}") from error
