"""Slices of a stored session that are not read, cannot be read, or have no past."""

from __future__ import annotations

from pathlib import Path

import pytest
from store_cases import SETUP, Note, Noted, Opener, opened, openers

from planning import Plan
from planning.commands import MarkStep
from planning.suite import register_plan
from session import (
    Session,
    StoreError,
    append,
    replace_latest,
    stored,
)
from session.stores import SqliteStore

NAMES = ["memory", "sqlite", "without a lock"]


@pytest.fixture(params=NAMES)
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Opener:
    return openers(tmp_path)[request.param]


def test_a_slice_that_nobody_reads_here_is_unharmed(opener: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "CHECKPOINT", 2)
    with opened(opener) as (session, toolbox):
        session.register_reducer(Note, append)
        for number in range(7):
            session.dispatch(Note(f"n{number}", ("a", "b")))
            toolbox.invoke("planning_setup_plan", SETUP)
    with opened(opener) as (session, toolbox):  # knows nothing of notes
        for _ in range(9):
            toolbox.call("planning_add_step", {"steps": [{"title": "More"}]})
        session.rewind(20)
        with pytest.raises(StoreError, match="is not known here"):
            session.snapshot()
        toolbox.call("planning_add_step", {"steps": [{"title": "More"}]})
    with opened(opener) as (session, _):
        session.register_reducer(Note, append)
        assert session.select_all(Note) == tuple(Note(f"n{number}", ("a", "b")) for number in range(7))
        assert session.at(3).select_all(Note) == (Note("n0", ("a", "b")), Note("n1", ("a", "b")))


def test_without_its_reducers_a_slice_is_an_error_only_when_it_is_selected(opener: Opener) -> None:
    with opened(opener) as (session, toolbox):
        session.register_reducer(Note, append)
        session.dispatch(Note("x"))
        toolbox.invoke("planning_setup_plan", SETUP)
    store = opener()
    session = Session(session_id="run-7", store=store)
    with pytest.raises(StoreError) as caught:
        session.select_latest(Plan)
    assert str(caught.value) == (
        "version 2 changed Plan by a reducer that is not registered here: register it, as "
        "PlanningToolsSection does for a plan"
    )
    register_plan(session)
    assert session.select_latest(Plan) is not None
    with pytest.raises(StoreError):
        session.select_all(Note)
    session.dispatch(MarkStep("S001", "done"))
    assert session.version == 3


def test_reducers_that_changed_are_never_used_in_silence(
    opener: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "CHECKPOINT", 2)
    with opened(opener) as (session, _):
        session.register_reducer(Note, append)
        for number in range(7):
            session.dispatch(Note(f"n{number}" * 20))
    with opened(opener) as (session, _):
        session.register_reducer(Note, replace_latest)
        with pytest.raises(StoreError) as caught:
            session.select_all(Note)
        assert str(caught.value).startswith("the reducers of Note have changed since version ")
        assert session.store is not None
        session.store.drop_checkpoints("run-7")
        assert session.select_all(Note) == (Note("n6" * 20),)


def test_slices_without_a_past_are_in_no_history_snapshot_or_store(opener: Opener) -> None:
    with opened(opener) as (session, _):
        session.register_reducer(Note, append, is_private=True)
        session.dispatch(SETUP)
        session.dispatch(Note("secret"))
        with session.transaction() as transaction:
            transaction.dispatch(Note("secret too"))
            transaction.dispatch(MarkStep("S001", "done"))
        kept = (Note("secret"), Note("secret too"))
        assert session.select_all(Note) == kept
        assert session.version == 2
        assert session.at(1).select_all(Note) == kept
        session.rewind(1)
        session.reset()
        assert session.select_all(Note) == kept
        assert [len(change.events) for change in session.history()] == [1, 1, 1, 1]
        assert Note not in session.snapshot().slices
        assert session.store is not None
        assert "secret" not in repr([each.text for each in session.store.changes("run-7", 1, 9)])
    with opened(opener) as (session, _):
        assert session.select_all(Note) == ()


def test_a_value_without_a_json_form_refuses_the_transaction_by_name(opener: Opener) -> None:
    with opened(opener) as (session, _):
        session.dispatch(SETUP)
        for more, message in (
            (object(), "a object has no JSON form"),
            (float("nan"), "nan has no JSON form"),
            (b"x", "a bytes has no JSON form"),
        ):
            with pytest.raises(StoreError) as caught:
                session.publish(Noted(Note("x"), more))
            assert str(caught.value).startswith(f"Noted.more: {message}")
        assert (session.version, session.select_all(Noted)) == (1, ())
    with opened(opener) as (session, _):
        assert session.version == 1


def test_upcasters_take_old_formats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "plans.db"
    session = Session(session_id="a", store=SqliteStore(path))
    session.register_reducer(Note, append)
    session.dispatch(Note("old"))
    monkeypatch.setattr(Note, "RECORD_FORMAT", 2, raising=False)
    plain = Session(session_id="a", store=SqliteStore(path))
    plain.register_reducer(Note, append)
    name = f"{Note.__module__}:Note"
    with pytest.raises(StoreError) as caught:
        plain.select_all(Note)
    assert str(caught.value) == (
        f"version 1: {name} is stored in format 1; known here is 2: give the store an upcaster for it"
    )
    upcasters = {f"{name}@1": lambda fields: {**fields, "tags": ["upcast"]}}
    again = Session(session_id="a", store=SqliteStore(path, upcasters))
    again.register_reducer(Note, append)
    assert again.select_all(Note) == (Note("old", ("upcast",)),)
    again.dispatch(Note("new"))
    monkeypatch.setattr(Note, "RECORD_FORMAT", 1)
    older = Session(session_id="a", store=SqliteStore(path))
    older.register_reducer(Note, append)
    with pytest.raises(StoreError) as newer:
        older.select_all(Note)
    assert str(newer.value) == (
        f"version 2: {name} is stored in format 2; known here is 1: use a newer release"
    )
