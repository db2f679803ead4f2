"""Stores to run the command on."""

from __future__ import annotations

import re
from pathlib import Path

import attrs
from page_data import call
from run_folders import plan, step, thought

from planning import PlanningToolsSection, Toolbox
from planning.workflow import Capabilities, run_workflow, validate_workflow
from session import Session, append
from session.stores import SqliteStore, Store

TIME = re.compile(r"\d{4}-\d\d-\d\d([ T])\d\d:\d\d:\d\d(\.\d+\+00:00)?")


@attrs.frozen
class Mine:
    """What another program keeps in a session."""

    text: str


def timeless(text: str) -> str:
    """A text with the same moment for every time in it, and the same id for every random one."""
    text = TIME.sub(lambda found: f"2026-01-02{found[1]}03:04:05{'.678+00:00' if found[2] else ''}", text)
    text = re.sub(r'"elapsed": [-e.\d]+', '"elapsed": 0.1', text)
    text = re.sub(r'"seconds": [-e.\d]+', '"seconds": 0.1', text)
    text = re.sub(r"\b\d+\.\d s\b", "0.1 s", text)
    return re.sub(r"\w{8}-\w{4}-\w{4}-\w{4}-\w{12}", "00000000-0000-0000-0000-000000000000", text)


def a_store(path: Path) -> None:
    """A store with a plan, a fork of it, a workflow run, and a session of a program that is not here."""
    store = SqliteStore(path)
    session = Session(session_id="nightly", store=store, tags={"user": "ann"})
    toolbox = Toolbox(PlanningToolsSection(session=session).tools(), session=session)
    call(toolbox, "setup_plan", "c1", objective="Fix the login", initial_steps=["Find it", "Mend it"])
    call(toolbox, "mark_step", "c2", step_id="S001", status="done", note="It was the cookie")
    call(toolbox, "mark_step", "c3", step_id="S009", status="done")
    call(toolbox, "read_plan", "c4")
    session.rewind(1, actor="ann")
    call(toolbox, "update_step", "c5", step_id="S002", title="Mend the cookie")
    session.fork(2, session_id="what-if")
    text = plan(step("find", description="Find it"), {**thought("say", "find"), "description": "Say it"})
    capabilities = Capabilities(tools={"find": lambda: "found"})
    workflow = validate_workflow(text, capabilities).workflow
    run_workflow(workflow, capabilities, session=Session(session_id="run", store=store))
    other = Session(session_id="other", store=store)
    other.register_reducer(Mine, append)
    other.dispatch(Mine("x"))
    store.close()


def all_of(store: Store) -> dict[str, object]:
    """What a store has of each session."""
    found = dict[str, object]()
    for head in store.sessions():
        name = head.session_id
        rest = (list(store.changes(name, 1, 99)), list(store.checkpoints(name, 99, 99)), store.claims(name))
        found[str(name)] = (head, *rest, store.verify(name))
    store.close()
    return found
