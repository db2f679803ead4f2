"""Run the benchmarks: ``python benchmarks/run.py [PART ...] [--quick] [--write | --keep | --check]``.

This file needs nothing but the standard library. It makes the benchmarks' own environment, installs
the pinned peers and this project into it, and hands over to ``benchmarks.measure`` there: ours and the
peers run in one process, on one interpreter. Version 0.1.0 has an environment of its own beside it.
"""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "benchmarks" / "requirements.txt"
DATA = ROOT / "benchmarks" / "data.txt"
OLD_PINS = ROOT / "benchmarks" / "old.txt"
ENVIRONMENT, OLD_ENVIRONMENT = ROOT / ".venvs" / "bench", ROOT / ".venvs" / "bench-0.1.0"
OLD_COMMIT = "6ccebbd"  # version 0.1.0
QUIET = {"LANGSMITH_TRACING": "false", "LANGCHAIN_TRACING_V2": "false", "DO_NOT_TRACK": "1"}
"""What keeps a peer from sending or writing anything while it is timed."""


def main() -> int:
    """Prepare the environment and run the measurements in it; the exit code is theirs."""
    try:
        _prepare()
    except subprocess.CalledProcessError as error:
        print(f"The benchmarks' environment could not be made: {error}", file=sys.stderr)
        return 2
    # A path handed down would put the working tree before the installed package.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"} | QUIET
    command = [str(ENVIRONMENT / "bin" / "python"), "-m", "benchmarks.measure", *sys.argv[1:]]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def _prepare() -> None:
    """Install the peers when their pins changed, and the project every time: it is what changes."""
    pip = _made(ENVIRONMENT, REQUIREMENTS, DATA)
    # Not editable: what is measured is the package as it is shipped. The build backend is pinned among
    # the requirements, so nothing is fetched once the environment is filled.
    subprocess.run([*pip, "--no-build-isolation", str(ROOT)], check=True)
    archive = subprocess.run(
        ["git", "archive", OLD_COMMIT],  # noqa: S607 - the git on the path
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if archive.returncode:
        print(f"Without version 0.1.0: the commit {OLD_COMMIT} is not in this clone.", file=sys.stderr)
    elif not _is_made(OLD_ENVIRONMENT, OLD_PINS):
        with TemporaryDirectory() as folder, tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
            files.extractall(folder, filter="data")
            _made(OLD_ENVIRONMENT, OLD_PINS, project=folder)


def _is_made(environment: Path, *pins: Path) -> bool:
    stamp = environment / "pins.sha256"
    return stamp.is_file() and stamp.read_text(encoding="ascii") == _digest(*pins)


def _digest(*pins: Path) -> str:
    return hashlib.sha256(b"".join(each.read_bytes() for each in pins)).hexdigest()


def _made(environment: Path, pins: Path, *alone: Path, project: str | None = None) -> list[str]:
    """Make an environment of the newest supported Python, unless it is there: the command of its pip.

    Args:
        environment: Its folder.
        pins: What is installed with all that it needs.
        alone: What is installed without what it needs.
        project: The folder of a version of this project.
    """
    pip = [str(environment / "bin" / "python"), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    if not _is_made(environment, pins, *alone):
        print(f"Making {environment.relative_to(ROOT)} ...", file=sys.stderr)
        pythons = subprocess.run(
            [str(ROOT / "scripts" / "pythons")], capture_output=True, text=True, check=True
        )
        newest = pythons.stdout.splitlines()[0] if pythons.stdout else sys.executable
        subprocess.run([newest, "-m", "venv", "--clear", str(environment)], check=True)
        subprocess.run([*pip, "--requirement", str(pins)], check=True)
        for each in alone:
            subprocess.run([*pip, "--no-deps", "--requirement", str(each)], check=True)
        if project is not None:
            subprocess.run([*pip, "--no-build-isolation", project], check=True)
        (environment / "pins.sha256").write_text(_digest(pins, *alone), encoding="ascii")
    return pip


if __name__ == "__main__":
    sys.exit(main())
