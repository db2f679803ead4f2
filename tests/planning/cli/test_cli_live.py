"""The live view: what stands in a terminal while a replay runs, and at its end."""

from __future__ import annotations

import pytest
from cli_runs import ERASED_LINE, TRIAGE, ascii_terminal, drawn, plain, said, terminal, written
from rich.console import Console
from syrupy.assertion import SnapshotAssertion

from planning import Plan, PlanningToolsSection, PlanStep
from planning.cli.messages import Call, calls_of
from planning.cli.replay import Changed, Tally, replay
from planning.cli.transcript import parse_transcript
from planning.cli.view_live import final_frame, frame, show_live
from session import Session

BUSY = Plan(
    "Triage the open bug reports [red]of larkspur[/] " + "and say it at length " * 9,
    "active",
    (
        PlanStep("S001", "Read all reports", None, "done", ("Six of them",)),
        PlanStep(
            "S002", "Reproduce [/] " + "the crash " * 14, "With details", "in_progress", ("First", "Second")
        ),
        PlanStep("S003", "Wait for Windows", "Two\n\tlines", "blocked", ("One\nTwo [bold]",)),
        PlanStep("S004", "Write the summary", None, "pending"),
    ),
)
MANY = Plan(
    "Do a great deal",
    "active",
    tuple(PlanStep(f"S{n:03d}", f"Step {n}", None, "pending") for n in range(1, 100)),
)


def played(console: Console, calls: tuple[Call, ...]) -> str:
    section = PlanningToolsSection(session=Session())
    show_live(console, "The prompt section.", replay(calls, section))
    return written(console)


def final(text: str) -> str:
    """What is left standing: the text after the last line that was erased."""
    return plain(text.rsplit(ERASED_LINE, 1)[-1])


@pytest.mark.parametrize("width", [20, 40, 80, 120])
def test_a_frame_fits_the_terminal(width: int, snapshot: SnapshotAssertion) -> None:
    shown = drawn(terminal(width), frame(terminal(width), BUSY, Tally(carried_out=5, refused=2), at=1))
    assert max(map(len, shown.splitlines())) <= width
    assert shown == snapshot


@pytest.mark.parametrize("width", [40, 80])
def test_the_final_frame_shows_every_word(width: int, snapshot: SnapshotAssertion) -> None:
    tally = Tally(carried_out=5, refused=2, passed_over=1)
    assert drawn(terminal(width), final_frame(terminal(width), BUSY, tally)) == snapshot


@pytest.mark.parametrize("height", [1, 6, 10, 24, 200])
@pytest.mark.parametrize("width", [40, 80])
@pytest.mark.parametrize("at", [0, 49, 98])
def test_a_frame_of_many_steps_fits_and_shows_the_one_that_changed(height: int, width: int, at: int) -> None:
    console = terminal(width, height)
    shown = drawn(console, frame(console, MANY, Tally(), at))
    assert len(shown.splitlines()) <= max(height, 6)
    assert MANY.steps[at].step_id in shown


def test_a_frame_fills_the_terminal_when_there_are_steps_enough() -> None:
    console = terminal(height=24)
    assert len(drawn(console, frame(console, MANY, Tally(), at=98)).splitlines()) == 23  # and a blank one


def test_a_step_with_a_note_counts_for_two_lines_in_a_narrow_terminal() -> None:
    noted = tuple(PlanStep(f"S{n:03d}", f"Step {n}", None, "done", ("Noted",)) for n in range(1, 30))
    console = terminal(width=40, height=24)
    shown = drawn(console, frame(console, Plan("Do it", "active", noted), Tally(), at=28))
    assert len(shown.splitlines()) == 22
    assert "S029" in shown


def test_marks_are_ascii_where_nothing_else_prints() -> None:
    console, sent = ascii_terminal()
    plan = Plan("Fix it", "active", tuple(PlanStep(s.step_id, "Step", None, s.status) for s in BUSY.steps))
    console.print(frame(console, plan, Tally()))
    steps = sent.getvalue().decode("ascii").splitlines()[-5:-1]
    assert [line[:6] for line in steps] == ["x S001", "> S002", "! S003", ". S004"]


def test_the_triage_example_leaves_its_plan_standing(snapshot: SnapshotAssertion) -> None:
    assert final(played(terminal(height=60), parse_transcript(TRIAGE.read_bytes()))) == snapshot


def test_refused_calls_stand_above_the_plan_in_their_order() -> None:
    shown = played(terminal(width=200), parse_transcript(TRIAGE.read_bytes()))
    shown = plain(shown.replace(ERASED_LINE, "\n"))
    assert [line for line in shown.splitlines() if line.startswith("refused")] == [
        "refused planning_read_plan  no plan yet; call planning_setup_plan first",
        "refused planning_setup_plan  2 problems:",
        "refused planning_mark_step  note: EM DASH (U+2014) at character 31;"
        ' only ASCII is allowed, write "-"',
        "refused planning_mark_step  status: 'completed' is unknown;"
        " did you mean done? send one of pending, in_progress, blocked, done",
        "refused planning_mark_step  step_id: the plan has no step S042; its steps are S001 to S008",
        "refused planning_mark_step  priority: unknown field; the fields are step_id, status, note",
        "refused planning_mark_step  note: blank; send 1 to 512 characters",
    ]


def test_the_plan_is_drawn_once_for_each_planning_call() -> None:
    section = PlanningToolsSection(session=Session())
    pauses = []
    calls = parse_transcript(TRIAGE.read_bytes())
    show_live(terminal(), "", replay(calls, section), pause=lambda: pauses.append(1))
    assert len(pauses) == sum(call.name.startswith("planning_") for call in calls)


def test_a_transcript_without_planning_calls_leaves_no_plan_standing() -> None:
    assert final(played(terminal(), (Call("run_tests", "{}"),))) == (
        "\nno plan\n\n0 planning calls: 0 carried out, 0 refused. Passed over 1 call to other tools.\n"
    )


def test_what_a_model_sends_does_not_act_on_the_terminal() -> None:
    hostile = said(
        ("planning_\x1b[2J", {"\x1b]0;owned\x07": 1}),
        ("planning_mark_step", {"step_id": "\x9b31m", "status": "\x1b[31m"}),
    )
    assert plain(played(terminal(), tuple(calls_of(hostile)))).replace("\n", "").isprintable()


def test_a_plan_can_change_in_every_way_while_it_is_drawn() -> None:
    calls: list[tuple[str, object]] = [
        ("planning_setup_plan", {"objective": "Fix it", "initial_steps": ["Reproduce"]}),
        ("planning_add_step", {"steps": ["Repair", "Release"]}),
        ("planning_update_step", {"step_id": "S003", "title": "Ship"}),
        ("planning_mark_step", {"step_id": "S002", "status": "done"}),
        ("planning_read_plan", {}),
        ("planning_clear_plan", {}),
    ]
    section = PlanningToolsSection(session=Session())
    assert all(isinstance(record, Changed) for record in list(replay(calls_of(said(*calls)), section))[:4])
    assert final(played(terminal(), tuple(calls_of(said(*calls))))) == (
        "\nFix it\nabandoned, 0 of 0 done\n\n\n6 planning calls: 6 carried out, 0 refused.\n"
    )
