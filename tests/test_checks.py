"""The scripts that look for bad habits of language and for tests that cannot fail: what they find."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts"
RULES = {
    "It is empty where there is none.": ("where there is", "It is empty if there are none."),
    "where it has a store, it waits": ("where it has", "a place where it had to wait"),
    "Where nothing waits, it returns.": ("Where nothing", "It shows where each step waits."),
    "a session, of which the plan is a part": ("of which", "the part of it which waits"),
    "the store from whose file it reads": ("from whose", "the user whose plan it is"),
    "what the history says of a plan": ("says of", "what the history says about a plan"),
    "It has none. Of a snapshot, it reads all.": ("Of a", "Of these, two failed. Of course it waits."),
    "Print the plan alone.": ("alone", "The engine leaves it alone. It is alone."),
    "A plan that is left alone.": ("left alone", "A plan that the engine leaves alone."),
    "It is another, or is another one.": ("is another", "There is another step. Name another file."),
    "The value is of another type.": ("of another type", "a value of another session or of another process"),
    "It must be a text, or texts.": ("a text", "It must be text, a string, a text file."),
    "It is open by now.": ("by now", "It is open now."),
    "The second plan, likewise.": ("likewise", "The second plan."),
    "Begin anew.": ("anew", "Start over."),
    "It goes on with the rest.": ("goes on", "It goes ahead. Going on a journey."),
    "The call was given up.": ("given up", "Never give up."),
    "The same, from async code.": ("The same, from async", "In async code, await this."),
    "The model is told the reason.": ("told", "Tell the user why. It tells two calls apart."),
    "A page for nobody, whoever asks.": ("nobody", "a page for the user"),
    "The source is no text.": ("is no text", "There is no text. It is no longer open. The answer is no."),
    "It returns what is none of these.": ("is none", "There is none. The value is None."),
    "There stands a mark; it stands for it.": ("stands for", "It can stand up, and withstands it."),
    "a tool of one's own": ("of one's own", "a tool of your own"),
    "what came of the call": ("what came of", "what came out first"),
    "It has it run.": ("has it run", "It runs."),
    "A field is left out.": ("left out", "A field is omitted."),
    "The plan is put back.": ("put back", "The plan is restored. Put it into the backlog."),
    "The steps form a circle.": ("circle", "The steps form a cycle. It encircles them."),
    "The rows are looked at.": ("are looked at", "The rows are checked. Look at the rows."),
    "the room of deleted sessions": ("the room", "There is room for one. A column has no room."),
    "It shows the step at hand.": ("step at hand", "It shows the current step."),
    "The ending decides the format.": ("ending decides", "`.html` writes a page."),
    "A question asks back.": ("asks back", "It asks the user. Give the task back."),
    "The text breaks off.": ("breaks off", "The text ends too early. The model answers."),
    "Names of a kind that is not given go.": ("of a kind that is not given", "Of the kinds given"),
    "The call was carried out.": ("carried out", "The tool was run, and carried on."),
    "It holds the tools back: held back.": ("held back", "Hold the lock. It is back."),
    "counted without a model": ("counted without a model", "It runs without a model."),
    "The call is a repeat.": ("a repeat", "It is a repeated call. Observe, repeat."),
    "A tool that speaks to the model.": ("speaks to the model", "A tool that calls the model."),
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


def test_each_rule_refuses_a_bad_sentence(tmp_path: Path) -> None:
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


PAGES = {
    "```python\na text\n```\n`a text` ``a ` text`` [text](a-text.md) <!-- a text -->\n": [],
    "It is\n\nwhere there\nis none.\n": ['page.md:3: "where there is": if, or a new sentence'],
    "It is a text. <!-- words: quoted -->\n\nIt is a text.\n\n<!-- words: quoted -->\nIt is a text.\n": [
        'page.md:3: "a text": text, a string'
    ],
}


@pytest.mark.parametrize("page", PAGES, ids=["code and links", "two lines", "a comment with a reason"])
def test_prose_of_a_page_is_read_over_its_lines_but_for_code_and_what_has_a_reason(
    tmp_path: Path, page: str
) -> None:
    assert found_in(tmp_path, page) == PAGES[page]


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
REFUSED = [
    'module.py:2: "What": name the thing; True if ...',
    'module.py:5: "Which": name the thing; True if ...',
    'module.py:11: "How": name the thing; True if ...',
    'module.py:14: "alone": only',
    'module.py:17: "likewise": the plain word, or nothing',
    'module.py:17: "is no plan": is not a ..., do not ...',
    'module.py:17: "a text": text, a string',
    'module.py:20: "where there is": if, or a new sentence',
    'module.py:22: "Where no": if, or a new sentence',
    'module.py:22: "a text": text, a string',
]
COUNTED = [
    'module.py:7: "Which": name the thing; True if ...',
    'module.py:16: "Whether": name the thing; True if ...',
    'module.py:19: "kept": begin with a verb',
    'module.py:32: "What": name the thing; True if ...',
    'module.py:35: "Where": name the thing; True if ...',
    'module.py:35: "is another": different',
    'module.py:38: "_shown": begin with a verb',
]


def test_public_docstrings_and_messages_are_refused(tmp_path: Path) -> None:
    assert found_in(tmp_path, MODULE, name="module.py") == REFUSED


def test_what_is_counted_is_listed_on_request(tmp_path: Path) -> None:
    found = found_in(tmp_path, MODULE, "--all", name="module.py")
    assert sorted(found) == sorted(REFUSED + COUNTED)


def test_all_of_a_private_module_is_counted(tmp_path: Path) -> None:
    assert found_in(tmp_path, '"""What it does."""\n', name="_module.py") == []


@pytest.mark.parametrize(("ceiling", "code"), [(1, 1), (2, 0)])
def test_what_is_counted_may_only_become_fewer(
    ceiling: int,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.syspath_prepend(SCRIPTS)
    script: Any = importlib.import_module("check_words")
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "module.py").write_text("# a text\n\n# likewise\ndef _kept() -> None: ...\n")
    monkeypatch.setattr(script, "ROOT", tmp_path)
    monkeypatch.setattr(script, "CEILINGS", {script.PRIVATE: ceiling, script.NAMES: 1})
    assert script.main([]) == code
    assert capsys.readouterr().out == (
        f"bad habits in private docstrings and comments: 2, at most {ceiling}\n"
        "bad habits in names of functions: 1, at most 1\n"
    )


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
