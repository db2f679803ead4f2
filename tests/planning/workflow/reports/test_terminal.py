"""``Report.render``: what a person reads in a terminal, whole."""

from __future__ import annotations

import re

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_samples import COMMENT, ONE_OF_EACH, TOOL, numbered, report
from syrupy.assertion import SnapshotAssertion

from planning.reading.places import Source
from planning.workflow.codes import Finding
from planning.workflow.model import Workflow, WorkflowStep
from planning.workflow.report import Report, excerpt

ESCAPE = re.compile("\x1b\\[[0-9;]*m")


def test_every_finding_is_shown_at_its_source_line(snapshot: SnapshotAssertion) -> None:
    assert report(*ONE_OF_EACH, COMMENT).render(name="plan.json") == snapshot


def test_colour_adds_escape_sequences_and_nothing_else(snapshot: SnapshotAssertion) -> None:
    made = report(TOOL, COMMENT)
    coloured = made.render(color=True, name="plan.json")
    assert ESCAPE.sub("", coloured) == made.render(name="plan.json")
    assert coloured.replace("\x1b", "<ESC>") == snapshot


def test_no_terminal_is_narrower_than_forty_columns() -> None:
    assert report(TOOL).render(width=1) == report(TOOL).render(width=40)


def test_a_plan_that_came_parsed_has_no_source_lines() -> None:
    bare = attrs.evolve(TOOL, line=None, column=None)
    assert report(bare, text=None).render() == (
        "error[unknown_tool]: no tool is named 'serch'\n"
        "  --> workflow\n"
        "  = step 1 'fetch', /steps/0/name\n"
        "  = help: did you mean search?\n"
        "\n"
        "workflow: 1 error\n"
        "most critical: no tool is named 'serch'"
    ).replace("  -->", " -->")


STEPS = tuple(WorkflowStep(step_id=name, description="") for name in "ab")


@pytest.mark.parametrize(
    ("made", "shown"),
    [
        (Report(workflow=Workflow(steps=STEPS)), "workflow: valid, 2 steps"),
        (Report(workflow=Workflow(steps=STEPS[:1])), "workflow: valid, 1 step"),
        (Report(workflow=Workflow()), "workflow: valid, 0 steps"),
        (Report(), "workflow: valid"),
        (
            attrs.evolve(report(COMMENT), workflow=Workflow(steps=STEPS)),
            "workflow: valid, 2 steps, 1 warning",
        ),
    ],
)
def test_a_valid_plan_ends_with_one_line(made: Report, shown: str) -> None:
    assert made.render().split("\n")[-1] == shown
    assert made.render(color=True).split("\n")[-1] == shown.replace("valid", "\x1b[1;32mvalid\x1b[0m")


def test_line_numbers_of_different_widths_share_a_gutter(snapshot: SnapshotAssertion) -> None:
    text = "[\n" + "1,\n" * 997 + "nul,\n" + "nul\n"
    found = [
        Finding("unquoted_text", f"'nul' is no JSON ({line})", "write null", line=line, column=1, length=3)
        for line in (999, 1000)
    ]
    assert report(*found, text=text).render() == snapshot


def test_nothing_in_a_plan_acts_on_the_terminal() -> None:
    text = '["\x1b]0;owned\x07\x1b[2J\u202e\x9b1m\ud800", nul]'
    found = Finding(
        "unquoted_text",
        "\x1b[31m\n is no JSON",
        "\rwrite\x07 null",
        0,
        "\x1b[8m",
        "/\x1b[1m",
        line=1,
        column=text.index("nul") + 1,
        length=3,
    )
    assert report(found, text=text).render(name="\x1b[5m.json\n") == (
        "error[unquoted_text]: \\x1b[31m\\n is no JSON\n"
        " --> \\x1b[5m.json\\n:1:25\n"
        "  |\n"
        '1 | ["\\x1b]0;owned\\x07\\x1b[2J\\u202e\\x9b1m\\ud800", nul]\n'
        "  |                                               ^^^\n"
        "  = step 1 '\\x1b[8m', /\\x1b[1m\n"
        "  = help: \\rwrite\\x07 null\n"
        "\n"
        "\\x1b[5m.json\\n: 1 error\n"
        "most critical: 1:25: \\x1b[31m\\n is no JSON"
    )


