"""Changes in a chain of hashes, checkpoints and the records of sessions; and the errors of stores."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import blake2b
from types import MappingProxyType
from typing import Any

import attrs

from session.errors import StaleVersion, StoreError, TransactionError, shown
from session.events import SessionId, session_id_of

_LONGEST_WAIT = 1_000_000


_encode = json.JSONEncoder(separators=(",", ":")).encode  # json.dumps would make an encoder for each row


def chain_hash(before: bytes, text: str) -> bytes:
    """The hash of a string and of all that was before it."""
    return blake2b(before + text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


@attrs.frozen
class StoredChange:
    """One change as a store keeps it.

    Attributes:
        version: Its place in the session's history: 1 for the first.
        text: What it was, as JSON.
        hash: ``chain_hash`` of the hash before and the text.
        idempotency_key: That of the accepted call in it, to find it by; None if there is none.
        rewound_to: The version that it restored, where it is a rewind.
    """

    version: int
    text: str = attrs.field(repr=False)
    hash: bytes
    idempotency_key: str | None = None
    rewound_to: int | None = None


@attrs.frozen
class Checkpoint:
    """The slices of a version: kept so that its changes need not be replayed.

    Attributes:
        version: The version.
        text: The slices, as JSON.
        check: ``chain_hash`` of the change's hash and the text.
    """

    version: int
    text: str = attrs.field(repr=False)
    check: bytes


def _frozen(tags: Mapping[str, str]) -> Mapping[str, str]:
    return MappingProxyType(dict(tags))


@attrs.frozen
class StoredSession:
    """The record of a session in a store.

    Attributes:
        session_id: Its identity.
        version: How many changes it has.
        hash: The hash of the last one; empty for none.
        created_at: When it began.
        changed_at: When it was changed last, in UTC.
        tags: Words to find it by.
        forked_from: For a fork, the sessions that its first versions came from, oldest first: an identity,
            and the last version that came from there.
        parent: The session that it works for.
        damage: Why the record cannot be read, where ``Store.sessions`` lists it all the same with what can be
            known of it. None for a sound one.
    """

    session_id: SessionId
    version: int
    hash: bytes = attrs.field(repr=False)
    created_at: datetime
    changed_at: datetime
    tags: Mapping[str, str] = attrs.field(factory=dict, converter=_frozen)
    forked_from: tuple[tuple[SessionId, int], ...] = ()
    parent: SessionId | None = None
    damage: str | None = None

    def owner(self, version: int) -> SessionId:
        """The session in which a version was made."""
        return next((source for source, last in self.forked_from if version <= last), self.session_id)

    def grown(self, version: int, hash_: bytes, changed_at: datetime) -> StoredSession:
        """The session with one more change."""
        same = (self.created_at, changed_at, self.tags, self.forked_from, self.parent)
        return StoredSession(self.session_id, version, hash_, *same)

    def row(self) -> tuple[Any, ...]:
        """The session as a store may write it: six values of plain types, which ``StoredSession.of`` reads.

        They are its id, version, hash, the time of its last change, the rest as JSON, and a checksum.
        """
        about: dict[str, object] = {
            "created_at": self.created_at.isoformat(),
            "tags": dict(self.tags),
            "forked_from": [[str(source), last] for source, last in self.forked_from],
        }
        if self.parent is not None:
            about["parent"] = str(self.parent)
        changed_at, text = self.changed_at.isoformat(), _encode(about)
        values = (str(self.session_id), self.version, self.hash, changed_at, text)
        return (*values, check_of(values))

    @classmethod
    def of(cls, row: tuple[Any, ...]) -> StoredSession:
        """The session that ``row`` wrote.

        Raises:
            StoreError: A value of it was changed since.
        """
        try:
            *values, checked = row
            session_id, version, hash_, changed_at, about = values
            said = json.loads(about)
            found = cls(
                session_id=session_id_of(session_id),
                version=version,
                hash=hash_,
                created_at=datetime.fromisoformat(said["created_at"]),
                changed_at=datetime.fromisoformat(changed_at),
                tags={str(key): str(word) for key, word in said["tags"].items()},
                forked_from=tuple((session_id_of(source), int(last)) for source, last in said["forked_from"]),
                parent=session_id_of(said["parent"]) if "parent" in said else None,
            )
            zones = (found.created_at.utcoffset(), found.changed_at.utcoffset())
            is_sound = checked == check_of(tuple(values)) and type(version) is int and version >= 0
            if is_sound and type(hash_) is bytes and None not in zones:
                return found
            cause = None
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            cause = error
        raise StoreError(f"the record of session {shown(str(row[0]))} is damaged") from cause

    @classmethod
    def listed(cls, row: tuple[Any, ...]) -> StoredSession:
        """The session of a row for ``Store.sessions``: a damaged one has its ``damage``."""
        try:
            return cls.of(row)
        except StoreError as error:
            version = row[1] if type(row[1]) is int else 0
            never = datetime.fromtimestamp(0, UTC)
            return cls(str(row[0]), version, b"", never, never, damage=str(error))


def check_timeout(timeout: object) -> float:
    """The seconds that a writer waits for another.

    Raises:
        ValueError: It is not a number, or negative, or longer than a thread can wait.
    """
    if not isinstance(timeout, (int, float)) or not timeout >= 0:
        raise ValueError(f"timeout must be seconds of 0 or more, got {shown(timeout)}")
    if timeout > _LONGEST_WAIT:
        raise ValueError(f"timeout must be seconds of at most {_LONGEST_WAIT:,}, got {shown(timeout)}")
    return float(timeout)


def key_of(name: SessionId) -> int:
    """The key of a session's rows: made of the name, so that a lost record hides no rows."""
    digest = blake2b(str(name).encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)


