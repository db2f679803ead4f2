"""Build the sdist and the wheel into ``dist/``, and try each as a user gets it: ``make release``.

usage: scripts/release.py PYTHON              build and try both
       scripts/release.py --check FILE...     only look into archives that are there

Refused are: metadata that a registry would refuse, an archive that is too large, a file that names a machine, a
version without its heading in CHANGELOG.md, and a tutorial that does not run from the archive, in an empty folder.
"""

from __future__ import annotations

import getpass
import os
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venvs" / "release"
TUTORIAL = ROOT / "docs" / "tutorial.md"
MOST = {".whl": 1_000_000, ".gz": 3_000_000}
"""The most bytes of an archive: an agent's image installs the wheel, the sdist has tests and pages too."""
PUBLIC = {"pypi.org", "files.pythonhosted.org", "test.pypi.org"}
"""The registries that a file may name."""
HOMES = re.compile(
    rb"/home/[A-Za-z_][\w.-]*/|/Users/[A-Za-z_][\w.-]*/|/root/|(?<![A-Za-z])[A-Z]:\\+Users\\+[\w.-]+|/\.pyenv/|/site-packages/"
)
"""A path in the home of a user, or of an installation."""
REGISTRY = re.compile(
    rb"https?://([\w.:@%-]+)/(?:[\w.-]+/)*simple\b|(?:--|^)(?:extra-)?index-url[ =]+\S*//([\w.:@%-]+)",
    re.MULTILINE,
)
"""The address of a package index, with its host."""
COMMON = {
    "root",
    "user",
    "admin",
    "runner",
    "ubuntu",
    "build",
    "builder",
    "app",
    "test",
    "localhost",
    "vm",
    "debian",
}
"""Names of users and machines that are words, or those of everybody."""


def files_of(archive: Path) -> Iterator[tuple[str, bytes]]:
    """Each file of a wheel or an sdist, with its name in it."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            yield from ((name, wheel.read(name)) for name in wheel.namelist())
    else:
        with tarfile.open(archive) as sdist:
            for member in sdist:
                yield member.name, f"{member.uname} {member.gname} ".encode() if member.isfile() else b""
                if (file := sdist.extractfile(member)) is not None:
                    yield member.name, file.read()


def own_names() -> set[bytes]:
    """What this machine is called: its user, host, home, checkout, and the hosts of its package index."""
    index = [value for name, value in os.environ.items() if re.fullmatch(r"(PIP|UV)_.*(INDEX|LINKS).*", name)]
    hosts = [urlsplit(word).hostname or "" for value in index for word in value.split()]
    names = [getpass.getuser(), socket.gethostname(), *(host for host in hosts if host not in PUBLIC)]
    return {name.encode() for name in names if len(name) > 3 and name not in COMMON} | {
        f"{path}/".encode() for path in (Path.home(), ROOT) if len(path.parts) > 1
    }


def problems_of(archive: Path) -> Iterator[str]:
    """What is wrong with an archive, a line each."""
    size, most = archive.stat().st_size, MOST[archive.suffix]
    if size > most:
        yield f"{archive.name} has {size:,} bytes, more than {most:,}: leave files out, or raise the bound with a reason"
    own = re.compile(b"|".join(rb"(?<!\w)" + re.escape(name) for name in sorted(own_names())) or b"(?!)")
    for name, data in files_of(archive):
        found = [match[0] for pattern in (HOMES, own) for match in pattern.finditer(data)]
        for match in REGISTRY.finditer(data):
            host = (match[1] or match[2]).rpartition(b"@")[2].partition(b":")[0].decode()
            found += [match[0]] if host not in PUBLIC else []
        for text in dict.fromkeys(found):
            yield f"{archive.name}: {name} names a machine: {text.decode(errors='replace')}"


def run(*command: str | Path, folder: Path = ROOT) -> None:
    """Run a command; exit with its output if it fails."""
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    subprocess.run([*map(str, command)], check=True, cwd=folder, env=clean)  # noqa: S603 - of this script


def try_archive(python: str, archive: Path) -> None:
    """Install an archive in a fresh environment, and run the tutorial in an empty folder."""
    (extras,) = re.findall(r"pip install '[^[]*(\[[\w,-]+\])'", TUTORIAL.read_text(encoding="utf-8"))
    with TemporaryDirectory() as folder:
        venv, work = Path(folder, "venv"), Path(folder, "work")
        work.mkdir()
        run(python, "-m", "venv", venv)
        run(venv / "bin" / "python", "-m", "pip", "install", "--quiet", f"{archive}{extras}")
        run(venv / "bin" / "python", ROOT / "scripts" / "run_page.py", TUTORIAL, folder=work)


def main(python: str) -> int:
    """Build, check and try."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(rf"^## {re.escape(version)}\b", changelog, re.MULTILINE):
        print(f"release: CHANGELOG.md has no heading '## {version}'", file=sys.stderr)
        return 1
    shutil.rmtree(ROOT / "dist", ignore_errors=True)
    if not VENV.exists():
        run(python, "-m", "venv", VENV)
    run(VENV / "bin" / "python", "-m", "pip", "install", "--quiet", "build", "twine")
    run(
        VENV / "bin" / "python", "-m", "build", "--outdir", ROOT / "dist", ROOT
    )  # the wheel is built from the sdist
    archives = sorted((ROOT / "dist").glob("session_planning-*"))
    run(VENV / "bin" / "twine", "check", "--strict", *archives)
    if check(archives):
        return 1
    for archive in archives:
        print(f"== {archive.name}: the tutorial", flush=True)
        try_archive(python, archive)
    print(f"== {version} may be released: {', '.join(archive.name for archive in archives)}")
    return 0


def check(archives: list[Path]) -> int:
    """Print what is wrong with archives; the exit code is 1 if anything is."""
    problems = [problem for archive in archives for problem in problems_of(archive)]
    for problem in problems:
        print(f"release: {problem}", file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--check"]:
        raise SystemExit(check([*map(Path, sys.argv[2:])]))
    raise SystemExit(main(*sys.argv[1:]))
