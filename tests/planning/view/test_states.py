"""What happened to each step of a workflow run, as the page has it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from page_data import a_workflow, data_of, kept, of_memory, of_store, run_of

from planning.observe.deltas import applied_list
from planning.observe.timeline import Recent
from planning.tools import Tool, ToolError
from planning.view.document import Document
from planning.view.states import RunStates
from planning.workflow import Capabilities, Workflow, WorkflowStep, run_workflow
from planning.workflow.run.records import StepRecord, WorkflowRun
from session import Session


def records_of(data: Any) -> dict[int, Any]:
    """The records of each version, as the page makes them."""
    records, found = dict(data["records"]), {data["from"]: data["records"]}
    for change in data["changes"]:
        if "graph" in change:
            records = {}
        records = dict(records)
        for name, delta in change.get("records", {}).items():
            records[name] = applied_list(records.get(name, []), delta)
        found[change["v"]] = {name: each for name, each in records.items() if each}
    return found


def told(session: Session, step: str) -> list[Any]:
    """The records of a step without their times."""
    records: list[Any] = records_of(of_memory(session))[session.version][step]
    assert all(isinstance(each.pop("at"), float) for each in records)
    return records


def test_a_step_is_told_with_its_attempts_its_output_and_its_failure() -> None:
    session = Session()
    run_of(session)
    error = "bad cannot reach its data now. Try again later, or go on without it."
    assert told(session, "fetch") == [
        {"state": "in_progress", "attempt": 1},
        {"state": "completed", "attempt": 1, "output": "fetch"},
    ]
    assert told(session, "bad") == [
        {"state": "in_progress", "attempt": 1},
        {"state": "failed", "attempt": 1, "error": error, "code": "storage", "cause": "it is gone"},
    ]
    assert told(session, "use") == [{"state": "skipped", "after": "bad"}]


def test_the_records_of_each_version_are_those_of_the_session_also_after_a_rewind(tmp_path: Path) -> None:
    session, _ = kept(tmp_path / "plans.db", "run")
    run_of(session)
    session.rewind(3)
    session.rewind(0)
    session.rewind(4)
    run_of(session)
    for version, records in records_of(of_store(tmp_path / "plans.db", "run")).items():
        past = session.at(version)
        run = past.select_latest(WorkflowRun)
        all_records = past.select_all(StepRecord)
        kept_records = [each for each in all_records if run is not None and each.run_id == run.run_id]
        wanted: dict[str, list[tuple[Any, int]]] = {}
        for each in kept_records:
            state = "skipped" if each.skipped else each.status
            wanted.setdefault(each.step_id, []).append((state, each.attempt))
        shown = {
            name: [(each["state"], each.get("attempt", 0)) for each in found]
            for name, found in records.items()
        }
        assert shown == wanted


@pytest.mark.parametrize("most", [1, 3, 5])
def test_records_of_the_oldest_changes_are_where_the_run_begins(most: int) -> None:
    session = Session()
    run_of(session)
    document = Document(title="x", kind="session", source="x", most=most)
    document.read(Recent(session))
    data = data_of(document)
    assert len(data["changes"]) == most
    assert records_of(data) == {
        version: each for version, each in records_of(of_memory(session)).items() if version >= data["from"]
    }


def test_the_output_of_a_private_tool_is_not_told() -> None:
    tool = Tool(name="find", description="Find", function=lambda: "secret-9f1", returns_private_data=True)
    session = Session()
    run_workflow(a_workflow({"find": []}), Capabilities(tools={"find": tool}), session=session)
    assert told(session, "find")[-1] == {"state": "completed", "attempt": 1, "private": True}


def test_an_answer_is_told_at_length_and_what_leads_to_it_shortly() -> None:
    session = Session()
    tools = {"fetch": lambda: "x" * 30_000, "say": lambda: "y" * 30_000}
    run_workflow(a_workflow({"fetch": [], "say": ["fetch"]}), Capabilities(tools=tools), session=session)
    outputs = [told(session, name)[-1]["output"] for name in ("fetch", "say")]
    assert [(len(each), each[-2:]) for each in outputs] == [(2_000, "x…"), (20_000, "y…")]


def test_outputs_are_told_as_they_are_and_long_errors_are_cut() -> None:
    def fail() -> None:
        raise ToolError("z" * 2_000)

    session = Session()
    tools = {"rows": lambda: {"total": None, "rows": [1, "a"]}, "fail": fail}
    run_workflow(a_workflow({"rows": [], "fail": []}), Capabilities(tools=tools), session=session)
    assert told(session, "rows")[-1]["output"] == '{"total":null,"rows":[1,"a"]}'
    assert len(told(session, "fail")[-1]["error"]) <= 1_000


def test_a_document_by_itself_has_the_states_that_it_says() -> None:
    steps = (
        WorkflowStep(step_id="a", description="A", status="completed"),
        WorkflowStep(step_id="b", description="B", status="failed"),
        WorkflowStep(step_id="c", description="C", skipped=True),
        WorkflowStep(step_id="d", description="D"),
    )
    states = RunStates.of_document(Workflow(steps=steps)).states
    assert states == {"a": "completed", "b": "failed", "c": "skipped"}


def test_the_graph_says_what_the_document_says_of_a_step() -> None:
    step = WorkflowStep(
        step_id="ask", description="Ask for it", type="tool", name="ask", depends_on=("first",),
        inputs={"year": 2024, "of": None}, retries=2, timeout=5.0, done_check="x == 1", on_failure="continue",
    )  # fmt: skip
    plain = WorkflowStep(step_id="first", description="Think")
    graph: Any = RunStates("", Workflow(steps=(plain, step))).graph()
    places = {"x", "y", "w", "h", "text"}
    first, ask = ({name: each[name] for name in each.keys() - places} for each in graph["nodes"])
    assert first == {"id": "first", "label": "first", "detail": "thinking", "about": "Think"}
    assert ask == {
        "id": "ask", "label": "ask", "detail": "tool ask", "about": "Ask for it", "after": ["first"],
        "inputs": '{"year":2024,"of":null}', "retries": 2, "timeout": 5.0, "done_check": "x == 1",
        "on_failure": "continue",
    }  # fmt: skip
