"""A process with an open store may fork at any moment: what was acknowledged on either side is kept."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import forking
import pytest
from postgres_server import place_of

ROUNDS, WRITES = (os.environ["FORKS"], "50") if "FORKS" in os.environ else ("1", "8")  # `make soak` has many


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def test_what_parent_child_and_other_processes_write_is_in_the_store(kind: str, tmp_path: Path) -> None:
    file, place = str(tmp_path / "go"), place_of(kind, tmp_path)
    program = [sys.executable, "-W", "ignore", forking.__file__, ROUNDS, WRITES, file, *place]
    done = subprocess.run(program, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
