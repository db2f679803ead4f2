"""The live page: it follows a session, lists the sessions, and its buttons change a plan with a policy."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from browser import Page
from page_data import a_run_of, a_workflow, call, in_memory, of_memory, recorded, serving, waiting
from page_stage import Opened, Stage, at
from syrupy.assertion import SnapshotAssertion
from test_page import violations

from planning import Toolbox
from planning.plan.commands import ApprovePlan, RejectPlan, RemoveStep
from planning.view.sources import StoreSource
from planning.workflow import Capabilities, Workflow, WorkflowStep, run_workflow
from planning.workflow.run.records import new_token
from session import Session

pytestmark = pytest.mark.browser


def a_run(changes: int) -> Any:
    session, toolbox = in_memory()
    call(toolbox, "setup_plan", objective="Fix it", initial_steps=["Look", "Mend", "Tell"])
    for number in range(changes - 1):
        status = ("in_progress", "done")[number // 3 % 2]
        call(toolbox, "mark_step", step_id=f"S00{number % 3 + 1}", status=status)
    return of_memory(session)


def test_who_looks_at_an_old_version_stays_there(opened: Opened, stage: Stage) -> None:
    run = a_run(5)
    page = opened(stage.showing(run, 3))
    at(page, 3)
    page.press("ArrowLeft")
    stage.say("change", *run["changes"][3:])
    at(page, 2, 5)
    assert page.text("#live") == "Live, 3 newer"
    assert page.evaluate("$('live').getAttribute('aria-pressed')") == "false"
    page.click("#live")
    assert page.text("#where") == "Version 5 of 5"
    assert page.evaluate("$('live').getAttribute('aria-pressed')") == "true"


def test_it_connects_again_and_asks_for_what_came_after(opened: Opened, stage: Stage) -> None:
    run = a_run(6)
    page = opened(stage.showing(run, 2))
    at(page, 2)
    stage.say("change", run["changes"][2])
    at(page, 3)
    stage.drop()
    page.wait("notes.lost !== null")
    lost = "The connection is lost. What is below may be old. The page keeps trying to connect."
    assert page.text("#notes") == lost
    stage.say("change", *run["changes"][3:])
    at(page, 6)
    assert page.text("#notes") == ""
    asked = [each for each in stage.asked if "events" in each]
    assert asked == [f"/T/events/one?after={version}" for version in (2, 3)]


@pytest.mark.parametrize(
    ("state", "said"),
    [
        ("finished", "The run is finished. The server has ended; this page stays as it is."),
        ("failed", "The run has failed. The server has ended; this page stays as it is."),
        ("stopped", "The run is stopped. The server has ended; this page stays as it is."),
        ("working", "The server has ended. What is below may be old."),
    ],
)
def test_an_ended_server_is_no_lost_connection(opened: Opened, stage: Stage, state: str, said: str) -> None:
    run = a_run(3)
    page = opened(stage.showing({**run, "health": {**run["health"], "state": state}}))
    at(page, 3)
    stage.say("end", None)
    page.wait(f"$('notes').innerText === {json.dumps(said)}")
    assert not page.evaluate("$('live').checkVisibility()")
    page.press("ArrowLeft")
    assert page.text("#where") == "Version 2 of 3"
    stage.drop()
    assert len([each for each in stage.asked if "events" in each]) == 1


def test_a_run_that_is_over_is_finished_when_the_connection_is_lost(opened: Opened, stage: Stage) -> None:
    run = a_run(3)
    page = opened(stage.showing({**run, "health": {**run["health"], "state": "finished"}}, 2))
    at(page, 2)
    stage.say("change", run["changes"][2])
    at(page, 3)
    stage.shutdown()
    stage.server_close()
    stage.drop()
    page.wait("notes.over !== null")
    said = "The run is finished; this page stays as it is."
    notes = page.evaluate("Object.fromEntries(Object.entries(notes).filter(([, text]) => text))")
    assert notes == {"over": said}


SHOWN = "['graph', 'times', 'step', 'answer', 'change', 'totals'].filter(name => $(name).checkVisibility())"


@pytest.mark.parametrize(
    ("fails", "keys", "shown", "place", "text"),
    [
        ("", "", ["graph", "times", "answer"], "#answer", "Answer\nb"),
        ("a", "", ["graph", "times", "step"], "#step .wrong", "a is gone"),
        ("a", "#tab-totals", ["times", "change", "totals"], "#where", "Version "),
    ],
    ids=["answer", "failure", "choice of the reader"],
)
def test_a_page_that_follows_a_run_shows_at_its_end(
    opened: Opened, stage: Stage, fails: str, keys: str, shown: list[str], place: str, text: str
) -> None:
    run = a_run_of({"a": [], "b": ["a"]}, fails)
    page = opened(stage.showing(run, 1), width=1440)
    at(page, 1)
    if keys:
        page.click(keys)
    stage.say("change", *run["changes"][1:])
    at(page, len(run["changes"]))
    assert page.evaluate(SHOWN) == shown
    assert page.text(place).startswith(text)


def test_a_failed_run_says_so_in_red_with_its_error_and_its_own_names(opened: Opened, stage: Stage) -> None:
    session = Session()
    long = "x" * 400

    def boom() -> None:
        raise ConnectionError(f"refused {long}")

    first = WorkflowStep(step_id="S002", description="Fetch it", type="tool", name="boom")
    second = WorkflowStep(step_id="S001", description="Use it", depends_on=("S002",))
    run_workflow(
        Workflow(goal="Load", steps=(first, second)), Capabilities(tools={"boom": boom}), session=session
    )
    page = opened(stage.showing(of_memory(session)))
    page.wait("timeline !== null")
    assert page.text("#state").startswith("failed\n0 of 2 done\nS002 Fetch it\nafter ")
    assert page.text("#error") == f"S002: refused {long[:286]}… Show all 414 characters"
    red = page.evaluate("getComputedStyle($('status').firstChild).backgroundColor")
    assert red == page.evaluate("getComputedStyle($('error')).color")
    assert page.evaluate("document.title").startswith("failed: Load ")
    assert len(page.texts("h1, #plan-summary h2")) == 1
    page.click("#tab-plan")
    assert page.texts(".step .id") == ["S002 S001", "S001 S002"]
    page.click("#tab-changes")
    page.press("Home")
    assert page.text("#state").startswith("failed")
    page.press("ArrowRight")
    assert page.texts(".step .id") == ["S002 S001", "S001 S002"]
    page.click("#tab-changes")
    assert page.text("#changes-box .entry[aria-current] .body").endswith("Added S002, S001.")


def test_the_header_follows_the_health(opened: Opened, stage: Stage, snapshot: SnapshotAssertion) -> None:
    page = opened(stage.showing(a_run(2)))
    page.wait("timeline !== null")
    assert page.text("#state").startswith("working\n0 of 3 done\nS001 Look\nfor ")
    common = {"objective": "Fix it", "total": 3, "began": 1_795_413_550, "changed": 1_795_413_555.25}
    said = {}
    for state, done in (("waiting", 1), ("stopped", 1), ("finished", 3)):
        more = {"step": "S002", "title": "Mend", "others": 2} if done == 1 else {}
        stage.say("health", {"state": state, "done": done, **common, **more})
        page.wait(f"run.health.state === '{state}'")
        said[state] = re.sub(r"(last change|\nfor) .*", r"\1 ...", page.text("#state"))
    assert json.dumps(said, indent=1) == snapshot
    assert page.evaluate("[$('progress').value, $('progress').max]") == [3, 3]
    stage.say("health", {})
    page.wait("$('state').hidden")


def test_a_run_that_was_cut_short_shows_its_step_as_stopped(opened: Opened, stage: Stage) -> None:
    nap = {"nap": ("in_progress", 0, {"attempt": 1})}
    during = of_memory(recorded(Session(), a_workflow({"nap": []}), nap, token=new_token()))
    page = opened(stage.showing(during), width=1440)
    labels = "String([...document.querySelectorAll('.node')].map(each => each.getAttribute('aria-label')))"
    page.wait(f"timeline && {labels}.includes('in progress')")
    stage.say("health", {**during["health"], "state": "stopped", "cut": True})
    page.wait(f"{labels}.includes('stopped')")
    assert page.evaluate("stateOf('nap')") == "stopped"
    assert page.evaluate("timeNow() === timeline.changes.at(-1).at")
    assert page.text("#graph-chips").startswith("stopped 1")
    page.press("Home")
    page.press("End")
    assert page.evaluate("stateOf('nap')") == "stopped"


NAMES = "[...document.querySelectorAll('#list .name')].map(each => each.textContent)"


def listed(number: int, **fields: Any) -> Any:
    times = {"began": 1_795_413_550.5 + number, "changed": 1_795_413_553.5 + number}
    health = {"state": "working", "done": 1, "total": 4, "step": "S002", "title": "Mend it"}
    return {"id": f"s/{number}", "version": 3, "objective": f"Plan {number}", **times, **health, **fields}


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_the_list_keeps_nobody_out(opened: Opened, stage: Stage, axe: str, width: int, scheme: str) -> None:
    damaged = {"id": "s/0", "version": 1, "changed": 0, "problem": "damaged"}
    states = ("working", "waiting", "finished", "failed", "stopped")
    every = [listed(number, state=state, error="No key") for number, state in enumerate(states, start=1)]
    stage.say("sessions", [*every, damaged])
    stage.say("list", {"more": True, "problem": "x", "reading": 3, "gone": []})
    page = opened(stage.url, width=width, scheme=scheme)
    page.wait("document.querySelectorAll('#list-box .entry').length === 6")
    page.click("[data-state=failed]")
    page.click("[data-state=failed]")
    page.evaluate(f"{axe}; null")
    assert page.evaluate("axe.run().then(found => found.violations.map(each => each.id))") == []
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_the_list_has_the_newest_session_first_and_follows(opened: Opened, stage: Stage) -> None:
    stage.say("sessions", [listed(2), listed(1)])
    page = opened(stage.url)
    page.wait(f"String({NAMES}) === 'Plan 2,Plan 1'")
    stage.say("sessions", [listed(1, changed=1_795_413_600.0, done=4, objective="<b>Plan 1</b>"), listed(3)])
    page.wait(f"String({NAMES}) === '<b>Plan 1</b>,Plan 3,Plan 2'")
    assert page.evaluate("document.querySelector('#list a').getAttribute('href')") == "/T/s/s%2F1"
    page.press("/")
    page.type("plan 3")
    page.wait(f"String({NAMES}) === 'Plan 3'")
    assert page.text("#list .find p") == "1 of 3 sessions"
    stage.say("list", {"more": True, "problem": None, "reading": 2, "gone": ["s/3"]})
    page.wait(
        "document.querySelector('#list .find p').textContent"
        " === '0 of 2 sessions; 2 are still being read; older ones are not shown'"
    )


def test_the_list_filters_and_sorts(opened: Opened, stage: Stage, snapshot: SnapshotAssertion) -> None:
    sessions = [
        listed(1, state="failed", done=3, error="join: refused"),
        listed(2, state="finished", done=4, step=None, error="ask: closed"),
        listed(3, state="waiting", done=0),
        listed(4, done=2, others=1),
        {"id": "s/5", "version": 1, "changed": 1_795_413_559},
    ]
    stage.say("sessions", sessions)
    page = opened(stage.url)
    page.wait(f"String({NAMES}) === 's/5,Plan 4,Plan 3,Plan 2,Plan 1'")
    rows = [re.sub("\n+", " | ", row) for row in page.texts("#list .entry")]
    assert "\n".join(re.sub(r"(for|after) \d.*", "...", row) for row in rows) == snapshot
    counts = "working 1, waiting for approval 1, finished 1, failed 1, stopped 0"
    assert ", ".join(page.values("[data-state]")) == counts
    orders = {}
    for sort in ("progress", "state", "name", "changed"):
        page.evaluate(f"$('list-sort').value = '{sort}'; $('list-sort').dispatchEvent(new Event('change'))")
        page.settle()
        orders[sort] = "".join(name[-1] for name in page.values("#list .name"))
    assert orders == {"progress": "21453", "state": "31425", "name": "12345", "changed": "54321"}
    page.click("[data-state=failed]")
    page.click("[data-state=waiting]")
    assert page.values("#list .name") == ["Plan 3", "Plan 1"]
    assert page.text("#list .find p") == "2 of 5 sessions"
    page.evaluate("document.querySelector('#list a').focus()")
    stage.say("sessions", [listed(3, state="waiting", done=1)])
    page.wait("document.querySelector('#list .steps').textContent === '1 of 4'")
    page.press("ArrowDown")
    assert page.evaluate("document.activeElement.getAttribute('href')") == "/T/s/s%2F1"
    stage.say("sessions", [listed(1, state="working")])
    page.wait(f"String({NAMES}) === 'Plan 3'")
    page.evaluate("$('list-sort').value = 'name'; $('list-sort').dispatchEvent(new Event('change'))")
    page.settle()
    page.evaluate("window.isOld = true; location.reload()")
    page.wait(f"!window.isOld && $('list-sort')?.value === 'name' && String({NAMES}) === 'Plan 3'")
    assert page.values("[aria-pressed=true]", "dataset.state") == ["waiting", "failed"]


def test_ten_thousand_sessions_draw_what_is_in_sight(opened: Opened, stage: Stage) -> None:
    stage.say("sessions", [listed(number) for number in range(10_000)])
    page = opened(stage.url)
    page.wait("document.querySelector('#list .find p')?.textContent === '10,000 sessions'")
    page.evaluate("$('list-box').scrollTop = $('list-box').scrollHeight")
    page.wait("[...document.querySelectorAll('#list .name')].at(-1).textContent === 'Plan 0'")
    assert page.evaluate("document.querySelectorAll('*').length") < 1_000


# A plan with a policy, which the page may change


Agent = tuple[Session, Toolbox]


@pytest.fixture
def agent(tmp_path: Path) -> Agent:
    """A session in a store whose plan waits for approval, at version 1, and its tools."""
    return waiting(tmp_path / "plans.db")


@pytest.fixture
def steered(opened: Opened, tmp_path: Path) -> Iterator[Opened]:
    """Opens the live page of the store."""
    with ExitStack() as stack:

        def open_page(*, steers: bool = True, **window: Any) -> Page:
            source = StoreSource(tmp_path / "plans.db", None)
            page = opened(stack.enter_context(serving(source, steers=steers)), **window)
            page.wait("timeline !== null")
            page.settle()
            return page

        yield open_page


def seen(page: Page, selector: str) -> list[str]:
    """The names of the buttons in an element that can be pressed."""
    names: list[str] = page.evaluate(
        f"[...document.querySelectorAll('{selector} button')].filter(each => each.checkVisibility() &&"
        " !each.disabled).map(each => each.ariaLabel ?? each.textContent)"
    )
    return names


def test_a_plan_is_approved_by_the_keyboard(agent: Agent, steered: Opened) -> None:
    page = steered()
    assert page.text("#approval-text") == "The plan waits for approval."
    page.evaluate("$('approve').focus()")
    page.press("Enter")
    at(page, 2)
    assert not page.evaluate("$('approval').checkVisibility()")
    assert page.evaluate("document.activeElement.id") == "app"
    assert page.text("#change .lead") == "The host approved the plan."
    page.wait("$('announcement').textContent === 'Version 2 of 2: The host approved the plan.'")
    assert agent[1].call("copy", {}).success


def test_a_plan_is_rejected_with_a_reason(agent: Agent, steered: Opened) -> None:
    page = steered()
    page.click("#reject")
    assert page.evaluate("document.activeElement.id") == "reason"
    page.click("#decide-yes")  # without a reason it stays open
    assert page.evaluate("$('decide').open && document.activeElement.id") == "reason"
    page.type("Copy to <b>two</b> places?")
    page.evaluate("$('decide-yes').focus()")
    page.press("Enter")
    at(page, 2)
    assert page.text("#approval-text") == "The plan was rejected: Copy to <b>two</b> places?"
    assert seen(page, "#approval") == []
    reply = agent[1].call("copy", {})
    assert "the plan was rejected (Copy to <b>two</b> places?)" in reply.message


def test_a_decision_about_a_plan_that_changed_is_not_carried_out(agent: Agent, steered: Opened) -> None:
    session, _ = agent
    page = steered()
    page.click("#reject")
    session.dispatch(RemoveStep("S003"))
    at(page, 2)
    page.type("Too long")
    page.click("#decide-yes")
    page.wait("notes.steer !== null")
    assert page.errors.pop().endswith("status of 409 (Conflict)")
    assert page.text("#notes") == "The plan has changed meanwhile; nothing was done. Look at it again."
    session.refresh()
    assert session.version == 2
    page.click("#approve")
    at(page, 3)
    assert page.text("#notes") == ""


def test_steps_are_moved_and_removed(agent: Agent, steered: Opened) -> None:
    page = steered()
    assert seen(page, "#plan-rows .tools") == [
        "Move S001 down", "Remove S001", "Move S002 up", "Move S002 down", "Remove S002", "Move S003 up",
        "Remove S003",
    ]  # fmt: skip
    page.evaluate("document.querySelector('[data-steer=\"up S003\"]').focus()")
    page.press("Enter")
    at(page, 2)
    assert page.evaluate("document.activeElement.dataset.steer") == "up S003"
    page.click('[data-steer="remove S001"]')
    assert page.text("#decide-title") == "Remove S001?"
    assert page.evaluate("document.activeElement.id") == "decide-no"
    page.press("Escape")
    assert not page.evaluate("$('decide').open")
    page.click('[data-steer="remove S001"]')
    page.click("#decide-yes")
    at(page, 3)
    assert page.values(".step .id") == ["S003", "S002"]
    assert page.evaluate("document.activeElement.id") == "plan-box"
    assert page.text("#change .lead") == "S001 was removed. S002 no longer depends on S001."


def test_an_old_version_and_a_page_that_may_not_steer_have_no_buttons(agent: Agent, steered: Opened) -> None:
    agent[0].dispatch(RejectPlan("Too long"))
    call(agent[1], "add_step", steps=["Tell"])
    page = steered()
    assert seen(page, "#approval") == ["Approve", "Reject…"]
    page.press("ArrowLeft")
    assert page.text("#approval-text") == "The plan was rejected: Too long"
    assert seen(page, "#approval") == seen(page, "#plan-rows .tools") == []
    page.press("ArrowRight")
    assert len(seen(page, "#plan-rows .tools")) == 10
    page = steered(steers=False)
    assert page.text("#approval-text") == "The plan waits for approval."
    assert seen(page, "#approval") == seen(page, "#plan-rows .tools") == []


def test_steps_say_what_shows_them_done_and_what_they_wait_for(agent: Agent, steered: Opened) -> None:
    session, toolbox = agent
    session.dispatch(ApprovePlan())
    toolbox.call("copy", {})
    call(toolbox, "mark_step", step_id="S001", status="done", evidence=["C1"])
    call(toolbox, "add_step", steps=["Tell"])
    page = steered(steers=False)
    rows = page.values(".step", "querySelector('.flags')?.innerText ?? ''")
    assert rows == ["reported with C1 (copy)", "after S001", "", "waits for approval"]
    assert page.text("#approval-text") == "S004 waits for approval."


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (800, "light"), (1440, "dark")])
def test_buttons_keep_nobody_out(agent: Agent, steered: Opened, axe: str, width: int, scheme: str) -> None:
    page = steered(width=width, scheme=scheme)
    page.evaluate(f"{axe}; null")
    found = [violations(page)]
    page.click("#reject")
    found.append(violations(page))
    page.press("Escape")
    agent[0].dispatch(RejectPlan("Too long"))
    at(page, 2)
    found.append(violations(page))
    assert found == [[], [], []]
    assert page.evaluate("document.documentElement.scrollWidth") == width
