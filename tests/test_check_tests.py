"""The script that looks for tests that cannot fail: what it finds, and what it lets be."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent, indent

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "check_tests.py"
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


def found_in(folder: Path, *bodies: str, decorator: str = "") -> str:
    path = folder / "test_drawn.py"
    tests = [
        f"{decorator}\ndef test_{number}():\n{indent(each, '    ')}\n" for number, each in enumerate(bodies)
    ]
    path.write_text(HELPERS + "\n".join(tests))
    run = subprocess.run(
        [sys.executable, SCRIPT, path.name], cwd=folder, capture_output=True, text=True, check=False
    )
    assert (run.stderr, run.returncode) == ("", 1 if run.stdout else 0)
    return "".join(f"{line.split(': ', 1)[1]}\n" for line in run.stdout.splitlines())


def test_each_kind_is_found_once(tmp_path: Path) -> None:
    assert found_in(tmp_path, *FOUND) == "".join(f"{each}\n" for each in FOUND.values())


def test_what_can_fail_is_let_be(tmp_path: Path) -> None:
    assert found_in(tmp_path, *SOUND) == ""


@pytest.mark.parametrize(
    ("decorator", "found"),
    [
        ("@given(x())", "nothing is asserted where this holds: give an @example that goes on\n"),
        ("@example(1)\n@given(x())", ""),
    ],
)
def test_a_property_that_may_return_first_has_an_example_that_does_not(
    tmp_path: Path, decorator: str, found: str
) -> None:
    body = dedent("""
        if act():
            return
        assert act()
    """)
    assert found_in(tmp_path, body, decorator=decorator) == found