def check_of(row: tuple[Any, ...]) -> bytes:
    """The hash of a row."""
    return blake2b(repr(row).encode(), digest_size=16).digest()


def verified(changes: Sequence[StoredChange], first: int, last: int, before: bytes) -> Sequence[StoredChange]:
    """The changes, when they are those from a version to another and each continues the chain.

    Raises:
        StoreError: One is missing or damaged.
    """
    found, damage = sound(changes, first, last, before)
    if damage is not None:
        raise damage
    return found


def sound(
    changes: Sequence[StoredChange], first: int, last: int, before: bytes
) -> tuple[Sequence[StoredChange], StoreError | None]:
    """The same as far as the changes are sound, and what is wrong with the one after them."""
    for place, version in enumerate(range(first, last + 1)):
        change = changes[place] if place < len(changes) else None
        if change is None or change.version != version or change.hash != chain_hash(before, change.text):
            return changes[:place], StoreError(damaged(version), version=version)
        before = change.hash
    return changes, None


def damaged(version: int) -> str:
    """The error for a version that is missing or is not what was written."""
    return (
        f"version {version} is damaged in the store; what is before it can be read with session.at(), and "
        f"forked with session.fork(at={version - 1})"
    )


def stale_error(expected: int, known: int) -> StaleVersion:
    """The error of ``Store.append`` and ``Store.copy`` for a version that is not the session's.

    Args:
        expected: The version that the caller expects.
        known: The version that the session has.
    """
    return StaleVersion(f"the session has version {known}, not {expected}: refresh it and try again")


def nested_error() -> TransactionError:
    """The error of ``Store.lock`` in a thread that is inside the lock of this store already."""
    return TransactionError(
        "a transaction of another session of this store is open in this thread, and they would wait for each "
        "other: end it first"
    )


def no_session_error(session_id: SessionId) -> StoreError:
    """The error of ``Store.copy`` and ``Store.verify`` when the store has no such session."""
    return StoreError(f"the store holds no session {shown(str(session_id))}")


def deleted(session_id: SessionId) -> StoreError:
    """The error when a session is gone that was there."""
    return StoreError(f"session {shown(str(session_id))} was deleted from the store")


def replaced(session_id: SessionId) -> StoreError:
    """The error when a session is not the one that was there."""
    return StoreError(f"session {shown(str(session_id))} was replaced by another: open it again")


def refuse_copy(source: StoredSession, fork: StoredSession, there: StoredSession | None) -> None:
    """Check what ``Store.copy`` was asked for; stores call it with the lock held, before they write.

    Args:
        source: The session to copy.
        fork: The session to begin; its version is the last that is copied.
        there: What the store has under the fork's id; None for nothing.

    Raises:
        StoreError: The fork's id is taken.
        StaleVersion: The source has no such version.
    """
    if there is not None:
        raise StoreError(
            f"the store holds a session {shown(str(fork.session_id))} already: give the fork another id"
        )
    if source.version < fork.version:
        raise stale_error(fork.version, source.version)
