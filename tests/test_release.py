"""What ``make release`` refuses in an archive."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "release.py"
# An sdist has this file, too: "|" is a slash here, and "*" a backslash.
INDEX = "https:||token@wheels.corp.example:8443|simple".replace("|", "/")
MACHINE = {"LOGNAME": "zoe-builds", "PIP_INDEX_URL": INDEX}
NAMED = {
    text.replace("|", "/").replace("*", "\\"): named.replace("|", "/").replace("*", "\\")
    for text, named in (
        ("File '|home|zoe|app|main.py'", "|home|zoe"),
        ("file:||||home|zoe|app", "|home|zoe"),
        ("see |Users|zoe|app", "|Users|zoe"),
        ("C:*Users*zoe*app", "C:*Users*zoe"),
        ('"C:**Users**zoe**app"', "C:**Users**zoe"),
        ("#!|root|.pyenv|versions|3.13.0|bin|python", "|root|.pyenv"),
        ("--index-url=https:||mirror.example|pypi", "-index-url=https:||mirror.example"),
        ("at http:||10.0.0.5:3141|root|pypi|+simple|", "http:||10.0.0.5:3141|root|pypi|+simple"),
        ("built by zoe-builds", "zoe-builds"),
        ("from wheels.corp.example", "wheels.corp.example"),
    )
}
SOUND = [
    "pip install --index-url https://test.pypi.org/simple session-planning",
    "https://example.org/simple-things",
    "a/home/page/of the user, at the root/ of the tree, in ~/root",
    "plans.db is in ~/app, and zoe-builds-2 is not this user",
]


def wheel(folder: Path, files: dict[str, bytes]) -> Path:
    path = folder / "session_planning-0.2.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def sdist(folder: Path, files: dict[str, bytes], user: str = "") -> Path:
    path = folder / "session_planning-0.2.0.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.uname = len(data), user
            archive.addfile(member, io.BytesIO(data))
    return path


def checked(*archives: Path) -> tuple[int, list[str]]:
    """The exit code of the script, and what it says."""
    done = subprocess.run(
        [sys.executable, SCRIPT, "--check", *archives],
        env=os.environ | MACHINE,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, (done.stdout + done.stderr).splitlines()


@pytest.mark.parametrize("text", NAMED)
def test_a_file_that_names_a_machine_is_refused(tmp_path: Path, text: str) -> None:
    files = {"planning/a.py": text.encode(), "planning/b.py": b"x = 1\n"}
    assert checked(wheel(tmp_path, files), sdist(tmp_path, files)) == (
        1,
        [
            f"release: session_planning-0.2.0-py3-none-any.whl: planning/a.py names a machine: {NAMED[text]}",
            f"release: session_planning-0.2.0.tar.gz: planning/a.py names a machine: {NAMED[text]}",
        ],
    )


def test_the_owner_of_a_file_is_refused_where_it_is_the_user_of_this_machine(tmp_path: Path) -> None:
    archive = sdist(tmp_path, {"a.py": b""}, "zoe-builds")
    assert checked(archive) == (
        1,
        ["release: session_planning-0.2.0.tar.gz: a.py names a machine: zoe-builds"],
    )


def test_what_names_no_machine_passes(tmp_path: Path) -> None:
    files = {f"planning/{number}.md": text.encode() for number, text in enumerate(SOUND)}
    assert checked(wheel(tmp_path, files), sdist(tmp_path, files)) == (0, [])


def test_an_archive_that_is_too_large_is_refused(tmp_path: Path) -> None:
    archive = wheel(tmp_path, {"planning/data.bin": os.urandom(1_000_001)})
    assert checked(archive) == (
        1,
        [
            f"release: {archive.name} has {archive.stat().st_size:,} bytes, more than 1,000,000: "
            "leave files out, or raise the bound with a reason"
        ],
    )
