"""``planning export``: the file, the pictures, and what is refused."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from cli_runs import TRIAGE, TRIAGE_ANTHROPIC, lines, run, said
from page_data import of_store
from test_page import embedded

pytestmark = pytest.mark.usefixtures("store_folder")


def exported(*arguments: str) -> Any:
    """The run in the file that the command writes."""
    assert run("export", *arguments, "-o", "run.html") == "exit code 0\n"
    data = embedded(Path("run.html").read_bytes())
    assert data["mode"] == "export"
    return data["run"]


def test_a_session_is_written_as_the_page_has_it() -> None:
    assert exported("plans.db", "nightly") == of_store(Path("plans.db"))


@pytest.mark.parametrize("transcript", [TRIAGE, TRIAGE_ANTHROPIC], ids=["chat", "anthropic"])
def test_a_transcript_is_written_with_the_calls_of_all_tools(transcript: Path) -> None:
    data = exported(str(transcript))
    plan = json.loads(run("replay", str(transcript), "--json").partition("--- stdout\n")[2])
    assert data["changes"][-1]["plan"]["status"] == plan["status"]
    refused = [change for change in data["changes"] if change.get("kind") == "refused"]
    assert f", {len(refused)} refused, " in run("replay", str(transcript))
    assert refused
    names = {call["name"].partition("_")[0] for change in data["changes"] for call in change["calls"]}
    assert "planning" in names
    assert not any("at" in change for change in data["changes"])


def test_a_transcript_has_the_tokens_and_costs_that_its_messages_have(folder: Path) -> None:
    setup = ("planning_setup_plan", {"objective": "Go", "initial_steps": ["One"]})
    chat = {
        **said(setup, ("search", '{"q": 1}')),
        "usage": {"prompt_tokens": 10, "completion_tokens": 2, "cost": 0.5},
    }
    anthropic = {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": "toolu_1", "name": "planning_read_plan", "input": {}}],
        "usage": {"input_tokens": 20, "output_tokens": 3, "cache": {"x": 1}},
    }
    thought = {
        "role": "assistant",
        "content": "Hm.",
        "usage": {"prompt_tokens": 5, "completion_tokens": True},
    }
    langchain = {
        "type": "ai",
        "data": {"content": "", "tool_calls": [], "usage_metadata": {"input_tokens": 7, "output_tokens": -1}},
    }
    (folder / "t.jsonl").write_text(lines(chat, thought, anthropic, langchain))
    changes = exported("t.jsonl")["changes"]
    told = [(change["call_id"], change["calls"][0]["name"], change.get("usage")) for change in changes]
    assert told == [
        ("call_1", "planning_setup_plan", {"input": 10, "output": 2, "cost": 0.5}),
        ("call_2", "search", None),
        ("toolu_1", "planning_read_plan", {"input": 32, "output": 3}),
    ]
    assert changes[1]["calls"] == [{"name": "search", "arguments": '{"q": 1}', "characters": 8}]


@pytest.mark.parametrize("name", ["p.html", "P.HTM", "run.svg.Html"])
def test_a_file_that_ends_in_html_is_the_page(name: str, folder: Path) -> None:
    exported("plans.db", "nightly")
    assert run("export", "plans.db", "nightly", "-o", name) == "exit code 0\n"
    assert (folder / name).read_bytes() == (folder / "run.html").read_bytes()


@pytest.mark.parametrize("name", ["p.svg", "p.pdf", "p.html.gz", "p", "p.", ".html", "out/", ""])
def test_a_file_of_any_other_ending_is_not_written(name: str, folder: Path) -> None:
    before = sorted(folder.iterdir())
    assert run("export", "missing.db", "-o", name).endswith(
        f"\nError: Invalid value for '--output': name a file that ends in .html, not '{name}'\n"
    )
    assert sorted(folder.iterdir()) == before


def test_sound_changes_before_the_damage_are_written_and_the_damage_is_told() -> None:
    with closing(sqlite3.connect("plans.db")) as connection:
        connection.execute("UPDATE changes SET text = 'x' || text WHERE version = 4")
        connection.commit()
    assert run("export", "plans.db", "nightly", "-o", "run.html") == (
        "exit code 1\n--- stderr\nplanning: version 4 is damaged in the store; what is before it can be read "
        "with session.at(), and forked with session.fork(at=3)\n"
    )
    assert [change["v"] for change in embedded(Path("run.html").read_bytes())["run"]["changes"]] == [1, 2, 3]


def test_the_source_is_never_written_over(folder: Path) -> None:
    before = (folder / "plans.db").read_bytes()
    (folder / "link.htm").symlink_to(folder / "plans.db")
    (folder / "plans.html").symlink_to("plans.db")
    for target in ("link.htm", "plans.html", "./plans.html"):
        assert run("export", "plans.db", "nightly", "-o", target).endswith(
            "Error: Invalid value for '--output': it is the source itself; name another file\n"
        )
    assert (folder / "plans.db").read_bytes() == before


def test_a_file_that_cannot_be_written_is_told(folder: Path) -> None:
    (folder / "page.html").mkdir()
    for target, reason in (("no/run.html", "No such file or directory"), ("page.html", "Is a directory")):
        assert run("export", "plans.db", "nightly", "-o", target) == (
            f"exit code 2\n--- stderr\nplanning: cannot write '{target}': {reason}\n"
        )
