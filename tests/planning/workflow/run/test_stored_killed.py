"""Runs in stored sessions whose process is killed, and several processes that run one workflow."""

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
import stored_worker
from run_cases import MAYBE
from stored_worker import ONCE, SESSION, lines

from planning.workflow.run.records import StepRecord, WorkflowRun, register_workflow
from session import Session
from session.stores import SqliteStore

pytestmark = pytest.mark.slow

USED = {step.step_id: len(step.inputs.get("used", ())) for step in stored_worker.workflow().steps}
OUTPUTS = {each: f"{'sent' if each in ONCE else 'did'} {each} {used}" for each, used in USED.items()}
KILLS = int(os.environ.get("KILLS", "4"))


def started(folder: Path) -> subprocess.Popen[bytes]:
    """A process that has begun to run the workflow, or has ended."""
    (folder / "begun").unlink(missing_ok=True)
    process = subprocess.Popen([sys.executable, stored_worker.__file__, folder])
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
