"""The scripts of the house: habits of language, tests that cannot fail, releases and lowest versions."""

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
from textwrap import indent

import pytest
from syrupy.assertion import SnapshotAssertion

SCRIPTS = Path(__file__).parents[1] / "scripts"
# A rule each that has exceptions, a place in the sentence, or several forms; the others are words.
RULES = {
    "It is empty where there is none.": "It is empty if there are none.",
    "Where nothing waits, it returns.": "It shows where each step waits.",
    "a session, of which the plan is a part": "the part of it which waits",
    "what the history says of a plan": "what the history says about a plan",
    "It has none. Of a snapshot, it reads all.": "Of these, two failed. Of course it waits.",
    "Print the plan alone.": "The engine leaves it alone. It is alone.",
    "It is another, or is another one.": "There is another step. Name another file.",
    "The value is of another type.": "a value of another session or of another process",
    "It must be a text, or texts.": "It must be text, a string, a text file.",
    "The model is told the reason.": "Tell the user why. It tells two calls apart.",
    "The source is no text.": "There is no text. It is no longer open. The answer is no.",
    "It returns what is none of these.": "There is none. The value is None.",
    "There stands a mark; it stands for it.": "It can stand up, and withstands it.",
    "It has it run.": "It runs.",
    "The rows are looked at.": "The rows are checked. Look at the rows.",
    "the room of deleted sessions": "There is room for one. A column has no room.",
    "what the client has besides": "besides SQLite, DuckDB works",
}


def found_in(
    folder: Path, content: str, *arguments: str, name: str = "page.md", script: str = "check_words.py"
) -> list[str]:
    (folder / name).write_text(content)
    command = [sys.executable, str(SCRIPTS / script), *arguments, name]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (run.stderr, run.returncode) == ("", 1 if run.stdout else 0)
    return run.stdout.splitlines()


def test_a_rule_refuses_a_bad_sentence_and_lets_a_good_one_be(
    tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    assert "\n".join(found_in(tmp_path, "".join(f"{bad}\n" for bad in RULES))) == snapshot
    assert found_in(tmp_path, "".join(f"{good}\n" for good in RULES.values())) == []


MODULE = '''
_HIDDEN = str
"""Which name it has."""

class Shown:
    """How it is shown."""

    def message(self, value: str) -> str:
        """Name it.

        Where no name is given, it is not a text.
        """
        def inner() -> None:
            """Whether it is."""
        return f"{value} is no plan, but {value or 'a text'}" "and\\n" "likewise gone"

    @property
    def taken(self) -> str:
        return "it is a text"  # words: it is

def _shown() -> None:
    """Where it is."""  # is another one
'''


@pytest.mark.parametrize("options", [[], ["--all"]], ids=["refused", "counted too"])
def test_bad_habits_of_a_module_are_refused_or_counted(
    options: list[str], tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    assert "\n".join(found_in(tmp_path, MODULE, *options, name="module.py")) == snapshot


# The script that looks for tests that cannot fail

FOUND = (
    "act()",
    "act() or never_defined()",
    "assert act() or True",
    "assert ('text', act())",
    "assert act.a == act.a",
    "assert len(act()) >= 0",
    "assert act() in {'done', 'failed'}",
    "try:\n    assert act()\nexcept Exception:\n    pass",
    "with suppress(AssertionError):\n    assert act()",
    "with pytest.raises(Exception):\n    act()",
    "with pytest.raises(OSError):\n    act()\n    assert act",
    "if act():\n    assert act()",
    "while act():\n    assert act()",
    "for each in act():\n    assert each",
    "left = []\nfor each in left:\n    assert each",
)
SOUND = (
    "assert act() == 1",
    "assert act() or True  # enough: both answers are right",
    "check(act())",
    "assert act()\nfor each in act():\n    assert each",
    "for each in (1, 2):\n    assert each",
    "for each, other in enumerate(CASES):\n    assert each",
    "for each in listed():\n    assert each",
    "if act():\n    assert act()\nelse:\n    assert not act()",
    "with pytest.raises(OSError, match='no such'):\n    act()",
    "with pytest.raises(Exception, match='no such'):\n    act()",
    "assert act() in NAMES",
)
HELPERS = """
def check(found):
    deeper(found)

def deeper(found):
    assert found

def listed():
    return [1]
"""


def found_of(folder: Path, *bodies: str, decorator: str = "") -> list[str]:
    tests = (
        f"{decorator}\ndef test_{number}():\n{indent(each, '    ')}\n" for number, each in enumerate(bodies)
    )
    lines = found_in(folder, HELPERS + "\n".join(tests), name="test_drawn.py", script="check_tests.py")
    return [line.split(": ", 1)[1] for line in lines]


def test_each_kind_is_found_once_and_what_can_fail_is_let_be(
    tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    found = found_of(tmp_path, *FOUND)
    shown = (f"{body}\n# {why}\n" for body, why in zip(FOUND, found, strict=True))
    assert "\n".join(shown) == snapshot
    assert found_of(tmp_path, *SOUND) == []


def test_a_property_that_may_return_first_has_an_example_that_does_not(tmp_path: Path) -> None:
    body = "if act():\n    return\nassert act()"
    assert found_of(tmp_path, body, decorator="@given(x())") == [
        "nothing is asserted where this holds: give an @example that goes on"
    ]
    assert found_of(tmp_path, body, decorator="@example(1)\n@given(x())") == []


# What make release refuses in an archive

ROOT = Path(__file__).parents[1]
# An sdist has this file, too: "|" is a slash here, and "*" a backslash.
INDEX = "https:||token@wheels.corp.example:8443|simple".replace("|", "/")
MACHINE = {"LOGNAME": "zoe-builds", "PIP_INDEX_URL": INDEX}
NAMED = {
    text.replace("|", "/").replace("*", "\\"): named.replace("|", "/").replace("*", "\\")
    for text, named in (
        ("File '|home|zoe|app|main.py'", "|home|zoe"),
        ("file:||||home|zoe|app", "|home|zoe"),
        ('"C:**Users**zoe**app"', "C:**Users**zoe"),
        ("#!|root|.pyenv|versions|3.13.0|bin|python", "|root|.pyenv"),
        ("--index-url=https:||mirror.example|pypi", "-index-url=https:||mirror.example"),
        ("at http:||10.0.0.5:3141|root|pypi|+simple|", "http:||10.0.0.5:3141|root|pypi|+simple"),
        ("built by zoe-builds", "zoe-builds"),
        ("from wheels.corp.example", "wheels.corp.example"),
    )
}
NAMELESS = [
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
    files = {f"planning/{number}.md": text.encode() for number, text in enumerate(NAMELESS)}
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
