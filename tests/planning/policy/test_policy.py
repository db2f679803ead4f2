"""What a policy takes and refuses, what a model reads of it, and what its refusals say to do."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable
from pathlib import Path
from time import sleep
from typing import Any
from unicodedata import normalize

import attrs
import pytest
from policy_cases import EVERYTHING, Agent
from syrupy.assertion import SnapshotAssertion

from planning import PlanningToolsSection, PlanPolicy, ToolError, plan_to_dict, ready_steps, tool_definitions
from planning.plan.commands import MarkStep, RejectPlan
from planning.plan.model import Plan
from session import Session
from session.stores import SqliteStore

POLICIES = {
    "mark_and_read": PlanPolicy(tools=("mark", "read")),
    "without_setup": PlanPolicy(tools=("add", "mark")),
    "mark_and_clear_in_any_language": PlanPolicy(tools=("mark", "clear"), text="unicode"),
    "evidence": PlanPolicy(evidence="required"),
    "evidence_unique_and_verified": PlanPolicy(evidence="unique", verify=lambda _step, text: text == "ok"),
    "approval": PlanPolicy(approval=True),
    "replace": PlanPolicy(replace="refuse_unfinished"),
    "dependencies": PlanPolicy(dependencies=True),
    "most_in_progress": PlanPolicy(most_in_progress=1),
    "batch_marks": PlanPolicy(batch_marks=True),
    "agent_edits": PlanPolicy(agent_edits=True),
}


REFUSED: list[dict[str, Any]] = [
    {"tools": "mark"},
    {"tools": ()},
    {"tools": ("mark", "remove")},
    {"tools": ("mark", "delete"), "agent_edits": True},
    {"evidence": True},
    {"verify": len},
    {"evidence": "required", "verify": 1},
    *({"verify_timeout": seconds} for seconds in (0, float("nan"), 3600.5, "1")),
    {"stale_after": 0},
    {"finish_gate": True},
    {"most_in_progress": 1.0},
    *({flag: "yes"} for flag in ("approval", "dependencies", "batch_marks", "agent_edits")),
    {"replace": "refuse"},
    {"text": "utf-8"},
    {"offer": "some"},
]


def test_a_setting_that_makes_no_sense_is_refused(snapshot: SnapshotAssertion) -> None:
    said = []
    for settings in REFUSED:
        with pytest.raises((TypeError, ValueError)) as caught:
            PlanPolicy(**settings)
        said.append(f"{settings}\n{caught.value}\n")
    assert "\n".join(said) == snapshot


def test_a_setting_at_its_limit_is_taken() -> None:
    policy = PlanPolicy(verify_timeout=3600, stale_after=1, finish_gate=1, most_in_progress=1)
    assert (policy.verify_timeout, PlanPolicy().verify_timeout) == (3600, 30)


@pytest.mark.parametrize("tools", [("planning_mark_step", "read"), ["mark_step", "planning_read_plan"]])
def test_tools_are_named_short_or_long(tools: Any) -> None:
    assert PlanPolicy(tools=tools).names == {"planning_mark_step", "planning_read_plan"}


@pytest.mark.parametrize("name", POLICIES)
def test_a_model_reads_copy_and_schemas_of_its_own_tools_alone(
    name: str, snapshot: SnapshotAssertion
) -> None:
    section = PlanningToolsSection(session=Session(), policy=POLICIES[name])
    definitions = tool_definitions(tools=section)
    offered = {each.name for each in section.tools()}
    every = {each.name for each in PlanningToolsSection(session=Session(), policy=EVERYTHING).tools()}
    assert not any(other in section.body() + json.dumps(definitions) for other in every - offered)
    assert f"{section.body()}\n\n{json.dumps(definitions, indent=1)}\n" == snapshot


def test_without_settings_a_policy_changes_no_character() -> None:
    with_policy = PlanningToolsSection(session=Session(), policy=PlanPolicy())
    without = PlanningToolsSection(session=Session())
    assert with_policy.body() == without.body()
    assert tool_definitions(tools=with_policy) == tool_definitions(tools=without)


TWO = ["Look", {"title": "Leap", "depends_on": 1}]
STEPS: list[Any] = [TWO, ["\u4e2d"], [None], [["Look"]], "Look", {"title": "Look"}]


def test_steps_in_other_forms_are_taken_or_refused_with_dependencies_too(snapshot: SnapshotAssertion) -> None:
    policy = PlanPolicy(dependencies=True)
    said = [Agent(policy).call("setup_plan", objective="o", initial_steps=steps) for steps in STEPS]
    assert "\n".join(said) == snapshot


def test_twenty_steps_to_their_end_cost_under_six_thousand_characters() -> None:
    agent = Agent(PlanPolicy(batch_marks=True))
    titles = [f"Step {number} of the work" for number in range(1, 21)]
    text = agent.section.body() + json.dumps(tool_definitions(tools=agent.section))
    calls: list[tuple[str, dict[str, Any]]] = [("setup_plan", {"objective": "o", "initial_steps": titles})]
    for first in range(1, 21, 4):
        done = [{"step_id": f"S{number:03d}", "status": "done"} for number in range(first, first + 4)]
        calls.append(("mark_step", {"marks": done}))
    text += "".join(json.dumps(arguments) + agent.call(name, **arguments) for name, arguments in calls)
    plan = agent.session.select_latest(Plan)
    assert plan is not None and plan.status == "completed"
    assert len(text) < 6_000


@pytest.mark.parametrize("needed", ["chain", "fan", "star"])
def test_ten_thousand_dependencies_are_no_problem_and_the_refusal_is_short(needed: str) -> None:
    count = 10_000
    given: dict[str, Any] = {"chain": lambda at: [at] if at else [], "fan": lambda at: [1] if at else [],
                             "star": lambda at: list(range(1, count)) if at == count - 1 else []}  # fmt: skip
    steps = [{"title": f"t{at}", "depends_on": given[needed](at)} for at in range(count)]
    agent = Agent(PlanPolicy(dependencies=True)).plans(*steps)
    ready = [step.step_id for step in ready_steps(agent.session)]
    assert len(ready) == (count - 1 if needed == "star" else 1)
    refused = agent.mark(count, "in_progress")
    assert "do S001 first" in refused
    assert len(refused) < 400


async def accepts(_step: Any, text: str) -> bool:
    return text == "seen"


def raises(_step: Any, _text: str) -> bool:
    raise RuntimeError("secret")


@pytest.mark.parametrize(
    ("verify", "message"),
    [
        (lambda _step, text: text == "seen", "S001 done. Plan completed."),
        (accepts, "S001 done. Plan completed."),
        (lambda _step, _text: False,
         "Refused, nothing changed. 'seen' is not evidence for S001: the host does not accept it; call a "
         "tool that does the work of S001 first, or send text that shows it"),
        (raises,
         "the evidence for S001 could not be checked (RuntimeError); send it again, or send other evidence"),
        (lambda _step, _text: "yes",
         "the evidence for S001 could not be checked (TypeError); send it again, or send other evidence"),
        (lambda _step, _text: sleep(1), "the evidence for S001 was not checked in time; send it again"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_async", [False, True])
def test_what_verify_says_decides_about_text(
    verify: Any, message: str, is_async: bool, opened: Callable[[], SqliteStore]
) -> None:
    session = Session(store=opened(), session_id="s")
    agent = Agent(PlanPolicy(evidence="required", verify=verify, verify_timeout=0.2), session).plans("A")
    arguments = {"step_id": 1, "status": "done", "evidence": ["seen"]}
    assert agent.call_in(is_async, "planning_mark_step", arguments) == message
    found = plan_to_dict(session)
    assert found is not None
    assert found["steps"][0].get("proof") == ("verified" if message.startswith("S001") else None)


async def is_late(_step: Any, _text: str) -> bool:
    await asyncio.sleep(20)
    return True


LATE = "verify took longer than 0.05 s and timed out; call it again, or continue without it"


@pytest.mark.parametrize(
    ("verify", "cause"),
    [
        (lambda _step, _text: "yes", "verify returned str, not a bool"),
        (lambda _step, _text: sleep(1), LATE),
        (is_late, LATE),
    ],
)
def test_the_host_reads_why_evidence_could_not_be_checked(verify: Any, cause: str) -> None:
    agent = Agent(PlanPolicy(evidence="required", verify=verify, verify_timeout=0.05)).plans("A")
    with pytest.raises(ToolError) as caught:
        agent.toolbox.invoke("planning_mark_step", {"step_id": 1, "status": "done", "evidence": ["seen"]})
    assert str(caught.value.__cause__) == cause


def test_a_command_from_python_may_come_without_evidence() -> None:
    agent = Agent(PlanPolicy(evidence="required", verify=lambda *_: True)).plans("A")
    with pytest.raises(ToolError) as caught:
        agent.toolbox.invoke("planning_mark_step", MarkStep("S001", "done"))
    assert str(caught.value) == (
        "S001 needs evidence; call a tool that does the work of S001 first, or send text that shows it"
    )


def test_no_tool_is_named_that_the_agent_does_not_have() -> None:
    agent = Agent(PlanPolicy(tools=("setup", "mark"), replace="refuse_unfinished")).plans("A")
    assert agent.call("setup_plan", objective="x") == (
        "Refused, nothing changed. S001 is not done; finish the plan before you set up another"
    )


def test_verify_is_asked_for_each_text_of_each_step() -> None:
    asked = list[tuple[str, str]]()

    def verify(step: Any, text: str) -> bool:
        asked.append((step.step_id, text))
        return True

    agent = Agent(PlanPolicy(evidence="required", verify=verify, batch_marks=True)).plans("A", "B", "C")
    agent.call("work")
    marks = [{"step_id": 1, "status": "done", "evidence": ["a", "C1", "b"]},
             {"step_id": 2, "status": "done", "evidence": ["c"]},
             {"step_id": 3, "status": "blocked", "evidence": ["d"]}]  # fmt: skip
    said = "S001 to S002 done, S003 blocked. No other step is open."
    assert agent.call("mark_step", marks=marks) == said
    agent.mark(3, "done", "C2")  # there is no such call
    assert asked == [("S001", "a"), ("S001", "b"), ("S002", "c")]


def test_verify_does_not_hold_the_event_loop() -> None:
    go = threading.Event()
    agent = Agent(PlanPolicy(evidence="required", verify=lambda *_: go.wait(10))).plans("A")
    arguments = {"step_id": 1, "status": "done", "evidence": ["seen"]}

    async def main() -> str:
        call = asyncio.ensure_future(agent.toolbox.acall("planning_mark_step", arguments))
        await asyncio.sleep(0.01)
        go.set()
        return (await call).message

    assert asyncio.run(main()) == "S001 done. Plan completed."


def test_what_is_too_much_or_too_little_is_refused_and_what_says_what_is_so_needs_no_evidence(
    snapshot: SnapshotAssertion,
) -> None:
    agent = Agent(PlanPolicy(evidence="required", verify=lambda *_: True, batch_marks=True)).plans("A", "B")
    blocked = {"step_id": 1, "status": "blocked"}
    for arguments in (
        {"marks": [blocked] * 101},
        {"marks": [blocked] * 100},
        {"step_id": 1, "marks": [blocked]},
        {},
    ):
        agent.call("mark_step", **arguments)
    agent.call("work")
    agent.mark("S001", "done", "C1")
    agent.marks(("S001", "done"), ("S002", "in_progress"))
    agent.marks(("S001", "done"), ("S002", "done"))
    agent.call("mark_step", marks=[{"step_id": "S001", "status": "done", "note": "Seen"}])
    assert agent.conversation() == snapshot


ONE = {"step_id": 1, "status": "In Progress", "note": None}


@pytest.mark.parametrize("form", [[ONE], json.dumps([ONE]), [json.dumps(ONE)], json.dumps([json.dumps(ONE)])])
@pytest.mark.parametrize("is_text", [False, True])
def test_marks_as_text_are_read_as_an_array_is(form: Any, *, is_text: bool) -> None:
    box = Agent(PlanPolicy(batch_marks=True)).plans("A").toolbox
    arguments = {"marks": form}
    result = box.call("planning_mark_step", json.dumps(arguments) if is_text else arguments)
    assert (result.message, result.value) == ("S001 in_progress.", MarkStep("S001", "in_progress"))


@pytest.mark.parametrize("evidence", ["C1", "c01", ["C1"], '["C1"]'])
@pytest.mark.parametrize("form", ["one", "several", "text"])
def test_one_piece_of_evidence_needs_no_array(evidence: Any, form: str) -> None:
    agent = Agent(PlanPolicy(evidence="required", batch_marks=True)).plans("A")
    agent.call("work")
    mark = {"step_id": "S001", "status": "done", "evidence": evidence}
    several = json.dumps([mark]) if form == "text" else [mark]
    arguments: dict[str, Any] = mark if form == "one" else {"marks": several}
    assert agent.call("mark_step", **arguments) == "S001 done. Plan completed."


@pytest.mark.parametrize("depends_on", ["1", 1, "S001", "A", '["A"]', "[1]", [1]])
@pytest.mark.parametrize("is_text", [False, True])
def test_one_dependency_needs_no_array(depends_on: Any, *, is_text: bool) -> None:
    agent = Agent(PlanPolicy(dependencies=True)).plans("A")
    steps = [{"title": "A"}, {"title": "B", "depends_on": depends_on}]
    agent.call("setup_plan", objective="Ship it", initial_steps=json.dumps(steps) if is_text else steps)
    assert agent.mark(2, "done") == (
        "Refused, nothing changed. S002 depends on S001, which is not done; do S001 first"
    )


def test_each_tool_takes_any_language_and_a_title_composed_or_not(snapshot: SnapshotAssertion) -> None:
    agent = Agent(PlanPolicy(text="unicode", agent_edits=True, dependencies=True))
    decomposed = normalize("NFD", "\u00dcberpr\u00fcfung " * 13)
    agent.plans({"title": decomposed}, {"title": "测试", "depends_on": [decomposed]})
    agent.call("add_step", steps=[{"title": "写", "depends_on": ["测试"]}])
    agent.mark(3, "done")
    agent.call("update_step", step_id="S003", details="أ\nب")
    agent.call("mark_step", step_id="S001", status="done", note="完成")
    agent.mark("步骤", "done")
    agent.call("update_step", step_id="步骤", title="x")
    agent.call("move_step", step_id="步骤", index=0)
    agent.call("remove_step", step_id="步骤")
    assert agent.conversation() == snapshot


NEW = {"title": "写", "details": "写"}


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("setup_plan", {"objective": "写", "initial_steps": [NEW]}),
        ("add_step", {"steps": [NEW]}),
        ("update_step", {"step_id": "写", **NEW}),
        ("mark_step", {"step_id": "写", "status": "done", "note": "写"}),
        ("mark_step", {"marks": [{"step_id": "写", "status": "done", "note": "写"}]}),
        ("remove_step", {"step_id": "写"}),
        ("move_step", {"step_id": "写", "index": 0}),
    ],
)
@pytest.mark.parametrize("dependencies", [False, True])
def test_the_problems_of_a_malformed_call_are_those_of_the_language(
    name: str, arguments: dict[str, Any], *, dependencies: bool
) -> None:
    policy = PlanPolicy(text="unicode", agent_edits=True, batch_marks=True, dependencies=dependencies)
    said = Agent(policy).plans("写").call(name, **arguments, x=1)
    assert "x: unknown field; the fields are " in said
    assert "ASCII" not in said


def messages() -> dict[str, str]:
    """Each refusal of a policy, as a model reads it, by the words of the page for it."""
    evidence, unique = PlanPolicy(evidence="required"), PlanPolicy(evidence="unique")
    held = PlanPolicy(evidence="required", verify=lambda _step, _text: False)
    approval, batch = PlanPolicy(approval=True), PlanPolicy(evidence="required", batch_marks=True)
    failed, early, unknown = (Agent(evidence).plans("A") for _ in range(3))
    failed.call("broken")
    early.call("work")
    early.mark(1, "in_progress")
    early.call("work")
    unknown.call("work")
    used = Agent(unique).plans("A", "B")
    used.call("work")
    used.mark(1, "done", "C1")
    chain = ("A", {"title": "B", "depends_on": [1]}, {"title": "C", "depends_on": [2]})
    busy = Agent(PlanPolicy(most_in_progress=1)).plans("A", "B")
    busy.mark(1, "in_progress")
    waiting, rejected, abandoned = (Agent(approval).plans("A", is_approved=False) for _ in range(3))
    rejected.session.dispatch(RejectPlan("too short"))
    abandoned.call("clear_plan")
    open_ = Agent(PlanPolicy(replace="refuse_unfinished")).plans("A", "B")
    added = Agent(approval).plans("A")
    added.call("add_step", steps=["B"])
    return {
        "no evidence, no call to cite": Agent(evidence).plans("A").mark(1, "done"),
        "the call failed": failed.mark(1, "done", "C1"),
        "the call is too old": early.mark(1, "done", "C1"),
        "there is no such call": unknown.mark(1, "done", "C9"),
        "it proves another step": used.mark(2, "done", "C1"),
        "`verify` said no": Agent(held).plans("A").mark(1, "done", "trust me"),
        "a prerequisite is open": Agent(PlanPolicy(dependencies=True)).plans(*chain).mark(3, "done"),
        "too many in progress": busy.mark(2, "in_progress"),
        "the plan waits": waiting.call("work"),
        "the plan was abandoned": abandoned.call("work"),
        "the plan was rejected": rejected.call("work"),
        "a step waits": added.mark(2, "in_progress"),
        "open steps would be dropped": open_.call("setup_plan", objective="x"),
        "begun and done in one call": Agent(batch)
        .plans("A")
        .marks(("S001", "in_progress"), ("S001", "done")),
    }


def test_the_page_has_every_message_and_every_setting() -> None:
    page = (Path(__file__).parents[3] / "specs" / "POLICY.md").read_text(encoding="utf-8")
    table = page.partition("\n## Messages\n")[2].partition("\n### ")[0]
    shown = {
        when: text if "was not called" in text else f"Refused, nothing changed. {text}"
        for when, text in re.findall(r"^\| (.+) \| `(.+)` \|$", table, re.MULTILINE)
    }
    elsewhere = {"the section takes none", "the plan of the parent waits"}
    assert {when: text for when, text in shown.items() if when not in elsewhere} == messages()
    settings = {line.strip("| `").partition("=")[0] for line in page.splitlines() if line.startswith("| `")}
    fields = {each.name for each in attrs.fields(PlanPolicy)} - {"verify_timeout"}
    assert settings >= fields
    assert "verify_timeout" in page
