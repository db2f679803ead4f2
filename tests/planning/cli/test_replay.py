"""``planning replay``: its output whole, and what it says of transcripts that it cannot read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from cli_runs import TRIAGE, TRIAGE_ANTHROPIC, lines, run, said
from syrupy.assertion import SnapshotAssertion

MESSAGE = said(("planning_read_plan", {}))
SETUP = ("planning_setup_plan", {"objective": "Fix the login", "initial_steps": ["Reproduce it"]})


@pytest.mark.parametrize("options", [[], ["--json"]], ids=["lines", "json"])
def test_the_triage_example_replays(options: list[str], snapshot: SnapshotAssertion) -> None:
    assert run("replay", *options, str(TRIAGE)) == snapshot


def test_the_example_in_anthropics_form_replays(snapshot: SnapshotAssertion) -> None:
    assert run("replay", str(TRIAGE_ANTHROPIC)) == snapshot


def test_json_holds_the_plan_or_null_and_nothing_else() -> None:
    shown = run("replay", "--json", stdin=lines(said(SETUP, ("planning_clear_plan", {}))))
    head, body = shown.split("--- stdout\n")
    assert head == "exit code 0\n"
    assert json.loads(body) == {"objective": "Fix the login", "status": "abandoned", "steps": []}
    assert run("replay", "--json", stdin=lines(MESSAGE)) == "exit code 0\n--- stdout\nnull\n"


def test_a_transcript_without_planning_calls_says_so(snapshot: SnapshotAssertion) -> None:
    assert run("replay", stdin=lines(said(("run_tests", {})), {"role": "user", "content": "Go."})) == snapshot


def test_each_change_of_a_plan_is_told_in_lines(snapshot: SnapshotAssertion) -> None:
    marks: list[tuple[str, str, str | None]] = [
        ("S001", "pending", None),
        ("S001", "in_progress", "Fails on empty names"),
        ("S009", "finished", None),
        ("S001", "done", None),
        ("S002", "done", None),
        ("S001", "blocked", None),
    ]
    sent = [
        ("planning_mark_step", dict(zip(("step_id", "status", "note"), mark, strict=True))) for mark in marks
    ]
    update = {"step_id": "S002", "title": "Fix it well", "details": "In login.py\nand in session.py"}
    setup = {"objective": "Fix the login", "initial_steps": ["Reproduce it", "Fix it"]}
    shown = run(
        "replay",
        stdin=lines(
            said(("planning_setup_plan", setup), ("planning_update_step", update), ("run_tests", {}), *sent),
            said(("planning_read_plan", {}), ("planning_clear_plan", {}), ("run_tests", {})),
        ),
    )
    assert shown == snapshot


def test_markup_and_control_characters_of_a_model_stay_text(snapshot: SnapshotAssertion) -> None:
    setup = {"objective": "[red]Fix[/] [/]", "initial_steps": [{"title": "[link=x]a[/link] \\[b"}]}
    hostile: list[tuple[str, Any]] = [
        ("planning_setup_plan", setup),
        ("planning_mark_step", {"step_id": "S001\x1b[31m", "status": "\x1b]0;owned\x07"}),
        ("planning_\x1b[2J\ud800", {}),
        ("planning_mark_step", {"step_id": "S001", "status": "done", "\x1b[1m": 1, "[/red]": 2}),
        ("planning_mark_step", {"step_id": "S001", "status": "done", "note": "one\n\ttwo [/]"}),
    ]
    assert run("replay", stdin=lines(said(*hostile))) == snapshot


WRONG: dict[str, bytes] = {
    "empty": b"",
    "no messages in an array": b"[]",
    "plain text": b"Dear model,\nplease plan.\n",
    "a broken line": (lines(MESSAGE) + '{"role": "assistant", \n' + lines(MESSAGE)).encode(),
    "a broken array": b'[\n  {"role": "user", "content": "Go."},\n  {"role": "assistant" "content": ""}\n]\n',
    "a message without a role": (lines(MESSAGE, {"content": "hello"})).encode(),
    "a malformed tool call": (lines(MESSAGE, {"role": "assistant", "tool_calls": [{"id": "1"}]})).encode(),
    "not UTF-8": (lines(MESSAGE)).encode() + b'{"role": "caf\xe9"}\n',
    "UTF-16": lines(MESSAGE).encode("utf-16"),
    "deeply nested": b"[" * 100_000,
    "a number of too many digits": b'{"role": ' + b"1" * 10_000 + b"}",
}


def test_text_that_is_no_transcript_is_refused_whole(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    shown = []
    for name, data in WRONG.items():
        (tmp_path / "wrong.jsonl").write_bytes(data)
        shown.append(f"-- {name}\n{run('replay', 'wrong.jsonl')}")
    assert "".join(shown) == snapshot
