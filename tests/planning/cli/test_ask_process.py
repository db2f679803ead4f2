"""``planning ask`` as a process: signals, pipes, an output that cannot be written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from examples.shop import create_database

pytestmark = pytest.mark.slow

COMMAND = [sys.executable, "-m", "planning", "ask", "--db", "shop.db"]
COUNT = ["--sql-from", "count.sql"]
SLOW = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Run in a folder in which temporary files are made too."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    create_database("shop.db")
    (tmp_path / "slow.sql").write_text(SLOW)
    (tmp_path / "count.sql").write_text("SELECT count(*) AS customers FROM customers")
    return tmp_path


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_and_leaves_nothing_behind(number: signal.Signals, code: int, folder: Path) -> None:
    def heed_interrupts() -> None:  # where the tests run in the background, a shell has them ignored
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    running = subprocess.Popen(
        [*COMMAND, "--sql-from", "slow.sql", "--timeout", "60"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=heed_interrupts,  # noqa: PLW1509 - no other thread runs in this test
        start_new_session=True,
    )
    assert running.stderr is not None
    while not running.stderr.readline().startswith(b"S003 in_progress"):
        assert running.poll() is None
    running.send_signal(number)
    assert (*running.communicate(timeout=30), running.returncode) == (b"", b"", code)
    assert list((folder / "temporary").iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.killpg(running.pid, 0)  # no process of its group is left


def test_a_reader_that_goes_away_ends_it_quietly_and_leaves_nothing_behind(folder: Path) -> None:
    running = subprocess.Popen([*COMMAND, *COUNT], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert running.stdout is not None
    assert running.stderr is not None
    with running, running.stderr as errors:
        assert errors.readline().startswith(b"New plan: What does this SQL return? Added S001")
        running.stdout.close()
        assert errors.read().endswith(b"\n1 row\n")
    assert running.returncode == 1
    assert list((folder / "temporary").iterdir()) == []
