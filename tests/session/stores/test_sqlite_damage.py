"""Damage in a file; contents that cannot be read, though their hashes are sound; and others that write."""

from __future__ import annotations

import random
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import pytest
from store_places import (
    SETUP,
    MemoryPlace,
    Place,
    SqlitePlace,
    lived,
    numbered,
    open_session,
    refused,
    state_of,
    states_of,
    store_of,
)
from syrupy.assertion import SnapshotAssertion
from typer.testing import CliRunner

from planning import Plan
from planning.cli.app import app
from planning.plan.commands import MarkStep, SetupPlan
from session import Session, SessionId, StoreError, ToolInvoked, stored
from session.stores import Checkpoint, MemoryStore, SqliteStore, Store, StoredChange, StoredSession
from session.stores.chain import chain_hash, check_of, key_of

RAW = [
    *("{", "", "[]", "null", "5", '"x"', "NaN", "1" * 5_000, "[" * 100_000),
    '{"a":' * 3_000 + "1" + "}" * 3_000,
    '{"slices":5}',
    '{"slices":{"planning.model:Plan":[]}}',
    '{"slices":{"planning.model:Plan":{"at":"1","items":[]}}}',
    '{"slices":{"planning.model:Plan":{"at":9999,"items":[]}}}',
    '{"slices":{"planning.model:Plan":{"at":1,"items":[{"!":[]}]}}}',
    '{"slices":{"planning.model:Plan":{"at":1,"items":[5]}}}',
    '{"format":2,"at":"2026-01-01","parts":[]}',
    *('{"at":5,"parts":[]}', '{"at":"2026-01-01","parts":5}', '{"at":"2026-01-01","parts":[],"actor":5}'),
    '{"at":"2026-01-01","parts":[],"slices":[{}]}',
    '{"at":"2026-01-01","parts":[{"!":"session.events:ToolInvoked","name":5,"params":null,"result":null}]}',
    '{"at":"2026-01-01","parts":[{"!":"session.events:ToolInvoked","name":"x","params":null,"result":null,'
    '"created_at":5}]}',
]
PARTS = [
    '{"!":"planning.commands:SetupPlan","objective":5}',
    '{"!":"planning.commands:SetupPlan","objective":"x","initial_steps":5}',
    *('{"!":5}', '{"!":"reset","actor":5}', '{"!":"reset","call_id":5}'),
    '{"!":"subprocess:Popen","args":"touch ran"}',
    '{"!":"planning.model:Plan","more":1}',
    '{"!":"planning.model:Plan@99999999999999999999"}',
    '{"!":"dict","items":[1]}',
    *('{"!":"rewound","version":' + version + "}" for version in ("99", "-1", "1.5")),
    '{"!":"rolled back","session_id":"x","created_at":"2026-01-01T00:00:00+00:00","slices":[]}',
    '{"!":"rolled back","session_id":"../x","created_at":"2026-01-01T00:00:00+00:00","slices":{}}',
    '{"!":"rolled back","session_id":"x","created_at":"2026-01-01T00:00:00+00:00",'
    '"slices":{"planning.model:Plan":[5]}}',
]
RAW += ['{"at":"2026-01-01","slices":["planning.model:Plan"],"parts":[' + part + "]}" for part in PARTS]


