"""Run the benchmarks: ``python benchmarks/run.py [PART ...] [--quick] [--write]``.

This file needs nothing but the standard library. It makes the benchmarks' own environment, installs
the pinned peers and this project into it, and hands over to ``benchmarks.measure`` there: ours and the
peers run in one process, on one interpreter.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "benchmarks" / "requirements.txt"
DATA = ROOT / "benchmarks" / "data.txt"
ENVIRONMENT = ROOT / ".venvs" / "bench"
PYTHON = ENVIRONMENT / "bin" / "python"
STAMP = ENVIRONMENT / "requirements.sha256"
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
    command = [str(PYTHON), "-m", "benchmarks.measure", *sys.argv[1:]]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def _prepare() -> None:
    """Install the peers when their pins changed, and the project every time: it is what changes."""
    pip = [str(PYTHON), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    pins = hashlib.sha256(REQUIREMENTS.read_bytes() + DATA.read_bytes()).hexdigest()
    if not PYTHON.exists() or not STAMP.is_file() or STAMP.read_text(encoding="ascii").strip() != pins:
        print(f"Making {ENVIRONMENT.relative_to(ROOT)} ...", file=sys.stderr)
        pythons = subprocess.run(
            [str(ROOT / "scripts" / "pythons")], capture_output=True, text=True, check=True
        )
        newest = pythons.stdout.splitlines()[0] if pythons.stdout else sys.executable
        subprocess.run([newest, "-m", "venv", "--clear", str(ENVIRONMENT)], check=True)
        subprocess.run([*pip, "--requirement", str(REQUIREMENTS)], check=True)
        subprocess.run([*pip, "--no-deps", "--requirement", str(DATA)], check=True)
        STAMP.write_text(pins, encoding="ascii")
    # Not editable: what is measured is the package as it is shipped. The build backend is pinned among
    # the requirements, so nothing is fetched once the environment is filled.
    subprocess.run([*pip, "--no-build-isolation", str(ROOT)], check=True)


if __name__ == "__main__":
    sys.exit(main())
