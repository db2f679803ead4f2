"""Runs in stored sessions whose process is killed.

Each process runs this file with a folder. A call of a tool is a line in FOLDER/calls, and each completed step
that the session has published a line in FOLDER/kept; both are on the disk before the process continues.
FOLDER/begun exists when a step runs.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from run_cases import MAYBE, called, capable, flow, plain_tool

from planning.workflow import WorkflowStep, run_workflow
from planning.workflow.run.records import StepChanged, StepRecord, WorkflowRun, register_workflow
from session import Session
from session.stores import SqliteStore

pytestmark = pytest.mark.slow

SESSION = "nightly"
WIDTH = 4
ONCE = ("m0", "m1", "m2")


def append(path: Path, line: str) -> None:
    """Write a line, and wait until the disk has it."""
    file = os.open(path, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
    os.write(file, f"{line}\n".encode())
    os.fsync(file)
    os.close(file)


def lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


# Rows of steps, each of which needs the row before; some must not be called twice.
STEPS = list[WorkflowStep]()
before: tuple[str, ...] = ()
for row, once in enumerate(ONCE):
    ids = tuple(f"s{row}{place}" for place in range(WIDTH))
    for step_id in ids:
        inputs = {"step_id": step_id, "used": [f"${{{each}.output}}" for each in before]}
        STEPS.append(called(step_id, *before, inputs=inputs))
    STEPS.append(called(once, *before, tool="send", inputs={"step_id": once}, on_failure="continue"))
    before = ids


def main(folder: Path) -> None:
    session = Session(session_id=SESSION, store=SqliteStore(folder / "plans.db"))

    def keep(event: StepChanged) -> None:
        if event.record.status == "completed":
            append(folder / "kept", event.record.step_id)

    def work(step_id: str, used: list[str] | None = None) -> str:
        append(folder / "calls", step_id)
        (folder / "begun").touch()
        time.sleep(0.01)
        return f"did {step_id} {len(used or [])}"

    session.bus.subscribe(StepChanged, keep)
    tools = capable(plain_tool("send", work, idempotent=False), work=work)
    run_workflow(flow(*STEPS, goal="Work through the night"), tools, session=session, max_parallel=WIDTH + 1)


USED = {step.step_id: len(step.inputs.get("used", ())) for step in STEPS}
OUTPUTS = {each: f"did {each} {used}" for each, used in USED.items()}
KILLS = int(os.environ.get("KILLS", "4"))


def started(folder: Path) -> subprocess.Popen[bytes]:
    """A process that has begun to run the workflow, or has ended."""
    (folder / "begun").unlink(missing_ok=True)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    process = subprocess.Popen([sys.executable, __file__, folder], env=env)
    while not (folder / "begun").exists() and process.poll() is None:
        time.sleep(0.001)
    return process


def test_a_run_that_is_killed_at_any_moment_goes_on_where_it_was(tmp_path: Path) -> None:
    chance, kills, rounds = random.Random(KILLS), 0, 0  # noqa: S311 - moments, no secrets
    while kills < KILLS:
        rounds += 1
        folder = tmp_path / str(rounds)
        folder.mkdir()
        is_completed, newest = False, dict[str, StepRecord]()
        while not is_completed:
            kept, called = set(lines(folder / "kept")), len(lines(folder / "calls"))
            process = started(folder)
            if kills < KILLS:
                time.sleep(chance.uniform(0, 0.15))
                kills += process.poll() is None
                process.kill()
            process.wait(60)
            assert not kept & set(lines(folder / "calls")[called:])
            with closing(SqliteStore(folder / "plans.db")) as store:
                assert store.verify(SESSION) > 0
                session = Session(session_id=SESSION, store=store)
                register_workflow(session)
                newest = {each.step_id: each for each in session.select_all(StepRecord)}
                assert kept <= {step_id for step_id, each in newest.items() if each.status == "completed"}
                (run,) = session.select_all(WorkflowRun)
                is_completed = run.status == "completed"
        failed = {step_id for step_id, each in newest.items() if each.error is not None}
        assert failed <= set(ONCE)
        assert {step_id: each.error or each.output for step_id, each in newest.items()} == {
            step_id: MAYBE if step_id in failed else output for step_id, output in OUTPUTS.items()
        }
        calls = Counter(lines(folder / "calls"))
        # None where the process was killed after the claim and before the call.
        assert all(calls[each] == 1 or (calls[each], each in failed) == (0, True) for each in ONCE)
    assert kills == KILLS


if __name__ == "__main__":
    main(Path(sys.argv[1]))
