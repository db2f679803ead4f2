"""``planning schema``: the schema files as they are in the package."""

from __future__ import annotations

from importlib.resources import files

import pytest
from cli_runs import run
from syrupy.assertion import SnapshotAssertion


@pytest.mark.parametrize("version", ["1", "2"])
def test_the_schema_file_is_printed(version: str) -> None:
    text = (files("planning.workflow.wire") / f"v{version}.schema.json").read_text(encoding="utf-8")
    assert run("schema", "--version", version) == f"exit code 0\n--- stdout\n{text}"


def test_the_schema_is_version_two_when_left_out() -> None:
    assert run("schema") == run("schema", "--version", "2")


@pytest.mark.parametrize("options", [["--help"], ["--version", "3"], ["plan.json"]], ids=" ".join)
def test_what_the_schema_command_says_of_its_use(options: list[str], snapshot: SnapshotAssertion) -> None:
    assert run("schema", *options) == snapshot
