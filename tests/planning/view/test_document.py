"""What a run did, as the data of the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from page_data import (
    call,
    data_of,
    in_memory,
    kept,
    of_memory,
    of_store,
    run_of,
    with_tools,
)
from syrupy.assertion import SnapshotAssertion

from planning.observe.stores import PastStore
from planning.observe.timeline import Recent
from planning.plan.commands import SetupPlan
from planning.suite.tools import register_plan
from planning.view.document import Document
from planning.view.sources import family_of
from session import Session, ToolInvoked
from session.stores import SqliteStore


def timeless(value: Any) -> Any:
    """The same data with the same times."""
    if isinstance(value, dict):
        fixed = {"at": 1.5, "ms": 0.5, "began": 1.5, "changed": 1.5}
        return {name: fixed.get(name, timeless(each)) for name, each in value.items()}
    return [timeless(each) for each in value] if isinstance(value, list) else value


def a_planning_session(path: Path) -> Session:
    session, toolbox = kept(path)
    first = {"title": "Reproduce it", "details": "On 3.12.\nSee the log."}
    call(toolbox, "setup_plan", objective="Fix the login", initial_steps=[first, "Mend it"])
    call(toolbox, "mark_step", step_id="S001", status="done", note="It was the cookie")
    call(toolbox, "mark_step", step_id="S009", status="done")
    call(toolbox, "read_plan")

    def search(query: str) -> str:
        return f"3 files match {query}"

    def deploy() -> None:
        raise ConnectionError("secret host")

    others = with_tools(session, search=search, deploy=deploy)
    others.call("search", {"query": "Set-Cookie"}, context={"call_id": "s1", "actor": "agent"})
    others.call("deploy", {})
    session.rewind(1, actor="ann")
    call(toolbox, "clear_plan")
    return session


def test_a_session_is_told_change_by_change(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    a_planning_session(tmp_path / "plans.db")
    assert json.dumps(timeless(of_store(tmp_path / "plans.db")), indent=1) == snapshot


def test_a_session_in_memory_is_told_as_one_in_a_store(tmp_path: Path) -> None:
    session = a_planning_session(tmp_path / "plans.db")
    assert timeless(of_memory(session)["changes"]) == timeless(of_store(tmp_path / "plans.db")["changes"])


def test_the_changes_of_a_run_are_of_their_own_kinds() -> None:
    session, _ = in_memory()
    run_of(session)
    assert {change.get("kind", "plan") for change in of_memory(session)["changes"]} == {"run", "failed"}


def test_texts_of_calls_are_bounded() -> None:
    session, _ = in_memory()
    with_tools(session, echo=lambda text: text).call("echo", {"text": "x" * 40_000})
    (change,) = of_memory(session)["changes"]
    (told,) = change["calls"]
    assert (len(told["arguments"]), told["arguments"][-2:]) == (2_000, "x…")
    assert (len(told["message"]), told["characters"]) == (2_000, 80_011)


def test_a_thousand_marks_are_less_than_300_kilobytes(tmp_path: Path) -> None:
    _, toolbox = kept(tmp_path / "plans.db")
    call(toolbox, "setup_plan", objective="Measure", initial_steps=[f"Look at file {n}" for n in range(50)])
    for number in range(999):
        status = ("in_progress", "done", "pending")[number // 50 % 3]
        call(toolbox, "mark_step", step_id=f"S{number % 50 + 1:03}", status=status)
    data = of_store(tmp_path / "plans.db")
    assert len(data["changes"]) == 1_000
    assert len(json.dumps(data, separators=(",", ":"))) < 250_000


def test_the_family_of_a_session_is_its_line_and_its_forks(tmp_path: Path) -> None:
    path = tmp_path / "plans.db"
    session, toolbox = kept(path)
    call(toolbox, "setup_plan", objective="Fix the login", initial_steps=["One", "Two"])
    call(toolbox, "mark_step", step_id="S001", status="done")
    session.fork(1, session_id="what-if")
    fork, tools = kept(path, "what-if")
    call(tools, "mark_step", step_id="S002", status="done")
    fork.fork(session_id="deeper")
    other, tools = kept(path, "alone")
    call(tools, "setup_plan", objective="Else", initial_steps=["One"])
    store = PastStore(path)
    heads = {str(head.session_id): head for head in store.sessions()}
    plan = {"state": "working", "total": 2, "title": "Fix the login"}
    family = [
        {"id": "deeper", "parent": "what-if", "done": 1, **plan},
        {"id": "nightly", "parent": None, "done": 1, **plan},
        {"id": "what-if", "parent": "nightly", "done": 1, **plan},
    ]
    for name in ("nightly", "what-if", "deeper"):
        assert sorted(family_of(store, heads[name]), key=lambda each: str(each["id"])) == family
    assert family_of(store, heads[str(other.session_id)]) == []


def test_the_family_of_a_session_has_those_that_work_for_it(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "plans.db")
    lead = Session(session_id="lead", store=store)
    worker = Session(session_id="worker", store=store, parent=lead)
    helper = Session(session_id="helper", store=store, parent=worker)
    for session in (lead, worker, helper, Session(session_id="alone", store=store)):
        register_plan(session)
        session.dispatch(SetupPlan(f"Do what {session.session_id} does"))
    worker.fork(session_id="what-if")
    store.close()

    heads = {str(head.session_id): head for head in SqliteStore(tmp_path / "plans.db").sessions()}
    assert {name: head.parent for name, head in heads.items()} == {
        "lead": None, "worker": "lead", "helper": "worker", "alone": None, "what-if": None,
    }  # fmt: skip
    store = PastStore(tmp_path / "plans.db")
    found = {each["id"]: each["parent"] for each in family_of(store, heads["helper"])}
    assert found == {"lead": None, "worker": "lead", "helper": "worker", "what-if": "worker"}
    assert family_of(store, heads["alone"]) == []


def test_half_characters_and_separators_are_told_as_they_are() -> None:
    session, _ = in_memory()
    session.publish(ToolInvoked("search", {}, "\ud800 \u2028 </script>"))
    document = Document(title="x", kind="session", source="x")
    document.read(Recent(session))
    assert data_of(document)["changes"][0]["calls"][0]["message"] == "\\ud800 \u2028 </script>"
