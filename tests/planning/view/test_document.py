"""What a run did and how its steps are doing, as the data of the page; and the page as bytes."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from page_data import (
    a_workflow,
    call,
    embedded,
    eventful,
    in_memory,
    kept,
    of_memory,
    of_store,
    run_of,
    steps_of,
    with_tools,
)
from syrupy.assertion import SnapshotAssertion

from planning.observe.steps import RunSteps
from planning.observe.stores import PastStore
from planning.plan.commands import SetupPlan
from planning.suite.tools import register_plan
from planning.tools import Tool, ToolError
from planning.view.document import RunData
from planning.view.page import export_page, live_page, policy
from planning.view.sources import family_of
from planning.workflow import Capabilities, Workflow, WorkflowStep, run_workflow
from session import Session


def timeless(value: Any) -> Any:
    """The same data with the same times."""
    if isinstance(value, dict):
        fixed = {"at": 1.5, "ms": 0.5, "began": 1.5, "changed": 1.5}
        return {name: fixed.get(name, timeless(each)) for name, each in value.items()}
    return [timeless(each) for each in value] if isinstance(value, list) else value


def test_a_session_is_told_change_by_change(tmp_path: Path, snapshot: SnapshotAssertion) -> None:
    session, toolbox = eventful(tmp_path / "plans.db")
    search = with_tools(session, search=lambda query: f"3 files match {query}")
    search.call("search", {"query": "Set-Cookie"}, context={"call_id": "s1", "actor": "agent"})
    call(toolbox, "read_plan")
    call(toolbox, "clear_plan")
    data = timeless(of_store(tmp_path / "plans.db"))
    assert json.dumps(data, indent=1) == snapshot
    assert timeless(of_memory(session)["changes"]) == data["changes"]


def test_texts_of_calls_are_bounded() -> None:
    session, _ = in_memory()
    with_tools(session, echo=lambda text: text).call("echo", {"text": "x" * 40_000})
    (change,) = of_memory(session)["changes"]
    (told,) = change["calls"]
    assert (len(told["arguments"]), told["arguments"][-2:]) == (2_000, "x…")
    assert (len(told["message"]), told["characters"]) == (2_000, 80_011)


def test_a_thousand_marks_are_less_than_300_kilobytes(tmp_path: Path) -> None:
    _, toolbox = kept(tmp_path / "plans.db")
    call(toolbox, "setup_plan", objective="Measure", initial_steps=[f"Look at file {n}" for n in range(50)])
    for number in range(999):
        status = ("in_progress", "done", "pending")[number // 50 % 3]
        call(toolbox, "mark_step", step_id=f"S{number % 50 + 1:03}", status=status)
    data = of_store(tmp_path / "plans.db")
    assert len(data["changes"]) == 1_000
    assert len(json.dumps(data, separators=(",", ":"))) < 250_000


def test_the_family_is_the_forks_and_those_that_work_for_it(
    tmp_path: Path, snapshot: SnapshotAssertion
) -> None:
    path = tmp_path / "plans.db"
    lead, toolbox = kept(path, "lead")
    call(toolbox, "setup_plan", objective="Fix the login", initial_steps=["One", "Two"])
    call(toolbox, "mark_step", step_id="S001", status="done")
    lead.fork(1, session_id="what-if")
    fork, tools = kept(path, "what-if")
    call(tools, "mark_step", step_id="S002", status="done")
    fork.fork(session_id="deeper")
    worker = Session(session_id="worker", store=lead.store, parent=lead)
    helper = Session(session_id="helper", store=lead.store, parent=worker)
    for session in (worker, helper):
        register_plan(session)
        session.dispatch(SetupPlan("Help"))
    worker.fork(session_id="trial")
    call(kept(path, "alone")[1], "setup_plan", objective="Else", initial_steps=["One"])
    store = PastStore(path)
    heads = {str(head.session_id): head for head in store.sessions()}
    assert {name: head.parent for name, head in heads.items() if head.parent is not None} == {
        "worker": "lead", "helper": "worker",
    }  # fmt: skip
    found = {
        name: sorted(family_of(store, head), key=lambda each: str(each["id"])) for name, head in heads.items()
    }
    assert found.pop("alone") == []
    assert list(found.values()) == [found["lead"]] * 6
    assert "\n".join(map(str, found["lead"])) == snapshot


def told(session: Session, step: str) -> dict[str, Any]:
    """A step without its times."""
    fields: dict[str, Any] = steps_of(of_memory(session))[session.version][step]
    for span in fields.get("spans", ()):
        begin, end = span[:2]
        assert isinstance(begin, float)
        assert isinstance(end, float)
    return fields | ({"spans": [each[2:] for each in fields["spans"]]} if "spans" in fields else {})


def test_a_step_has_its_attempts_its_output_and_its_failure(snapshot: SnapshotAssertion) -> None:
    session = run_of(Session())
    assert {change.get("kind", "plan") for change in of_memory(session)["changes"]} == {"run", "failed"}
    steps = {name: told(session, name) for name in ("fetch", "bad", "use")}
    assert json.dumps(steps, indent=1) == snapshot


@pytest.mark.parametrize("limit", [1, 3, 5])
def test_steps_of_the_oldest_changes_are_where_the_run_begins(limit: int) -> None:
    session = run_of(Session())
    data = of_memory(session, limit=limit)
    assert len(data["changes"]) == limit
    whole = steps_of(of_memory(session))
    assert steps_of(data) == {version: each for version, each in whole.items() if version >= data["from"]}


@pytest.mark.parametrize("is_stored", [False, True])
def test_inputs_are_as_they_were_resolved_unless_they_are_private(is_stored: bool, tmp_path: Path) -> None:
    def fail(by: str) -> str:
        raise ConnectionError(by)

    tools = {
        "find": lambda: [{"id": 7}],
        "show": lambda row, by, n: [row, by, n],
        "refuse": fail,
        "hide": Tool("hide", "Hide", lambda by: by, returns_private_data=True),
        "fail": Tool("fail", "Fail", fail, returns_private_data=True),
    }
    prompt: dict[str, Any] = {"by": "${user_prompt}"}
    inputs = {"refuse": prompt, "hide": prompt, "fail": prompt}
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


def test_the_graph_says_what_the_document_says_of_a_step(snapshot: SnapshotAssertion) -> None:
    step = WorkflowStep(
        step_id="ask", description="Ask for it", type="tool", name="ask", depends_on=("first",),
        inputs={"year": 2024, "of": None}, retries=2, timeout=5.0, done_check="x == 1", on_failure="continue",
    )  # fmt: skip
    plain = WorkflowStep(step_id="first", description="Think")
    graph: Any = RunData(RunSteps(Workflow(steps=(plain, step)))).graph
    places = {"x", "y", "w", "h", "text"}
    nodes = [{name: each[name] for name in sorted(each.keys() - places)} for each in graph["nodes"]]
    assert json.dumps(nodes, indent=1) == snapshot


# The page as bytes

PAGE = resources.files("planning.view").joinpath("page.html").read_text("utf-8")


def hashes(pattern: str) -> str:
    (found,) = re.findall(pattern, PAGE, re.DOTALL)
    return f"'sha256-{base64.b64encode(hashlib.sha256(found.encode()).digest()).decode()}'"


def test_the_page_has_one_style_and_one_script_and_is_less_than_120_kilobytes() -> None:
    data, charset = '<script type="application/json" id="data">', '<meta charset="utf-8">'
    assert [PAGE.count(tag) for tag in ("<style>", "<script>", data, charset)] == [1] * 4
    assert len(export_page("{}")) < 120_000


def test_a_browser_lets_it_use_its_own_style_and_script_and_nothing_else() -> None:
    rules = (
        f"default-src 'none'; style-src {hashes('<style>(.*?)</style>')}; "
        f"script-src {hashes('<script>(.*?)</script>')}; img-src data:; base-uri 'none'; form-action 'none'"
    )
    assert policy(is_live=False) == rules
    assert policy(is_live=True) == rules.replace("img-src data:;", "img-src data:; connect-src 'self';")
    for page, is_live in ((export_page("{}"), False), (live_page("{}"), True)):
        meta = f'<meta http-equiv="Content-Security-Policy" content="{policy(is_live=is_live)}">'
        assert page.decode().count(meta) == 1
        assert page.decode().index(meta) < page.decode().index("<style>")


@pytest.mark.parametrize(
    "text", ["</SCRIPT >", "<!--<script>", "]]>", "\u2028\u2029", "\\", "\x00\x1b", "\\1 \\g<0>", "é"]
)
def test_no_text_of_the_data_acts_in_the_page(text: str) -> None:
    page = export_page(json.dumps({"title": text}, ensure_ascii=False))
    assert embedded(page) == {"mode": "export", "run": {"title": text}}
    assert page.decode().count("<") == export_page("{}").decode().count("<")
