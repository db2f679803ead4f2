"""The example of a workflow on two machines, on a real server and a real cluster."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from postgres_server import PostgresServer

from session.stores import PostgresStore

MACHINES = Path(__file__).parents[2] / "examples" / "machines"


@pytest.mark.slow
@pytest.mark.postgres
def test_a_run_whose_machine_is_killed_is_finished_by_another(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    PostgresStore(postgres.url).create()
    done = subprocess.run(
        [sys.executable, str(MACHINES / "two_machines.py"), postgres.url],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "TMPDIR": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "The first machine is killed: 2 of 4 steps are done." in lines
    *fetched, first, second, sent = lines[-1].removeprefix("Called: ").split(", ")
    assert (sorted(fetched), first, second, sent) == (
        ["fetch north", "fetch south"],
        "total",
        "total",
        "send",
    )
    assert "sent 18" in lines
    store = PostgresStore(postgres.url)
    assert store.verify("report") == 10
    store.delete("report")
    store.close()
    assert postgres.url not in done.stdout + done.stderr
