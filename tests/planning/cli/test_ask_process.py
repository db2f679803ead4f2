"""``planning ask`` as a process: signals, pipes, an output that cannot be written."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from cli_runs import started

from examples.shop import create_database

pytestmark = pytest.mark.slow

ASK = ["ask", "--db", "shop.db", "--sql-from"]
SLOW = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c"


@pytest.fixture(autouse=True)
def shop(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A shop in the folder, in which temporary files are made too."""
    (folder / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(folder / "temporary"))
    create_database("shop.db")
    (folder / "slow.sql").write_text(SLOW)
    (folder / "count.sql").write_text("SELECT count(*) AS customers FROM customers")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_and_leaves_nothing_behind(number: signal.Signals, code: int, folder: Path) -> None:
    running = started(*ASK, "slow.sql", "--timeout", "60", start_new_session=True)
    assert running.stderr is not None
    while not running.stderr.readline().startswith("S003 in_progress"):
        assert running.poll() is None
    running.send_signal(number)
    assert (*running.communicate(timeout=30), running.returncode) == ("", "", code)
    assert list((folder / "temporary").iterdir()) == []
    with pytest.raises(ProcessLookupError):
        os.killpg(running.pid, 0)  # no process of its group is left


def test_a_reader_that_goes_away_ends_it_quietly_and_leaves_nothing_behind(folder: Path) -> None:
    running = started(*ASK, "count.sql")
    assert running.stdout is not None
    assert running.stderr is not None
    with running, running.stderr as errors:
        assert errors.readline().startswith("New plan: What does this SQL return? Added S001")
        running.stdout.close()
        assert errors.read().endswith("\n1 row\n")
    assert running.returncode == 1
    assert list((folder / "temporary").iterdir()) == []
