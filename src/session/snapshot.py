"""A session's state at one moment: kept, compared, restored, and stored as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any, TypeVar

import attrs

from session.errors import SnapshotError, StoreError, shown
from session.events import SessionEvent, SessionId, session_id_of
from session.slices import Slice, items_of, latest_of, type_name

S = TypeVar("S")

SNAPSHOT_VERSION = 2


@attrs.frozen
class Snapshot:
    """All slices of a session except its event logs, which record what happened and are not rewound.

    Two snapshots are equal when their slices are equal. The cost of taking one does not depend on the size of
    the slices.

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

        The text is read back to check it: ``from_json`` returns an equal snapshot with the same identity,
        time and tags.

        Raises:
            SnapshotError: A value has no JSON form that reads back equal; the text names its place.
        """
        from session.changes import written_text  # noqa: PLC0415 - most are never written
        from session.checkpoints import write_items  # noqa: PLC0415 - see above
        from session.codec import require_plain  # noqa: PLC0415 - see above
        from session.records import Records  # noqa: PLC0415 - see above

        what = "the snapshot cannot be written"
        with _Refusing(what):
            for kind in self._slices:
                require_plain(kind)
            slices, records = dict[str, list[Any]](), Records(self._slices)
            for kind, slice_ in self._slices.items():
                if type_name(kind) in slices:
                    raise SnapshotError(f"two slice types are named {type_name(kind)}: rename one")
                slices[type_name(kind)] = write_items(kind, items_of(slice_), records)
            document = {
                "version": SNAPSHOT_VERSION,
                "session_id": str(self.session_id),
                "created_at": self.created_at.isoformat(),
                "tags": dict(self.tags),
                "slices": slices,
            }
            text = written_text(document, what, separators=None, indent=indent)
            self._compare(Snapshot.from_json(text, types=self._slices))
        return text

    @classmethod
    def from_json(cls, text: str | bytes, *, types: Iterable[type] = ()) -> Snapshot:
        """Read a snapshot that ``to_json`` wrote.

        A slice's type is found among ``types``, then among the modules that are loaded already:
        reading a snapshot never imports anything. A type of ``__main__`` is found among ``types`` by its
        qualified name too, for that module differs in each program. Only values of these types are built,
        of those that the hints of their fields name, and plain ones. A type with a static method
        ``check_slice`` has its items checked by it.

        Raises:
            SnapshotError: The text is not a snapshot, has another version, or names a type that
                is not loaded or whose values no snapshot holds.
        """
        import json  # noqa: PLC0415 - most sessions are never read

        with _Refusing("a snapshot must be JSON text"):
            document = json.loads(text)
        if not isinstance(document, dict):
            raise SnapshotError("a snapshot must be a JSON object")
        version = document.get("version")
        if type(version) is not int or version != SNAPSHOT_VERSION:
            raise SnapshotError(
                f"snapshot version {shown(version)} is not known; this release reads {SNAPSHOT_VERSION}"
            )
        with _Refusing("the snapshot cannot be read"):
            return cls._from_document(document, tuple(types))

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
    def _from_document(cls, document: dict[str, Any], types: tuple[type, ...]) -> Snapshot:
        from session.checkpoints import read_items  # noqa: PLC0415 - only for JSON
        from session.codec import loaded_type  # noqa: PLC0415 - only for JSON
        from session.records import Records  # noqa: PLC0415 - only for JSON

        for kind in types:
            if not isinstance(kind, type):
                raise SnapshotError(f"types= takes classes, got {shown(kind)}")
        records = Records(types)
        kinds = {name: records.known(name) or loaded_type(name) for name in _part(document, "slices", dict)}
        records.learn(kinds.values())
        slices: dict[type, Slice] = {}
        for name, kind in kinds.items():
            if issubclass(kind, SessionEvent):
                raise SnapshotError(f"{type_name(kind)} is an event: event logs are not part of a snapshot")
            if kind in slices:
                raise SnapshotError(f"{type_name(kind)} appears twice, under two names")
            slices[kind] = read_items(kind, document["slices"][name], records)
        with _Refusing("created_at"):
            created_at = datetime.fromisoformat(_part(document, "created_at", str))
            if created_at.utcoffset() is None:
                raise ValueError("expected a time with a time zone")
        with _Refusing("session_id"):
            session_id = session_id_of(_part(document, "session_id", str))
        tags = _part(document, "tags", dict)
        if not all(isinstance(word, str) for word in tags.values()):
            raise SnapshotError("tags: expected an object whose values are text")
        return cls(slices=slices, session_id=session_id, created_at=created_at, tags=tags)


def _part(document: dict[str, Any], name: str, kind: type) -> Any:
    """A part of a snapshot."""
    found = document.get(name)
    if not isinstance(found, kind):
        given = f"a {type(found).__name__}" if isinstance(found, (dict, list)) else shown(found)
        raise SnapshotError(f"{name}: expected {kind.__name__}, got {given}")
    return found


class _Refusing:
    """Make a SnapshotError of whatever goes wrong within a ``with`` block."""

    def __init__(self, what: str) -> None:
        """Say what is wrong, or where; the error's own text says why."""
        self.what = what

    def __enter__(self) -> None:
        """Begin."""

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        """Say what went wrong."""
        if error is None or isinstance(error, SnapshotError) or not isinstance(error, Exception):
            return
        if isinstance(error, StoreError):  # it names the place
            raise SnapshotError(str(error)) from error.__cause__
        # The text of a RecursionError says nothing of the cause.
        why = "it is nested too deep" if isinstance(error, RecursionError) else error
        raise SnapshotError(f"{self.what}: {why}") from error