def test_a_line_of_a_megabyte_is_shown_around_each_place() -> None:
    text = "[" + "nul," * 250_000 + "1]"
    found = [
        Finding("unquoted_text", f"'nul' {number}", "write null", line=1, column=4 * number + 2, length=3)
        for number in range(99)
    ]
    shown = report(*found, text=text).render()
    assert max(map(len, shown.split("\n"))) == 100
    assert shown.count("\n1 | ") == 99


@pytest.mark.parametrize(
    ("errors", "warnings", "more"),
    [
        (100, 0, []),
        (101, 0, ["...and 1 more error"]),
        (120, 3, ["...and 20 more errors and 3 more warnings"]),
        (99, 3, ["...and 2 more warnings"]),
        (0, 101, ["...and 1 more warning"]),
    ],
)
def test_at_most_a_hundred_findings_are_shown(errors: int, warnings: int, more: list[str]) -> None:
    found = [*numbered("wrong_type", errors), *numbered("comment", warnings)]
    shown = report(*found, text=None).render().split("\n\n")
    assert [block for block in shown if block.startswith("...")] == more
    assert sum("]: problem" in block for block in shown) == 100


LONG = "0123456789" * 10
EXCERPTS = {
    "a line that fits": ('{"name": "serch"}', 10, 7, 40, ('{"name": "serch"}', 9, 7)),
    "a line as wide as the window": (LONG, 100, 1, 100, (LONG, 99, 1)),
    "a place that goes on in the next line": ("[1, 2", 5, 30, 40, ("[1, 2", 4, 1)),
    "a place behind the line": ("[1, 2", 10**9, 3, 40, ("[1, 2", 5, 1)),
    "an empty line": ("", 1, 1, 40, ("", 0, 1)),
    "the beginning of a long line": (LONG, 1, 2, 20, ("01234567890123...", 0, 2)),
    "the middle of a long line": (LONG, 50, 2, 20, ("...23456789012345...", 10, 2)),
    "the end of a long line": (LONG, 100, 2, 20, ("...67890123456789", 16, 1)),
    "a long place in a long line": (LONG, 50, 10**9, 20, ("...23456789012345...", 10, 7)),
    "signs that act on a terminal": ("a\x1b\tb", 2, 2, 40, ("a\\x1b\\tb", 1, 6)),
    "a long line of wide characters": ("\u65e5" * 50, 20, 1, 20, ("..." + "\u65e5" * 4 + "...", 7, 2)),
    "wide characters and marks": ("\u65e5e\u0301!", 4, 1, 40, ("\u65e5e\u0301!", 3, 1)),
}


@pytest.mark.parametrize(("line", "column", "length", "width", "shown"), EXCERPTS.values(), ids=EXCERPTS)
def test_an_excerpt_shows_its_place(
    line: str, column: int, length: int, width: int, shown: tuple[str, int, int]
) -> None:
    assert excerpt(line, column, length, width) == shown


@given(st.text(), st.text(), st.integers(1, 20), st.integers(1, 20), st.none() | st.integers(1, 90))
def test_any_text_is_rendered_without_control_characters(
    text: str, quoted: str, column: int, length: int, width: int | None
) -> None:
    lines = len(re.split(r"\r\n|\r|\n", text))
    found = Finding("wrong_type", quoted, quoted, 0, quoted, quoted, lines, column, length)
    shown = Report((found,), (), None, [], Source(text)).render(width=width, name=quoted)
    assert shown.replace("\n", "").isprintable()
