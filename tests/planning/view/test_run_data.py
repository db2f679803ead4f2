"""How the steps of a workflow run are doing, as the page has it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from page_data import a_workflow, data_of, kept, of_memory, of_store, run_of, steps_of

from planning.observe.steps import RunSteps
from planning.observe.timeline import Recent
from planning.tools import Tool, ToolError
from planning.view.document import Document, RunData
from planning.workflow import Capabilities, Workflow, WorkflowStep, run_workflow
from session import Session


def told(session: Session, step: str) -> dict[str, Any]:
    """A step without its times."""
    fields: dict[str, Any] = steps_of(of_memory(session))[session.version][step]
    for span in fields.get("spans", ()):
        begin, end = span[:2]
        assert isinstance(begin, float)
        assert isinstance(end, float)
    return fields | ({"spans": [each[2:] for each in fields["spans"]]} if "spans" in fields else {})


def test_a_step_has_its_attempts_its_output_and_its_failure() -> None:
    session = Session()
    run_of(session)
    error = "bad cannot reach its data now. Try again later, or continue without it."
    assert told(session, "fetch") == {"state": "completed", "spans": [["completed", 1]], "output": "fetch"}
    assert told(session, "bad") == {
        "state": "failed", "spans": [["failed", 1]], "error": error, "code": "storage", "cause": "it is gone",
    }  # fmt: skip
    assert told(session, "use") == {"state": "skipped", "after": "bad"}


def test_the_steps_of_each_version_are_those_of_the_session_also_after_a_rewind(tmp_path: Path) -> None:
    session, _ = kept(tmp_path / "plans.db", "run")
    run_of(session)
    session.rewind(3)
    session.rewind(0)
    session.rewind(4)
    run_of(session)
    for version, steps in steps_of(of_store(tmp_path / "plans.db", "run")).items():
        assert steps == RunData(RunSteps.of(session.at(version))).fields


@pytest.mark.parametrize("limit", [1, 3, 5])
def test_steps_of_the_oldest_changes_are_where_the_run_begins(limit: int) -> None:
    session = Session()
    run_of(session)
    document = Document(title="x", kind="session", source="x", limit=limit)
    document.read(Recent(session))
    data = data_of(document)
    assert len(data["changes"]) == limit
    whole = steps_of(of_memory(session))
    assert steps_of(data) == {version: each for version, each in whole.items() if version >= data["from"]}


@pytest.mark.parametrize("is_stored", [False, True])
def test_inputs_are_as_they_were_resolved_but_not_those_of_a_private_tool(
    is_stored: bool, tmp_path: Path
) -> None:
    def fail(by: str) -> str:
        raise ConnectionError(by)

    tools = {
        "find": lambda: [{"id": 7}],
        "show": lambda row, by, n: [row, by, n],
        "refuse": fail,
        "hide": Tool("hide", "Hide", lambda by: by, returns_private_data=True),
        "fail": Tool("fail", "Fail", fail, returns_private_data=True),
    }
    inputs: dict[str, dict[str, Any]] = {
        name: {"by": "${user_prompt}"} for name in ("refuse", "hide", "fail")
    }
    inputs["show"] = {"row": "${find.output.0}", "by": "for ${user_prompt}", "n": 1}
    steps = tuple(
        WorkflowStep(
            step_id=name, description=name, type="tool", name=name, inputs=inputs.get(name, {}),
            depends_on=("find",) if name == "show" else (), on_failure="continue",
        )
        for name in tools
    )  # fmt: skip
    session = kept(tmp_path / "plans.db")[0] if is_stored else Session()
    run_workflow(Workflow(steps=steps), Capabilities(tools=tools), session=session, user_prompt="ann-9f1")
    data = of_store(tmp_path / "plans.db") if is_stored else of_memory(session)
    versions = list(steps_of(data).values())
    running = next(each for each in versions if each.get("show", {}).get("state") == "in_progress")
    shown = versions[-1]
    resolved = '{"row":{"id":7},"by":"for ann-9f1","n":1}'
    assert shown["show"]["inputs"] == resolved
    if is_stored:  # in memory, nothing shows yet that these are not private
        assert (running["show"]["inputs"], shown["refuse"]["inputs"]) == (resolved, '{"by":"ann-9f1"}')
    assert [shown[name]["state"] for name in inputs] == ["failed", "completed", "failed", "completed"]
    assert "9f1" not in str([shown["find"], shown["hide"], shown["fail"]])
    assert next(each["graph"] for each in data["changes"] if "graph" in each)["prompt"] == "ann-9f1"


def test_an_answer_is_told_at_length_and_what_leads_to_it_shortly() -> None:
    def fail() -> None:
        raise ToolError("z" * 2_000)

    session = Session()
    tools = {
        "fetch": lambda: "x" * 30_000,
        "say": lambda: "y" * 30_000,
        "rows": lambda: {"a": [None]},
        "fail": fail,
    }
    steps: dict[str, list[str]] = {"fetch": [], "say": ["fetch"], "rows": [], "fail": []}
    run_workflow(a_workflow(steps), Capabilities(tools=tools), session=session)
    outputs = [told(session, name)["output"] for name in ("fetch", "say")]
    assert [(len(each), each[-2:]) for each in outputs] == [(2_000, "x…"), (20_000, "y…")]
    assert told(session, "rows")["output"] == '{"a":[null]}'
    assert len(told(session, "fail")["error"]) <= 1_000


def test_a_document_by_itself_has_the_states_that_it_says() -> None:
    steps = (
        WorkflowStep(step_id="a", description="A", status="completed"),
        WorkflowStep(step_id="b", description="B", status="failed"),
        WorkflowStep(step_id="c", description="C", skipped=True),
        WorkflowStep(step_id="d", description="D"),
    )
    assert RunData(RunSteps(Workflow(steps=steps))).fields == {
        "a": {"state": "completed"}, "b": {"state": "failed"}, "c": {"state": "skipped"},
    }  # fmt: skip


def test_the_graph_says_what_the_document_says_of_a_step() -> None:
    step = WorkflowStep(
        step_id="ask", description="Ask for it", type="tool", name="ask", depends_on=("first",),
        inputs={"year": 2024, "of": None}, retries=2, timeout=5.0, done_check="x == 1", on_failure="continue",
    )  # fmt: skip
    plain = WorkflowStep(step_id="first", description="Think")
    graph: Any = RunData(RunSteps(Workflow(steps=(plain, step)))).graph
    places = {"x", "y", "w", "h", "text"}
    first, ask = ({name: each[name] for name in each.keys() - places} for each in graph["nodes"])
    assert first == {"id": "first", "label": "first", "detail": "thinking", "about": "Think"}
    assert ask == {
        "id": "ask", "label": "ask", "detail": "tool ask", "about": "Ask for it", "after": ["first"],
        "inputs": '{"year":2024,"of":null}', "retries": 2, "timeout": 5.0, "done_check": "x == 1",
        "on_failure": "continue", "answer": True,
    }  # fmt: skip
