"""What ``make release`` refuses in an archive, and the lowest versions of what it requires."""

from __future__ import annotations

import io
import os
import runpy
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
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
        [sys.executable, ROOT / "scripts" / "release.py", "--check", *archives],
        env=os.environ | MACHINE,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, (done.stdout + done.stderr).splitlines()


def test_each_file_that_names_a_machine_is_refused(tmp_path: Path) -> None:
    files = {f"planning/{number}.py": text.encode() for number, text in enumerate(NAMED)}
    archives = wheel(tmp_path, files), sdist(tmp_path, files)
    assert checked(*archives) == (
        1,
        [
            f"release: {archive.name}: planning/{number}.py names a machine: {named}"
            for archive in archives
            for number, named in enumerate(NAMED.values())
        ],
    )


def test_the_owner_of_a_file_is_refused_where_it_is_the_user_of_this_machine(tmp_path: Path) -> None:
    archive = sdist(tmp_path, {"a.py": b""}, "zoe-builds")
    assert checked(archive) == (1, [f"release: {archive.name}: a.py names a machine: zoe-builds"])


def test_what_names_no_machine_passes(tmp_path: Path) -> None:
    files = {f"planning/{number}.md": text.encode() for number, text in enumerate(SOUND)}
    assert checked(wheel(tmp_path, files), sdist(tmp_path, files)) == (0, [])


# The lowest versions that pyproject.toml admits

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OF_THE_REPOSITORY = {"test-core", "test", "check", "docs"}
LOWEST = runpy.run_path(str(ROOT / "scripts" / "lowest.py"))
TESTS = LOWEST["TESTS"]


def test_each_extra_has_its_tests_and_they_are_there() -> None:
    assert TESTS.keys() - {"core"} == PROJECT["optional-dependencies"].keys() - OF_THE_REPOSITORY
    assert {named for paths in TESTS.values() for named in paths if not list(ROOT.glob(named))} == set()


def test_each_requirement_of_a_user_names_its_lowest_version() -> None:
    extras = PROJECT["optional-dependencies"]
    wanted = [*PROJECT["dependencies"], *(each for name in extras if name in TESTS for each in extras[name])]
    assert [each for each in wanted if ">=" not in each] == []


def test_a_lowest_version_that_does_not_go_with_the_others_is_said() -> None:
    declared = ["attrs>=25.4", "limits[redis]>=4", "langgraph>=1.2"]
    pins = ["attrs==25.4.0", "langgraph==1.2.12", "limits==4.0.0", "pydantic==2.12.0"]
    assert LOWEST["unreachable"](declared, pins) == [
        "langgraph>=1.2: the lowest that goes with the others is 1.2.12"
    ]
