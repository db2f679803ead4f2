"""The one model of progress: events in, state and lines out."""

from __future__ import annotations

import io
import json
from collections import Counter
from typing import Any

from cli_runs import Clock
from hypothesis import given
from hypothesis import strategies as st

from planning import Plan, PlanStep
from planning.cli.faces import Lines
from planning.cli.progress import Progress
from planning.cli.replay import replay_lines
from planning.cli.terminal import TROUBLE
from planning.cli.transcript import Call
from planning.observe.steps import RunSteps
from planning.workflow import StepFailure, Workflow, WorkflowStep

FLOW = Workflow(
    goal="Look", steps=tuple(WorkflowStep(step_id=each, description=f"Do {each}") for each in "abcd")
)


def test_a_run_goes_from_step_to_step() -> None:
    clock = Clock()
    progress, record = Progress(RunSteps(FLOW), clock), clock.record
    begun = progress.take_record(record("a", "in_progress", attempt=1))
    clock.go_on(2)
    again = progress.take_record(record("a", "in_progress", attempt=2))
    done = progress.take_record(record("a", "completed", attempt=2, called=True, output={"é": [1, None]}))
    failed = progress.take_record(record("b", "failed", error=StepFailure("it broke")))
    blocked = progress.take_record(record("c", "pending", after="b"))
    progress.take_record(record("d", "in_progress", attempt=1))
    clock.go_on(1)
    assert [*begun, *again, *done, *failed, *blocked, *progress.stop()] == [
        ("a  running   Do a", ""),
        ("a  retrying  attempt 2", ""),
        ('a  done      2.0 s  {"é":[1,null]}', ""),
        ("b  failed    it broke", "bold red"),
        ("c  blocked   step b failed", "bold red"),
        ("d  stopped   1.0 s  stopped before it was done", "yellow"),
    ]
    assert progress.tally() == "1 of 4 done, 1 failed, 1 blocked, 1 stopped"
    assert [step.state for step in progress.steps] == ["completed", "failed", "blocked", "stopped"]


def test_lines_stay_aligned_whatever_the_alphabet_of_the_ids() -> None:
    ids = ("\u6d4b\u8bd5", "e\u0301", "abcd")
    steps = tuple(WorkflowStep(step_id=each, description="x") for each in ids)
    progress, record = Progress(RunSteps(Workflow(goal="x", steps=steps))), Clock().record
    lines = [progress.take_record(record(each, "in_progress", attempt=1))[0][0] for each in ids]
    assert lines == ["\u6d4b\u8bd5  running   x", "e\u0301     running   x", "abcd  running   x"]


def test_a_record_that_shows_nothing_new_changes_nothing() -> None:
    progress, record = Progress(RunSteps(FLOW)), Clock().record
    assert progress.take_record(record("a", "in_progress", attempt=1)) != []
    assert progress.take_record(record("a", "in_progress", attempt=1, called=True)) == []
    assert progress.take_record(record("unknown", "in_progress")) == []
    assert progress.tally() == "0 of 4 done, 1 running"


def test_the_note_of_a_step_is_short_however_large_its_output_is() -> None:
    for output in ("x" * 10_000_000, ["x"] * 1_000_000, {"a": "x" * 10_000}, object()):
        progress, record = Progress(RunSteps(FLOW)), Clock().record
        ((text, _),) = progress.take_record(record("a", "completed", called=True, output=output))
        assert len(text) <= 120


def plan(*statuses: str, notes: tuple[str, ...] = (), status: Any = "active") -> Plan:
    steps = (PlanStep(f"S00{at}", f"Do {at}", None, each, notes) for at, each in enumerate(statuses, start=1))  # type: ignore[arg-type] # the tests know the words
    return Plan("Fix it", status, tuple(steps))


def test_a_plan_is_compared_with_the_one_before() -> None:
    progress = Progress()
    assert progress.take_plan(plan("in_progress", "pending")) == [
        ("New plan: Fix it. Added S001, S002.", ""),
        ("  S001  Do 1", ""),
        ("  S002  Do 2", ""),
    ]
    noted = plan("pending", notes=("no luck",))
    assert progress.take_plan(noted) == [("S001 pending: no luck. S002 was removed.", TROUBLE)]
    assert progress.take_plan(noted) == [("Nothing changed.", "")]
    assert progress.take_plan(Plan("Fix it", "abandoned")) == [("Plan abandoned.", "")]
    assert progress.take_plan(None) == [("Plan removed.", "")]
    assert (progress.steps, progress.title) == ([], "")


texts = st.text(max_size=12) | st.sampled_from(["S001", "S002", "done", "\x1b[2J", "[red]", "\x9b", "\u202e"])
names = st.sampled_from(
    [
        "planning_setup_plan",
        "planning_mark_step",
        "planning_add_step",
        "planning_update_step",
        "planning_clear_plan",
    ]
)
fields = st.sampled_from(
    ["objective", "initial_steps", "steps", "step_id", "status", "note", "title", "details"]
)
arguments = texts | st.dictionaries(fields | texts, texts | st.lists(texts, max_size=2), max_size=4)
SETUP = Call("planning_setup_plan", {"objective": "Fix the login", "initial_steps": ["Find it", "Fix it"]})


@given(st.lists(st.tuples(names | texts.map("planning_".__add__), arguments), max_size=5))
def test_whatever_a_model_sends_every_line_is_printable_and_the_state_is_that_of_the_plan(
    calls: list[tuple[str, object]],
) -> None:
    sent = [Call(name, given if isinstance(given, str) else json.dumps(given)) for name, given in calls]
    pipe, progress = io.StringIO(), Progress()
    face, ends = Lines(pipe, progress), Counter[str]()
    for end, changed in replay_lines([SETUP, *sent], progress):
        ends[end] += 1
        face.show(changed)
        kept = progress.plan
        assert kept is not None
        assert [(step.step_id, step.title, step.notes) for step in progress.steps] == [
            (step.step_id, step.title, step.notes) for step in kept.steps
        ]
    assert pipe.getvalue().replace("\n", "").isprintable()
    assert (ends.total(), ends["refused"]) == (len(calls) + 1, progress.refused)