@pytest.fixture(scope="module")
def busy(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A file with a busy session, which has checkpoints, and another one."""
    path = tmp_path_factory.mktemp("busy") / "plans.db"
    with pytest.MonkeyPatch.context() as patch, closing(SqliteStore(path)) as store:
        patch.setattr(stored, "CHECKPOINT", 3)
        for name in ("run-7", "other"):
            session = lived(open_session(store, name))
            session.claim("late")
            for status in ("done", "blocked", "done", "blocked"):
                session.dispatch(SETUP)
                session.dispatch(MarkStep("S001", status))
    return path.read_bytes()


@pytest.fixture
def path(tmp_path: Path, busy: bytes, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(stored, "CHECKPOINT", 3)
    path = tmp_path / "plans.db"
    path.write_bytes(busy)
    return path


def execute(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


def write_head(connection: sqlite3.Connection, values: tuple[Any, ...]) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?)",
        (key_of(values[0]), *values, check_of(values)),
    )


READS: dict[str, Callable[[Session], object]] = {
    "states": states_of,
    "now": state_of,
    "history": lambda session: session.history(),
    "pings": numbered,
    "calls": lambda session: [session.find_call(key) for key in ("k1", "k2", "k3")],
    "log": lambda session: session.select_all(ToolInvoked),
    "snapshot": lambda session: dict(session.snapshot().slices),
    "head": lambda session: store_of(session).head("run-7"),
    "verify": lambda session: store_of(session).verify("run-7"),
    "watch": lambda session: list(store_of(session).watch("run-7", after=0, timeout=0)),
    "sessions": lambda session: [sound(each) for each in store_of(session).sessions()],
    "fork": lambda session: states_of(session.fork(5)),
}


def sound(record: StoredSession) -> tuple[SessionId, int]:
    if record.damage is not None:
        raise StoreError(record.damage)
    return record.session_id, record.version


def seen(path: Path) -> tuple[dict[str, object], list[StoreError]]:
    """What each read gives, and the errors of the others; anything but a StoreError is raised."""
    found, errors = dict[str, object](), list[StoreError]()
    with suppress(StoreError), closing(SqliteStore(path)) as store:
        session = open_session(store)
        for name, read in READS.items():
            try:
                found[name] = read(session)
            except StoreError as error:
                assert str(error)
                errors.append(error)
    return found, errors


BEGAN = datetime(2026, 1, 1, tzinfo=UTC)
PLAIN = '{"at":"2026-01-01","slices":["planning.model:Plan"],"parts":[]}'


def append(store: Store, head: StoredSession | None, text: str, checkpoint: str | None = None) -> int:
    """Write any change and checkpoint with sound hashes, as only another program does it."""
    assert head is not None
    version, hash_ = head.version + 1, chain_hash(head.hash, text)
    kept = None if checkpoint is None else Checkpoint(version, checkpoint, chain_hash(hash_, checkpoint))
    change = StoredChange(version, text, hash_)
    store.append(head.grown(version, hash_, BEGAN), change, expected=head.version, checkpoint=kept)
    return version


@pytest.mark.slow
@pytest.mark.parametrize("size", [96, 1021, 4096])
def test_whatever_is_read_of_a_damaged_file_is_right_or_refused(path: Path, size: int) -> None:
    data = path.read_bytes()
    right, _ = seen(path)
    assert right.keys() == READS.keys()
    noise, refusals = random.Random(size), 0  # noqa: S311 - any bytes
    starts = [start for start in range(0, len(data), size) if any(data[start : start + size])]
    for start in starts[:: max(1, len(starts) // 20)]:
        for block in (bytes(size), b"\xff" * size, noise.randbytes(size)):
            for name in ("plans.db-wal", "plans.db-shm"):
                path.with_name(name).unlink(missing_ok=True)
            path.write_bytes((data[:start] + block + data[start + size :])[: len(data)])
            found, _ = seen(path)
            refusals += len(found) < len(right)
            wrong = {name for name in found if found[name] != right[name]}
            # What finds calls by their keys has no checksum.
            assert wrong <= {"calls"}, (start, block[:4])
    assert refusals


def message_of(read: Callable[[], object]) -> str:
    try:
        read()
    except StoreError as error:
        assert (error.version, "\n" in str(error)) == (1, False)
        # Not in Python's words, whose versions read to other depths.
        wrong = r"(checkpoint .*) (?:cannot be read: .*|is nested too deep to be read)"
        return re.sub(wrong, r"\1 cannot be read", str(error))
    return "it can be read"


def test_contents_that_cannot_be_read_are_refused_with_the_reason(snapshot: SnapshotAssertion) -> None:
    store, lines = MemoryStore(), list[str]()
    for number, text in enumerate(RAW):
        lines.append(text[:100])
        for name, written in (("change", [text]), ("checkpoint", [PLAIN, text])):
            head = StoredSession(f"{name}-{number}", 0, b"", BEGAN, BEGAN)
            append(store, head, *written)
            session = open_session(store, head.session_id)
            lines.append(f"  plan of the {name}: {message_of(partial(session.select_latest, Plan))}")
            if name == "change":
                lines.append(f"  history: {message_of(session.history)}")
    assert "\n".join(lines) == snapshot


def test_a_checkpoint_that_is_nested_too_deep_says_so() -> None:
    store, head = MemoryStore(), StoredSession("run-7", 0, b"", BEGAN, BEGAN)
    append(store, head, PLAIN, "[" * 100_000)
    session = open_session(store)
    assert refused(lambda: session.select_latest(Plan)) == (
        "the checkpoint of version 1 is nested too deep to be read"
    )


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE sessions SET about = 'x' WHERE id = 'run-7'",
        "UPDATE sessions SET id = 'run-8' WHERE id = 'run-7'",
        "UPDATE sessions SET id = x'ff' WHERE id = 'run-7'",
        "UPDATE sessions SET version = 'x' WHERE id = 'run-7'",
        "UPDATE sessions SET changed_at = 5 WHERE id = 'run-7'",
        "UPDATE sessions SET checked = 5 WHERE id = 'run-7'",
    ],
)
def test_a_damaged_record_is_listed_and_hides_no_other(path: Path, damage: str) -> None:
    versions = {str(each.session_id): each.version for each in SqliteStore(path).sessions()}
    execute(path, damage)
    found = {each.damage is None: each for each in SqliteStore(path).sessions()}
    version = 0 if "version" in damage else versions["run-7"]
    assert (str(found[True].session_id), found[False].version, found[False].hash) == ("other", version, b"")
    with pytest.raises(TypeError, match="does not support item assignment"):
        found[True].tags["user"] = "bob"  # type: ignore[index]  # that is what is tried
    never = datetime(1970, 1, 1, tzinfo=UTC)
    assert (found[False].created_at, found[False].changed_at) == (never, never)
    name = str(found[False].session_id)
    assert found[False].damage == f"the record of session {name!r} is damaged"
    listed = CliRunner().invoke(app, ["sessions", str(path)])
    names = {line.split()[0] for line in listed.output.splitlines()[1:3]}
    assert (listed.exit_code, names) == (0, {"other", name})
    assert "cannot be read: the record of session" in listed.output


@pytest.mark.parametrize(
    "about", ["{}", "[]", "{", "5", "[" * 50_000, '{"created_at":"2026-01-01","tags":{},"forked_from":[]}']
)
def test_a_record_with_a_sound_hash_that_cannot_be_read_is_damaged(path: Path, about: str) -> None:
    store = SqliteStore(path)
    head = store.head("run-7")
    assert head is not None

    with closing(sqlite3.connect(path)) as connection:
        write_head(connection, (*head.row()[:4], about))
        connection.commit()
    with pytest.raises(StoreError, match="the record of session 'run-7' is damaged"):
        store.head("run-7")
    assert [each.damage is None for each in store.sessions()] == [
        each.session_id == "other" for each in store.sessions()
    ]


# Damage that hashes find


DAMAGED = (
    "version {} is damaged in the store; what is before it can be read with session.at(), and forked with "
    "session.fork(at={})"
)
CLAIM = "the claim 'lame' of the session is damaged: restore the file from a copy"
CHECKPOINT = "the checkpoint of version 11 is damaged: drop the checkpoints"
RECORD = "the record of session 'run-7' is missing: the file is damaged"
DAMAGE = [
    ("UPDATE changes SET text = replace(text, 'one', 'two') WHERE version = 5", DAMAGED.format(5, 4), 5),
    ("DELETE FROM changes WHERE version = 20", DAMAGED.format(20, 19), 20),
    ("UPDATE claims SET name = 'lame'", CLAIM, None),
    ("UPDATE checkpoints SET text = text || ' ' WHERE version = 11", CHECKPOINT, 11),
    ("DELETE FROM sessions WHERE id = 'run-7'", RECORD, None),
]


@pytest.mark.parametrize(("damage", "message", "version"), DAMAGE)
def test_verify_names_what_is_damaged(path: Path, damage: str, message: str, version: int | None) -> None:
    execute(path, damage)
    with pytest.raises(StoreError) as caught:
        SqliteStore(path).verify("run-7")
    assert (str(caught.value), caught.value.version) == (message, version)


def test_verify_looks_at_every_checkpoint() -> None:
    store = MemoryStore()
    head: StoredSession | None = StoredSession("run-7", 0, b"", BEGAN, BEGAN)
    for _ in range(17):
        append(store, head, PLAIN, '{"slices":{}}')
        head = store.head("run-7")
    kept = store._kept["run-7"].checkpoints
    for place, sound_one in enumerate(kept):
        kept[place] = attrs.evolve(sound_one, check=b"")
        assert refused(lambda: store.verify("run-7")) == (
            f"the checkpoint of version {place + 1} is damaged: drop the checkpoints"
        )
        kept[place] = sound_one
    assert store.verify("run-7") == 17


def test_where_the_newest_changes_are_gone_the_first_of_them_is_named(path: Path) -> None:
    execute(path, "DELETE FROM changes WHERE version > 10")
    session = open_session(SqliteStore(path))
    with pytest.raises(StoreError) as caught:
        session.select_latest(Plan)
    assert (str(caught.value), caught.value.version) == (DAMAGED.format(11, 10), 11)
    with pytest.raises(StoreError) as caught:
        session.history(15)
    assert (str(caught.value), caught.value.version) == (DAMAGED.format(15, 14), 15)
    assert refused(SqliteStore(path).watch("run-7", after=15).poll) == DAMAGED.format(16, 15)


def test_what_is_before_the_damage_can_be_read_and_forked(path: Path) -> None:
    states = states_of(open_session(SqliteStore(path)))
    execute(path, DAMAGE[0][0])
    session = open_session(SqliteStore(path))
    assert [state_of(session.at(version)) for version in range(5)] == states[:5]
    assert refused(lambda: state_of(session.at(5))) == DAMAGE[0][1]
    fork = session.fork(4, session_id="saved")
    fork.dispatch(MarkStep("S002", "done"))
    assert store_of(session).verify("saved") == 5


def test_a_record_that_disagrees_with_the_changes_is_damage(path: Path) -> None:
    session, store = open_session(SqliteStore(path)), SqliteStore(path)
    watch, head = store.watch("run-7", after=20, timeout=0), store.head("run-7")
    assert head is not None
    early = store.changes("run-7", 4, 4)[0]
    with closing(sqlite3.connect(path)) as connection, connection:
        write_head(connection, attrs.evolve(head, version=4, hash=early.hash).row()[:-1])
    for read in (session.refresh, watch.poll):
        with pytest.raises(StoreError) as caught:
            read()
        assert (str(caught.value), caught.value.version) == (DAMAGED.format(5, 4), 5)
    with closing(sqlite3.connect(path)) as connection, connection:
        write_head(connection, attrs.evolve(head, hash=early.hash).row()[:-1])
    again, store = open_session(SqliteStore(path)), SqliteStore(path)
    for work in (again.history, partial(store.verify, "run-7"), partial(again.select_all, ToolInvoked)):
        with pytest.raises(StoreError) as caught:
            work()
        assert (str(caught.value), caught.value.version) == (DAMAGED.format(20, 19), 20)


# Beside a writer


def beside(store: Store, work: Callable[[], object], *methods: str) -> Store:
    """The store, each of whose methods is called after some work of another process."""

    def after(method: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *arguments: (work(), method(*arguments))[1]

    for name in methods:
        setattr(store, name, after(getattr(store, name)))
    return store


def test_verify_beside_a_writer_finds_no_damage_and_true_damage_still(path: Path) -> None:
    other = open_session(SqliteStore(path))

    def work() -> None:
        other.dispatch(SetupPlan("another"))
        other.rewind(1)

    store = beside(SqliteStore(path), work, "changes", "checkpoints", "rewinds")
    for _ in range(3):
        before = other.version
        assert store.verify("run-7") == before
        assert other.version > before
    execute(path, "UPDATE changes SET text = text || ' ' WHERE version = 3")
    with pytest.raises(StoreError) as caught:
        store.verify("run-7")
    assert caught.value.version == 3


@pytest.mark.parametrize("kind", [MemoryPlace, SqlitePlace])
def test_what_is_read_in_one_block_is_of_one_moment(kind: type[Place], tmp_path: Path) -> None:
    place = kind(tmp_path)
    store, is_file = place.open(), kind is SqlitePlace
    session = open_session(store)
    session.dispatch(SETUP)
    with store.reading(), store.reading():
        first = store.head("run-7")
        if is_file:
            open_session(place.open()).dispatch(SetupPlan("another"))
        assert (store.head("run-7"), len(store.changes("run-7", 1, 9))) == (first, 1)
    assert session.refresh() == 1 + is_file
