"""Runs of the command, and transcripts to run it on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from planning.cli.app import app

ROOT = Path(__file__).parents[3]
TRIAGE = ROOT / "examples" / "triage.jsonl"
TRIAGE_ANTHROPIC = ROOT / "examples" / "triage-anthropic.jsonl"


def run(*arguments: str, stdin: str | bytes | None = None) -> str:
    """What a run of the command shows: its exit code and both of its outputs."""
    result = CliRunner().invoke(app, arguments, input=stdin, prog_name="planning", catch_exceptions=False)
    shown = f"exit code {result.exit_code}\n"
    if result.stderr:
        shown += f"--- stderr\n{result.stderr}"
    return shown + (f"--- stdout\n{result.stdout}" if result.stdout else "")


def said(*calls: tuple[str, object]) -> dict[str, Any]:
    """An assistant's message in the chat-completions form, with calls as (tool, arguments)."""
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": f"call_{number}",
                "type": "function",
                "function": {
                    "name": name,
                    "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments),
                },
            }
            for number, (name, arguments) in enumerate(calls, start=1)
        ],
    }


def lines(*messages: object) -> str:
    """Messages as a transcript, one a line."""
    return "".join(json.dumps(message) + "\n" for message in messages)
