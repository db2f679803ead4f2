"""The tables of specs/PLANNING.md say what the code does."""

from __future__ import annotations

from pathlib import Path

from planning.plan.commands import Command
from planning.plan.model import PlanStatus
from planning.plan.reducers import TRANSITIONS
from planning.plan.text import DETAILS, NOTE, OBJECTIVE, STEP_ID, TITLE, TextRule
from planning.suite.tools import planning_tools
from session import Session

SPEC = Path(__file__).parents[2] / "specs" / "PLANNING.md"
HEADS: tuple[PlanStatus | None, ...] = (None, "active", "completed", "abandoned")


def table(heading: str) -> list[list[str]]:
    """The rows of the first table below a heading, its head first."""
    _, _, below = SPEC.read_text(encoding="utf-8").partition(f"\n## {heading}\n")
    lines = below.split("\n## ")[0].splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines if line.startswith("|")]
    assert [cell.strip("-") for cell in rows[1]] == [""] * len(rows[0])
    return [rows[0], *rows[2:]]


def test_the_lifecycle_table_is_the_one_of_the_code() -> None:
    head, *rows = table("Lifecycle")
    commands: dict[str, type[Command]] = {command.__name__: command for _, command in TRANSITIONS}
    assert head == ["command", *(status or "no plan" for status in HEADS)]
    assert [row[0].strip("`") for row in rows] == list(commands)
    shown = {
        (status, commands[row[0].strip("`")]): cell.strip("`")
        for row in rows
        for status, cell in zip(HEADS, row[1:], strict=True)
    }
    assert shown == {key: " / ".join(statuses) or "refused" for key, statuses in TRANSITIONS.items()}


def test_the_text_table_has_the_limits_of_the_code() -> None:
    def row(name: str, rule: TextRule) -> list[str]:
        if rule.blank_is_none:
            return [name, f"at most {rule.limit}", "several" if rule.multiline else "one", "`None`"]
        return [name, f"1 to {rule.limit}", "several" if rule.multiline else "one", "refused"]

    assert table("Text") == [
        ["text", "characters", "lines", "blank"],
        row("objective", OBJECTIVE),
        row("title", TITLE),
        row("details", DETAILS),
        row("note", NOTE),
        row("step_id", STEP_ID),
    ]


def test_the_tools_table_has_the_tools_and_commands_of_the_code() -> None:
    rows = table("Commands and tools")[1:]
    shown = [(row[0].strip("`"), row[1].strip("`").partition("(")[0]) for row in rows]
    assert shown == [(tool.name, tool.parameters.__name__) for tool in planning_tools(Session())]
