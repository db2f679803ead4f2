"""A workflow that one machine begins and another finishes.

Its state is in a PostgreSQL database, its steps run on a Dask cluster. The first machine, here a process with
a home of its own, is killed while a step runs; the second resumes the run: no finished step runs again.

    planning store create postgresql://me@localhost/plans
    python two_machines.py postgresql://me@localhost/plans
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from distributed import LocalCluster

from planning import Plan, register_plan
from session import Session
from session.stores import PostgresStore

HERE = Path(__file__).parent


def main(url: str, folder: Path) -> None:
    """Run the report on two machines, one after the other."""
    os.environ |= {"CALLS": str(folder / "calls"), "PYTHONPATH": str(HERE)}  # the workers have them, too
    options = {"n_workers": 2, "dashboard_address": ":0"}
    with LocalCluster(**options) as cluster:  # type: ignore[no-untyped-call]  # of distributed
        first = machine(folder / "first", url, cluster.scheduler_address)
        done = wait_until_adding(url)
        while "total" not in (folder / "calls").read_text():  # the step has begun: its worker follows
            time.sleep(0.05)
        first.kill()
        first.wait()
        print(f"The first machine is killed: {done} of 4 steps are done.")
        second = machine(folder / "second", url, cluster.scheduler_address, "--resume")
        second.wait()
    print("Called:", ", ".join((folder / "calls").read_text().splitlines()))


def machine(home: Path, url: str, scheduler: str, *options: str) -> subprocess.Popen[bytes]:
    """Start ``planning run`` on a machine that has the workflow, the tools and two addresses."""
    home.mkdir()
    where = ["--executor", scheduler.replace("tcp:", "dask:"), "--store", url]
    words = ["planning", "run", str(HERE / "report.json"), "--tools", "tools:TOOLS", *where, *options]
    command = [sys.executable, "-m", *words]
    return subprocess.Popen(command, cwd=home, env={**os.environ, "HOME": str(home)})  # noqa: S603 - this interpreter, our words


def wait_until_adding(url: str) -> int:
    """Wait until the third step runs; returns how many steps are done."""
    store = PostgresStore(url)
    session = Session(session_id="report", store=store)
    register_plan(session)
    for _ in store.watch("report", after=0, timeout=60):
        session.refresh()
        plan = session.select_latest(Plan)
        if plan is not None and plan.steps[2].status == "in_progress":
            return plan.progress[0]
    raise SystemExit("the first machine does not begin")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        main(sys.argv[1], Path(folder))
