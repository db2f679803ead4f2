"""The example of a worker that is killed, and of an orchestrator that watches its plan."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

BACKGROUND = Path(__file__).parents[2] / "examples" / "background"


@pytest.mark.slow
def test_a_worker_that_is_killed_resumes_and_no_step_is_done_twice(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(BACKGROUND / "orchestrator.py")],
        cwd=tmp_path,
        env={"TMPDIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    changes = [found for line in lines if (found := re.fullmatch(r" +(\d+)  (.*)", line))]
    versions = [int(found[1]) for found in changes]
    texts = " ".join(found[2] for found in changes)
    assert versions == list(range(1, len(versions) + 1))
    assert [texts.count(f"S00{number} done.") for number in (1, 2, 3, 4)] == [1, 1, 1, 1]
    assert [line for line in lines if line.startswith("The worker starts")] == ["The worker starts."] * 2
    assert texts.endswith("Plan completed.")
    assert lines[-1] == f"The plan is completed, after {versions[-1]} changes."
    assert list(tmp_path.iterdir()) == []


def test_the_programs_are_short_enough_to_copy() -> None:
    assert all(len(path.read_text().splitlines()) < 60 for path in BACKGROUND.glob("*.py"))
