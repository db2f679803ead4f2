"""The lowest versions that pyproject.toml admits: each extra has tests that run with them."""

from __future__ import annotations

import runpy
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
OF_THE_REPOSITORY = {"test-core", "test", "check", "docs"}
SCRIPT = runpy.run_path(str(ROOT / "scripts" / "lowest.py"))
TESTS = SCRIPT["TESTS"]


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
    assert SCRIPT["unreachable"](declared, pins) == [
        "langgraph>=1.2: the lowest that goes with the others is 1.2.12"
    ]
