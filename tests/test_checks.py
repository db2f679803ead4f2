"""The scripts that look for bad habits of language and for tests that cannot fail: what they find."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from textwrap import indent

import pytest
from syrupy.assertion import SnapshotAssertion

SCRIPTS = Path(__file__).parents[1] / "scripts"
# A rule each that has exceptions, a place in the sentence, or several forms; the others are words.
RULES = {
    "It is empty where there is none.": ("where there is", "It is empty if there are none."),
    "Where nothing waits, it returns.": ("Where nothing", "It shows where each step waits."),
    "a session, of which the plan is a part": ("of which", "the part of it which waits"),
    "what the history says of a plan": ("says of", "what the history says about a plan"),
    "It has none. Of a snapshot, it reads all.": ("Of a", "Of these, two failed. Of course it waits."),
    "Print the plan alone.": ("alone", "The engine leaves it alone. It is alone."),
    "It is another, or is another one.": ("is another", "There is another step. Name another file."),
    "The value is of another type.": ("of another type", "a value of another session or of another process"),
    "It must be a text, or texts.": ("a text", "It must be text, a string, a text file."),
    "The model is told the reason.": ("told", "Tell the user why. It tells two calls apart."),
    "The source is no text.": ("is no text", "There is no text. It is no longer open. The answer is no."),
    "It returns what is none of these.": ("is none", "There is none. The value is None."),
    "There stands a mark; it stands for it.": ("stands for", "It can stand up, and withstands it."),
    "It has it run.": ("has it run", "It runs."),
    "The rows are looked at.": ("are looked at", "The rows are checked. Look at the rows."),
    "the room of deleted sessions": ("the room", "There is room for one. A column has no room."),
    "what the client has besides": ("besides", "besides SQLite, DuckDB works"),
}


def found_in(
    folder: Path, content: str, *arguments: str, name: str = "page.md", script: str = "check_words.py"
) -> list[str]:
    (folder / name).write_text(content)
    command = [sys.executable, str(SCRIPTS / script), *arguments, name]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (run.stderr, run.returncode) == ("", 1 if run.stdout else 0)
    return run.stdout.splitlines()


def test_a_rule_refuses_a_bad_sentence(tmp_path: Path) -> None:
    found = found_in(tmp_path, "".join(f"{bad}\n" for bad in RULES))
    by_line: dict[int, list[str]] = {}
    for each in found:
        _, line, words = re.split(r":(\d+): \"(.+?)\": ", each)[:3]
        by_line.setdefault(int(line), []).append(words)
    assert {number: words[0] for number, words in sorted(by_line.items())} == {
        number: words for number, (words, _) in enumerate(RULES.values(), 1)
    }


def test_good_sentences_are_let_be(tmp_path: Path) -> None:
    assert found_in(tmp_path, "".join(f"{good}\n" for _, good in RULES.values())) == []


MODULE = '''
"""What a module does."""

ALIAS = str
"""Which name it has."""
_HIDDEN = str
"""Which name it has."""


class Shown:
    """How it is shown."""

    def message(self, value: str) -> str:
        """Say it alone."""
        def inner() -> None:
            """Whether it is."""
        return f"{value} is no plan, but {value or 'a text'}" "and\\n" "likewise gone"

    def kept(self) -> str:
        """Name it: where there is none, it is empty.

        Where no name is given, it is not a text.
        """
        return "told"

    @property
    def taken(self) -> str:
        return "it is a text"  # words: it is


class _Hidden:
    """What hides."""

    def show(self) -> None:
        """Where it is."""  # is another one


def _shown() -> None:
    """Show it."""
'''


@pytest.mark.parametrize("options", [[], ["--all"]], ids=["refused", "counted too"])
def test_bad_habits_of_a_module_are_refused_or_counted(
    options: list[str], tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    assert "\n".join(found_in(tmp_path, MODULE, *options, name="module.py")) == snapshot


# The script that looks for tests that cannot fail

FOUND = {
    "act()": "nothing is asserted",
    "act() or never_defined()": "nothing is asserted",
    "assert act() or True": "either side of `or` will do: assert the one that is meant",
    "assert ('text', act())": "this holds whatever happens",
    "assert act.a == act.a": "this compares a value with itself",
    "assert len(act()) >= 0": "a length or a time is never below 0",
    "assert act() in {'done', 'failed'}": "each of these will do: assert the one that is meant",
    "try:\n    assert act()\nexcept Exception:\n    pass": "this hides the failure of the assertion above",
    "with suppress(AssertionError):\n    assert act()": "this hides the failure of the assertion inside",
    "with pytest.raises(Exception):\n    act()": (
        "any exception will do: name the one that is meant, or match its message"
    ),
    "with pytest.raises(OSError):\n    act()\n    assert act": (
        "this does not run once the line above has raised"
    ),
    "if act():\n    assert act()": "nothing is asserted where this does not hold",
    "while act():\n    assert act()": "nothing is asserted where this loop does not run",
    "for each in act():\n    assert each": "nothing is asserted where there is nothing to loop over",
    "left = []\nfor each in left:\n    assert each": (
        "nothing is asserted where there is nothing to loop over"
    ),
}
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


def test_each_kind_is_found_once(tmp_path: Path) -> None:
    assert found_of(tmp_path, *FOUND) == [*FOUND.values()]


def test_what_can_fail_is_let_be(tmp_path: Path) -> None:
    assert found_of(tmp_path, *SOUND) == []


def test_a_property_that_may_return_first_has_an_example_that_does_not(tmp_path: Path) -> None:
    body = "if act():\n    return\nassert act()"
    assert found_of(tmp_path, body, decorator="@given(x())") == [
        "nothing is asserted where this holds: give an @example that goes on"
    ]
    assert found_of(tmp_path, body, decorator="@example(1)\n@given(x())") == []
