"""The examples: their transcripts say what the tools say today, and the program runs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cli_runs import ROOT, TRIAGE
from syrupy.assertion import SnapshotAssertion

from planning import Toolbox


def messages(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_the_recorded_replies_of_the_triage_are_what_the_tools_answer(toolbox: Toolbox) -> None:
    calls: dict[str, Any] = {}
    for message in messages(TRIAGE):
        for call in message.get("tool_calls", ()):
            calls[call["id"]] = call["function"]
        called = calls.pop(str(message.get("tool_call_id")), None)
        if called is not None and called["name"].startswith("planning_"):
            assert message["content"] == toolbox.call(called["name"], called["arguments"]).message
    assert not calls


def test_the_quickstart_runs(snapshot: SnapshotAssertion) -> None:
    program = str(ROOT / "examples" / "quickstart.py")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == snapshot


@pytest.mark.slow
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_the_background_agent_is_killed_and_resumed(provider: str) -> None:
    pytest.importorskip(provider, reason=f"needs the {provider} client: pip install '.[{provider}]'")
    program = str(ROOT / "examples" / "agent.py")
    done = subprocess.run([sys.executable, program, provider], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        "worker: New plan: Fix the login. Added S001, S002.\n"
        "worker: S001 done: Fails on an empty name.\n"
        "worker: S002 done. Plan completed.\n"
    )
