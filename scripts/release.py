"""Build the sdist and the wheel into ``dist/``, and try each as a user gets it: ``make release``.

usage: scripts/release.py PYTHON              build and try both
       scripts/release.py --check FILE...     only look into these archives

It refuses metadata that a registry would refuse, an archive that is too large, a file that names a machine,
a version without a heading in CHANGELOG.md, and a tutorial that does not run from one in an empty folder.
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
    rb"(?<![\w.~}-])/(?:home/[A-Za-z_]|Users/[A-Za-z_]|root/)[\w.-]*"  # an absolute path
    rb"|(?<![A-Za-z])[A-Z]:\\+Users\\+[\w.-]+"
)
"""A path in the home of a user."""
REGISTRY = re.compile(
    rb"https?://([\w.:@%-]+)/(?:[\w.-]+/)*\+?simple(?![\w-])|-index-url[ =]+https?://([\w.:@%-]+)",
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


def own_names() -> re.Pattern[bytes]:
    """What this machine is called: its user, host, home and checkout, and the hosts of its package index."""
    index = [value for name, value in os.environ.items() if re.fullmatch(r"(PIP|UV)_.*(INDEX|LINKS).*", name)]
    hosts = {urlsplit(word).hostname or "" for value in index for word in value.split()} - PUBLIC
    names = {getpass.getuser(), socket.gethostname(), *hosts} - COMMON
    paths = {f"{path}/".encode() for path in (Path.home(), ROOT) if path != Path("/")}
    words = [rb"(?<![\w-])" + re.escape(name.encode()) + rb"(?![\w-])" for name in names if len(name) > 3]
    words += [re.escape(path) for path in paths if not HOMES.match(path)]
    return re.compile(b"|".join(sorted(words)) or b"(?!)")


def problems_of(archive: Path) -> Iterator[str]:
    """What is wrong with an archive, a line each."""
    size, most = archive.stat().st_size, MOST[archive.suffix]
    if size > most:
        what_to_do = "leave files out, or raise the bound with a reason"
        yield f"{archive.name} has {size:,} bytes, more than {most:,}: {what_to_do}"
    own = own_names()
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
    subprocess.run([*map(str, command)], check=True, cwd=folder, env=clean)


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
