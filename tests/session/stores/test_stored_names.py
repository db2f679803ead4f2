"""Classes that were moved since a store was written: refused at their first read, and found by written_as."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from store_places import refused

from session import Session, SessionError, Snapshot, append
from session.slices import type_name
from session.stores import SqliteStore

CLASSES = """
from dataclasses import dataclass
import attrs
from session import SessionEvent

@dataclass(frozen=True)
class Note:
    text: str

@dataclass(frozen=True)
class Put:
    note: Note

@attrs.frozen(kw_only=True)
class Heard(SessionEvent):
    number: int = 0
"""
MOVED = (
    "the store has {0}, whose class cannot be found, and not {1}: if the class was moved, call "
    "session.register_types({2}, written_as={0!r}) first; if that is another class, import its module first"
)
NOTE_MOVED = MOVED.format("old_place:Note", "new.place:Note", "Note")


def place(name: str, monkeypatch: pytest.MonkeyPatch, code: str = CLASSES) -> Any:
    module = ModuleType(name)
    monkeypatch.setitem(sys.modules, name, module)
    exec(code, vars(module))  # noqa: S102 - what importing it would do
    return module


def opened(path: Path, module: Any, *, grows: bool) -> Session:
    session = Session(session_id="run-7", store=SqliteStore(path))
    if grows:
        session.register_reducer(module.Note, append)
    else:
        session.register_reducer(module.Put, lambda _, put: (put.note,), module.Note)
    session.register_types(module.Heard)
    return session


def note(module: Any, text: str, *, grows: bool) -> Any:
    return module.Note(text) if grows else module.Put(module.Note(text))


def moved(
    path: Path, monkeypatch: pytest.MonkeyPatch, *, grows: bool = False, name: str = "old_place"
) -> tuple[Session, Any, str]:
    """A session whose classes were in another module when it was written; and a snapshot of then."""
    before = place(name, monkeypatch)
    session = opened(path, before, grows=grows)
    session.dispatch(note(before, "old", grows=grows))
    session.publish(before.Heard(number=1))
    session.rewind(1)
    snapshot = session.snapshot().to_json()
    assert session.store is not None
    session.store.close()
    monkeypatch.delitem(sys.modules, name)
    after = place("new.place", monkeypatch)
    return opened(path, after, grows=grows), after, snapshot


@pytest.mark.parametrize("grows", [False, True])
def test_a_slice_whose_class_has_moved_is_refused_and_takes_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch, grows: bool
) -> None:
    session, after, _ = moved(path, monkeypatch, grows=grows)
    for use in (
        lambda: session.select_all(after.Note),
        lambda: session.select_latest(after.Note),
        lambda: session.at(2).select_all(after.Note),
        lambda: session.dispatch(note(after, "new", grows=grows)),
    ):
        assert refused(use) == NOTE_MOVED
    assert refused(lambda: session.select_all(after.Heard)) == (
        MOVED.format("old_place:Heard", "new.place:Heard", "Heard")
    )
    assert session.version == 3


@pytest.mark.parametrize("grows", [False, True])
def test_a_class_that_has_moved_keeps_its_written_name(
    path: Path, monkeypatch: pytest.MonkeyPatch, grows: bool
) -> None:
    session, after, snapshot = moved(path, monkeypatch, grows=grows)
    for kind in (after.Note, after.Put, after.Heard):
        session.register_types(kind, written_as=f"old_place:{kind.__name__}")
    session.dispatch(note(after, "new", grows=grows))
    session.publish(after.Heard(number=2))
    right = [after.Note("old"), after.Note("new")] if grows else [after.Note("new")]
    for each in (session, opened(path, after, grows=grows)):
        assert list(each.select_all(after.Note)) == right
        assert [heard.number for heard in each.select_all(after.Heard)] == [1, 2]
        assert [change.version for change in each.history()] == [1, 2, 3, 4, 5]
        assert each.at(1).select_all(after.Note) == (after.Note("old"),)
    assert Snapshot.from_json(snapshot).select_all(after.Note) == (after.Note("old"),)
    assert type_name(after.Note) == "old_place:Note"


def test_a_class_of_the_same_name_elsewhere_is_another(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session, after, _ = moved(path, monkeypatch)
    place("old_place", monkeypatch)
    assert session.select_all(after.Note) == ()
    session.dispatch(after.Put(after.Note("new")))
    assert session.select_all(after.Note) == (after.Note("new"),)


@pytest.mark.parametrize(
    ("name", "files", "is_found"),
    [
        ("old_place", {"old_place.py": CLASSES}, True),
        ("old_place", {"old_place.py": "Other = 1"}, False),
        ("old_place", {}, False),
        ("old_package.old_place", {"old_package/__init__.py": "", "old_package/old_place.py": CLASSES}, True),
        # As planning has it:
        (
            "old_package.old_place",
            {"old_package/__init__.py": 'MOVED = {"old_package.old_place": "new"}'},
            True,
        ),
        ("old_package.old_place", {"old_package/__init__.py": ""}, False),
    ],
)
def test_a_module_that_is_not_loaded_is_looked_for_and_never_imported(
    path: Path, monkeypatch: pytest.MonkeyPatch, name: str, files: dict[str, str], is_found: bool
) -> None:
    session, after, _ = moved(path, monkeypatch, name=name)
    for file, source in files.items():
        (path.parent / file).parent.mkdir(exist_ok=True)
        (path.parent / file).write_text(f"{source}\nraise RuntimeError")
    monkeypatch.syspath_prepend(path.parent)
    if is_found:
        assert session.select_all(after.Note) == ()
    else:
        assert refused(lambda: session.select_all(after.Note)) == MOVED.format(
            f"{name}:Note", "new.place:Note", "Note"
        )
    assert not {"old_place", "old_package"} & sys.modules.keys()


@pytest.mark.parametrize("name", ["Note", "old:", ":Note", "a b:Note", "a:b:Note", ""])
def test_what_is_not_a_written_name_is_refused(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = place("somewhere", monkeypatch).Note
    with pytest.raises(ValueError, match="written_as") as refusal:
        Session().register_types(kind, written_as=name)
    assert str(refusal.value) == f"written_as must be module:QualifiedName, got {name!r}"


def test_a_class_has_one_written_name(monkeypatch: pytest.MonkeyPatch) -> None:
    kind, session = place("somewhere", monkeypatch).Note, Session()
    for _ in range(2):
        session.register_types(kind, written_as="old_place:Note")
    with pytest.raises(ValueError, match="one name") as refusal:
        session.register_types(kind, written_as="older:Note")
    assert str(refusal.value) == "Note is written as old_place:Note: a class has one name"
    with pytest.raises(ValueError, match="too many"):
        session.register_types(kind, SessionError, written_as="old_place:Note")
