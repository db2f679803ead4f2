"""The sessions of a store as the page lists them: read once, as far as a moment suffices."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from page_data import call, kept, run_of, serving
from test_server import Client

from planning.view import feeds, sources
from planning.view.sources import StoreSource
from session import Session
from session.stores import SqliteStore


def asked_of(source: StoreSource) -> list[str]:
    """The statements that a source sends to its store from now on."""
    statements = list[str]()
    store = source._store
    assert isinstance(store, SqliteStore)
    store._reader.connected().set_trace_callback(statements.append)
    return statements


def test_each_session_is_read_once_until_it_changes(tmp_path: Path) -> None:
    asked = []
    for count in (4, 40):
        path = tmp_path / f"{count}.db"
        for number in range(count):
            _, toolbox = kept(path, f"s{number:02}")
            call(toolbox, "setup_plan", objective=f"Plan {number}", initial_steps=["One"])
        source = StoreSource(path, None)
        statements = asked_of(source)
        found = source.listed()
        assert [each["objective"] for each in found["sessions"]] == [
            f"Plan {number}" for number in range(count - 1, -1, -1)
        ]
        first = len(statements)
        assert source.listed() == found
        again = len(statements) - first
        call(kept(path, "s01")[1], "mark_step", step_id="S001", status="done")
        changed = source.listed()["sessions"]
        assert [(each["id"], each["state"]) for each in changed[:2]] == [
            ("s01", "finished"),
            (f"s{count - 1:02}", "working"),
        ]
        asked.append((first / count, again))
    assert asked[0][0] == pytest.approx(asked[1][0], abs=2)
    assert asked[0][1] == asked[1][1] <= 4


def test_a_long_list_is_there_at_once_and_read_bit_by_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "plans.db"
    for number in range(3):
        call(kept(path, f"s{number}")[1], "setup_plan", objective="Go on", initial_steps=["One"])
    monkeypatch.setattr(sources, "_MOMENT", -1)
    source = StoreSource(path, None)
    seen = []
    for _ in range(4):
        found = source.listed()
        seen.append((found["reading"], [each.get("state", "?") for each in found["sessions"]]))
    assert seen == [
        (2, ["working", "?", "?"]),
        (1, ["working", "working", "?"]),
        (0, ["working", "working", "working"]),
        (0, ["working", "working", "working"]),
    ]
    with serving(StoreSource(path, None)) as link:
        stream = Client(link).events("/events", "list")
        reading = next(stream)[1]["reading"]
        while reading:
            reading = next(stream)[1]["reading"]


def test_a_session_that_is_deleted_leaves_the_list(tmp_path: Path) -> None:
    path = tmp_path / "plans.db"
    for name in ("one", "two"):
        call(kept(path, name)[1], "setup_plan", objective="Go on", initial_steps=["One"])
    with serving(StoreSource(path, None)) as link:
        stream = Client(link).events("/events", "list")
        assert next(stream)[1]["gone"] == []
        SqliteStore(path).delete("one")
        assert next(stream)[1] == {"more": False, "problem": None, "reading": 0, "gone": ["one"]}


SLEEPING = """
import sys, time
sys.path[:0] = sys.argv[2:]
from page_data import kept
from planning.workflow import Capabilities, Workflow, WorkflowStep, run_workflow

def sleep():
    print("asleep", flush=True)
    time.sleep(600)

session, _ = kept(sys.argv[1], "run")
step = WorkflowStep(step_id="nap", description="Take a nap", type="tool", name="sleep")
run_workflow(Workflow(goal="Rest", steps=(step,)), Capabilities(tools={"sleep": sleep}), session=session)
"""


@pytest.mark.slow
def test_a_run_whose_process_is_killed_is_stopped_on_the_page_though_nothing_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "_LOOKED", 0.1)
    monkeypatch.setattr(feeds, "_LIST_POLLED", 0.1)
    path = tmp_path / "plans.db"
    arguments = [sys.executable, "-c", SLEEPING, str(path), str(Path(__file__).parent)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"asleep\n"
        run_of(Session(session_id="other", store=SqliteStore(path)))
        with serving(StoreSource(path, None)) as link:
            client = Client(link)
            streams = [client.events("/events/run?after=0", "health"), client.events("/events", "sessions")]
            first = [next(stream)[1] for stream in streams]
            assert {name: first[0][name] for name in ("state", "step")} == {"state": "working", "step": "nap"}
            assert {each["id"]: each["state"] for each in first[1]} == {"other": "finished", "run": "working"}
            running.kill()
            assert next(streams[0])[1] == {**first[0], "state": "stopped", "cut": True}
            assert next(streams[1])[1] == [
                {**each, "state": "stopped"} for each in first[1] if each["id"] == "run"
            ]
