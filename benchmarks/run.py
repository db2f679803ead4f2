"""Run the benchmarks: ``python benchmarks/run.py [--quick] [--json PATH] [--write] [--only PART ...]``.

This file needs nothing but the standard library. It makes the benchmarks' own environment, installs
the pinned peers and this project into it, and hands over to ``benchmarks.measure`` there: ours and the
peers run in one process, on one interpreter.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "benchmarks" / "requirements.txt"
DATA = ROOT / "benchmarks" / "data.txt"
ENVIRONMENT = ROOT / ".venvs" / "bench"
STAMP = ENVIRONMENT / "requirements.sha256"
VERSION = (3, 13)

NO_INTERPRETER = 2
INSTALL_FAILED = 3


def main() -> int:
    """Prepare the environment and run the measurements in it; the exit code is theirs."""
    python = _environment_python()
    if not python.exists():
        interpreter = _find_interpreter()
        if interpreter is None:
            wanted = ".".join(map(str, VERSION))
            print(
                f"The benchmarks run on Python {wanted}, and none was found: put python{wanted} on PATH "
                "or install it with pyenv.",
                file=sys.stderr,
            )
            return NO_INTERPRETER
        print(f"Making {ENVIRONMENT.relative_to(ROOT)} ...", file=sys.stderr)
        subprocess.run([interpreter, "-m", "venv", "--clear", str(ENVIRONMENT)], check=True)
    try:
        _install(python)
    except subprocess.CalledProcessError as error:
        print(
            f"The benchmarks' environment could not be filled (pip ended with {error.returncode}).",
            file=sys.stderr,
        )
        return INSTALL_FAILED
    measured = subprocess.run(
        [str(python), "-m", "benchmarks.measure", *sys.argv[1:]], cwd=ROOT, env=_quiet(), check=False
    )
    return measured.returncode


def _install(python: Path) -> None:
    """Install the peers when their pins changed, and the project every time: it is what changes."""
    pip = [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    pins = hashlib.sha256(REQUIREMENTS.read_bytes() + DATA.read_bytes()).hexdigest()
    if not STAMP.is_file() or STAMP.read_text(encoding="ascii").strip() != pins:
        print("Installing the peers ...", file=sys.stderr)
        subprocess.run([*pip, "--requirement", str(REQUIREMENTS)], check=True)
        subprocess.run([*pip, "--no-deps", "--requirement", str(DATA)], check=True)
        STAMP.write_text(pins, encoding="ascii")
    # Not editable: what is measured is the package as it is shipped. The build backend is pinned among
    # the requirements, so nothing is fetched once the environment is filled.
    subprocess.run([*pip, "--no-build-isolation", str(ROOT)], check=True)


def _environment_python() -> Path:
    if sys.platform == "win32":
        return ENVIRONMENT / "Scripts" / "python.exe"
    return ENVIRONMENT / "bin" / "python"


def _find_interpreter() -> str | None:
    """The first candidate that really is the wanted Python: a version manager's shim may only look it."""
    name = "python" + ".".join(map(str, VERSION))
    candidates = [sys.executable, shutil.which(name)]
    versions = Path.home() / ".pyenv" / "versions"
    installed = sorted(versions.glob(".".join(map(str, VERSION)) + "*/bin/python"))
    for candidate in [*candidates, *map(str, installed)]:
        if candidate and _is_wanted(candidate):
            return candidate
    return None


def _is_wanted(candidate: str) -> bool:
    asking = f"import sys; sys.exit(sys.version_info[:2] != {VERSION!r})"
    try:
        asked = subprocess.run([candidate, "-c", asking], check=False, capture_output=True, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return asked.returncode == 0


def _quiet() -> dict[str, str]:
    """The environment without what would make a peer send or write anything while it is timed."""
    switched_off = {"LANGSMITH_TRACING": "false", "LANGCHAIN_TRACING_V2": "false", "DO_NOT_TRACK": "1"}
    # A path handed down would put the working tree before the installed package.
    return {**{key: value for key, value in os.environ.items() if key != "PYTHONPATH"}, **switched_off}


if __name__ == "__main__":
    sys.exit(main())
