"""A run on the page: a plan in its versions, the search, and a workflow with its graph, times and answer."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from browser import Page
from page_data import (
    STEPS,
    a_run_of,
    a_workflow,
    call,
    data_of,
    eventful,
    in_memory,
    of_memory,
    of_store,
    plans_of,
    recorded,
)
from page_stage import Opened, at

from planning.cli.opening import opened_page
from planning.cli.terminal import seconds_text
from planning.tools import Tool
from planning.workflow import Capabilities, StepFailure, Workflow, WorkflowStep, run_workflow
from session import Session

pytestmark = pytest.mark.browser


@pytest.fixture
def nightly(tmp_path: Path) -> Any:
    """A run with refusals, a failed call, a rewind and a fork."""
    eventful(tmp_path / "plans.db")
    return of_store(tmp_path / "plans.db")


PLAN = """({ plan }) => plan && {
    objective: plan.objective, status: plan.status, steps: plan.ids.map(id => plan.steps.get(id))
}"""
CHANGES = "#changes .entry b"  # their versions


def test_keys_and_buttons_and_the_slider_step_through_the_versions(shown: Opened, nightly: Any) -> None:
    page = shown(nightly)
    seen = []
    for key in ("ArrowLeft", "Home", "ArrowRight", "ArrowRight", "End"):
        page.press(key)
        seen.append(page.text("#where"))
    for button in ("first", "next", "next", "previous", "last"):
        page.click(f"#{button}")
        seen.append(page.text("#where"))
    page.evaluate("slider.value = 4; slider.dispatchEvent(new Event('input'))")
    page.settle()
    seen.append(page.text("#where"))
    assert [each.removesuffix(" of 7") for each in seen] == [
        f"Version {version}" for version in (6, 0, 1, 2, 7, 0, 1, 2, 1, 7, 4)
    ]
    said = "Version 4 of 7: S001 done: It was the cookie."
    assert page.evaluate("slider.getAttribute('aria-valuetext')") == said


def test_what_a_version_changed_is_marked_and_announced(shown: Opened, nightly: Any) -> None:
    page = shown(nightly, part="#v=4")
    assert page.texts(".step.changed") == [
        "S001Reproduce it\ndone\nin progress → done, notes changed\n"
        "On 3.12 only.\nSee the log.\nIt was the cookie"
    ]
    for key in ("ArrowLeft", "ArrowLeft"):
        page.press(key)
    page.wait("$('announcement').textContent === 'Version 2 of 7: S001 in_progress.'")
    page.press("End")
    assert page.text("#plan-summary") == "Removed 1 step:\nS004 Tell the team"


def test_a_link_opens_its_version_and_back_goes_back(shown: Opened, nightly: Any) -> None:
    page = shown(nightly, part="#v=3")
    at(page, 3, 7)
    page.click("#changes-box a[href='#v=5']")
    at(page, 5, 7)
    page.press("ArrowRight")
    page.wait("location.hash === '#v=6'")
    for way, version in (("back", 5), ("back", 3), ("forward", 5)):
        page.evaluate(f"history.{way}()")
        at(page, version, 7)


def test_the_search_finds_changes_steps_statuses_and_calls(shown: Opened, nightly: Any) -> None:
    page = shown(nightly, part="#v=5")
    found = {}
    for text in ("cookie", "in progress", "DEPLOY"):
        page.press("/")
        assert page.evaluate("document.activeElement.id") == "search"
        page.type(text)
        page.wait("$('matches').textContent.endsWith(' of 7 changes')")
        page.settle()
        found[text] = (page.texts(CHANGES), page.values("#plan mark"))
        page.press("Escape")
        page.wait("$('matches').textContent === '7 changes'")
    assert found == {"cookie": (["4"], ["cookie"]), "in progress": (["2", "7"], []), "DEPLOY": (["5"], [])}


def test_filters_let_through_what_they_name(shown: Opened, nightly: Any) -> None:
    page = shown(nightly)
    wanted = {
        "plan": ["1", "2", "4", "6", "7"], "calls": ["1", "2", "3", "4", "5", "6"], "refused": ["3"],
        "failed": ["5"], "rewind": ["7"], "refused failed": ["3", "5"],
    }  # fmt: skip
    for names, versions in wanted.items():
        for name in names.split():
            page.click(f"[data-filter={name}]")
        assert page.texts(CHANGES) == versions
        for name in names.split():
            page.click(f"[data-filter={name}]")
    page.evaluate("document.querySelector('#filters select').value = 'ann'")
    page.evaluate("document.querySelector('#filters select').dispatchEvent(new Event('change'))")
    page.settle()
    assert page.texts(CHANGES) == ["7"]


def test_the_family_is_a_tree(shown: Opened, nightly: Any) -> None:
    page = shown(nightly)
    page.click("#tab-family")
    assert page.texts(".tree ul ul .member") == ["Fix the login\nwhat-if\nworking\n0 of 3 done"]
    assert page.text(".tree [aria-current] code") == "nightly"


def test_the_graph_shows_the_states_of_its_version(shown: Opened) -> None:
    page = shown(a_run_of(STEPS, "bad"))
    labels = sorted(re.sub(r", \d+ ms", "", label) for label in page.values(".node", "ariaLabel"))
    states = {"bad": "failed", "use": "skipped"}
    assert labels == sorted(f"{step}, tool {step}, {states.get(step, 'completed')}" for step in STEPS)
    page.press("Home")
    page.press("ArrowRight")
    page.wait("[...document.querySelectorAll('.node')].every(each => each.ariaLabel.endsWith(', pending'))")
    page.evaluate("choose('fetch')")
    assert page.text("#step .head-of")[:-2] == "fetch\npending"


def test_the_page_has_the_plan_of_each_version_in_any_order(shown: Opened, nightly: Any) -> None:
    session, toolbox = in_memory()
    call(toolbox, "setup_plan", objective="Grow", initial_steps=["Begin"])
    for number in range(120):
        call(toolbox, "mark_step", step_id="S001", status="in_progress", note=f"note {number}")
        call(toolbox, "add_step", steps=[f"Step {number}"])
        if number % 50 == 40:
            session.rewind(session.version - 30)
    for data in (nightly, of_memory(session)):
        plans = plans_of(data)
        page = shown(data)
        orders = (lambda v: v, lambda v: -v, lambda v: v * 7919 % 101)
        for versions in (sorted(plans, key=order) for order in orders):
            asked = f"{json.dumps(versions)}.map(v => ({PLAN})(timeline.at(timeline.indexOf(v))))"
            assert dict(zip(versions, page.evaluate(asked), strict=True)) == plans


IN_SIGHT = """(() => { const frame = $('plan-box').getBoundingClientRect();
  return [...document.querySelectorAll('.step')].filter(each => {
    const box = each.getBoundingClientRect();
    return box.top >= frame.top && box.bottom <= frame.bottom;
  }).map(each => each.querySelector('.id').textContent); })()"""


@pytest.fixture(scope="module")
def long() -> Any:
    """A plan of 60 steps: 40 done, one blocked, one in progress."""
    session, toolbox = in_memory()
    call(toolbox, "setup_plan", objective="Mend it", initial_steps=[f"Mend file {n}" for n in range(1, 51)])
    call(toolbox, "add_step", steps=[f"Look at file {n}" for n in range(51, 61)])
    for number in range(1, 42):
        status = "blocked" if number == 20 else "done"
        call(toolbox, "mark_step", step_id=f"S{number:03}", status=status, note="It was fine")
    call(toolbox, "mark_step", step_id="S042", status="in_progress")
    call(toolbox, "mark_step", step_id="S009", status="done", note="Once more")
    return of_memory(session)


@pytest.mark.parametrize("width", [360, 1440])
def test_a_long_plan_opens_at_the_step_at_hand_and_the_next(shown: Opened, long: Any, width: int) -> None:
    page = shown(long, width=width, height=740)
    assert {"S041", "S042", "S043", "S044"} <= set(page.evaluate(IN_SIGHT))


def test_a_plan_counts_its_steps_by_status_and_shows_those_that_are_chosen(shown: Opened, long: Any) -> None:
    page = shown(long, width=1440, height=900)
    chips = page.values("#plan-bar > *")
    assert chips == ["pending 18", "in progress 1", "blocked 1", "done 40", "Hide done"]
    page.click("#plan-bar [data-status=blocked]")
    page.click("#plan-bar [data-status=in_progress]")
    assert page.texts(".step .id") == ["S020", "S042"]
    assert page.text("#plan-summary").splitlines()[-1] == "2 of 60 steps shown."
    page.evaluate("document.querySelector('#plan-bar [data-status=open]').focus()")
    page.press("Enter")
    assert page.texts(".step .id")[:4] == ["S020", "S042", "S043", "S044"]
    assert page.evaluate("document.activeElement.dataset.status") == "open"
    page.press("Enter")
    page.evaluate("$('plan-box').scrollTop = 0")
    page.settle()
    assert page.texts(".step .id")[0] == "S001"


CLICK_S009 = "[...document.querySelectorAll('.step .id')].find(each => each.textContent === 'S009').click()"


def test_a_click_on_a_step_lists_its_changes(shown: Opened, long: Any) -> None:
    page = shown(long, part="#v=11", width=1440)
    page.evaluate(CLICK_S009)
    page.settle()
    assert page.texts("#changes .entry b") == ["1", "11", "45"]
    assert page.text("#matches") == "3 of 45 changes"
    assert page.text("#filters [data-filter=step]") == "Step S009 \u00d7"
    page.click("#filters [data-filter=step]")
    assert page.text("#matches") == "45 changes"
    narrow = shown(long, part="#v=11", width=360)
    narrow.evaluate(CLICK_S009)
    narrow.settle()
    assert narrow.evaluate("$('tab-changes').ariaSelected") == "true"
    assert narrow.texts("#changes .entry b") == ["1", "11", "45"]


# A workflow: its graph, its timeline, one of its steps, and the answer


SMALLEST = 9.0  # pixels of a letter that can be read

CHAIN = {f"step_{at:02}": [f"step_{at - 1:02}"] if at else [] for at in range(12)}
PARTS = [f"part_{at:02}" for at in range(10)]
FAN = {"start": [], **{part: ["start"] for part in PARTS}, "end": PARTS}
LAYERS = {f"s{at:02}": [f"s{at // 3 * 3 - back:02}" for back in (3, 2, 1) if at > 2] for at in range(12)}
MANY = {f"n{at:03}": [f"n{at - 1 - at % 3:03}"] if at > 3 else [] for at in range(60)}

NODES = """[...document.querySelectorAll('.node')].map(each => {
  const label = each.querySelector('text'), [box, frame, text] = [each, $('canvas'), label].map(one => one.getBoundingClientRect());
  return {
    name: each.dataset.step, size: parseFloat(getComputedStyle(label).fontSize) * graph.scale,
    isIn: box.left >= frame.left && box.right <= frame.right && box.top >= frame.top && box.bottom <= frame.bottom,
    isWhole: text.right <= box.right && text.left >= box.left,
  };
})"""  # noqa: E501 - one line of script
BARS = """[...document.querySelectorAll('.time')].map(each => [each.dataset.step, [...each.querySelectorAll('i')].map(bar => {
  const box = bar.getBoundingClientRect(), band = bar.parentNode.getBoundingClientRect();
  return [bar.className, ...[box.left, box.right].map(x => Math.round(100 * (x - band.left) / band.width))];
})])"""  # noqa: E501 - the same


def nodes(page: Page) -> dict[str, Any]:
    """The nodes that are drawn, by their names."""
    return {each["name"]: each for each in page.evaluate(NODES)}


@pytest.mark.parametrize("steps", [CHAIN, FAN, LAYERS], ids=["a chain", "a fan", "layers"])
def test_a_workflow_of_twelve_steps_opens_legibly(shown: Opened, steps: dict[str, list[str]]) -> None:
    page = shown(a_run_of(steps), width=1440, height=900)
    found = nodes(page)
    assert found.keys() == steps.keys()
    assert [name for name, each in found.items() if not (each["isIn"] and each["isWhole"])] == []
    assert min(each["size"] for each in found.values()) >= SMALLEST
    assert page.evaluate("$('tab-graph').ariaSelected") == "true"
    assert not page.evaluate("$('map').checkVisibility()")


@pytest.mark.parametrize("width", [360, 800, 1440])
def test_what_failed_is_in_sight_and_says_why(shown: Opened, width: int) -> None:
    page = shown(a_run_of(MANY, fails="n047"), width=width, height=800)
    assert nodes(page)["n047"]["isIn"]
    assert nodes(page)["n047"]["size"] >= SMALLEST
    assert page.evaluate("$('step').checkVisibility()")
    assert page.text("#step .head-of")[:-2] == "n047\nfailed"
    assert page.text("#step .wrong").splitlines() == [
        "n047 is gone",
        "The model reads: n047 cannot reach its data now. Try again later, or continue without it.",
        "Error code: storage",
    ]
    chips = page.values("#graph-chips button")
    assert chips == ["completed 47", "failed 1", "skipped 12", "Hide completed"]


def test_more_than_thirty_nodes_have_a_map_that_leads_to_a_place(shown: Opened) -> None:
    page = shown(a_run_of(MANY), width=1440, height=800)
    assert page.evaluate("$('map').checkVisibility()")
    assert not nodes(page).get("n059", {"isIn": False})["isIn"]
    place = page.evaluate("""(() => {
        const box = $('map').getBoundingClientRect(), { nodes, width, height } = graph.data;
        const { x, y } = nodes.find(node => node.id === 'n059');
        return [box.left + 1 + x / width * box.width, box.top + 1 + y / height * box.height];
    })()""")
    for kind in ("mousePressed", "mouseReleased"):
        page.send("Input.dispatchMouseEvent", type=kind, x=place[0], y=place[1], button="left", clickCount=1)
    page.settle()
    assert nodes(page)["n059"]["isIn"]
    page.click("#zoom-fit")
    assert all(each["isIn"] for each in nodes(page).values())
    assert len(nodes(page)) == 60
    assert not page.evaluate("$('map').checkVisibility()")


def test_a_step_opens_on_its_inputs_output_attempts_and_times(shown: Opened) -> None:
    tries = iter([TimeoutError("late"), None])

    def ask(query: dict[str, Any]) -> dict[str, Any]:
        if (error := next(tries)) is not None:
            raise error
        return {"rows": [{"month": month, "revenue": 1000 * month} for month in range(1, 13)]}

    first = WorkflowStep(step_id="first", description="Think of a year")
    step = WorkflowStep(
        step_id="ask", description="Ask for the revenue", type="tool", name="ask", depends_on=("first",),
        inputs={"query": {"year": "${first.output}", "table": "sales_by_month_and_by_region_of_2024"}},
        retries=2,
    )  # fmt: skip
    session = Session()
    run_workflow(Workflow(goal="Ask", steps=(first, step)), Capabilities(tools={"ask": ask}), session=session)
    page = shown(of_memory(session), width=1440)
    page.evaluate("document.querySelector('.node[data-step=ask]').focus()")
    assert not page.evaluate("$('step').checkVisibility()")
    page.press("Enter")
    told = page.text("#step")
    lines = told.splitlines()
    assert [*lines[:2], *lines[3:7]] == [
        "ask", "completed", "Ask for the revenue", "tool ask", "When", "Began",
    ]  # fmt: skip
    assert "\nAttempts\n2\n" in told
    assert page.values("#step .differences .badge") == ["failed", "completed"]
    inputs, output = page.values("#step pre")
    assert json.loads(inputs) == {"query": {**step.inputs["query"], "year": "Think of a year"}}
    assert output.startswith('{\n  "rows": [\n    {\n      "month": 1,\n')
    page.click("#step .links button")
    assert page.text("#step h2") == "first"
    assert "\nAttempts" not in page.text("#step")
    page.press("Escape")
    assert not page.evaluate("$('step').checkVisibility()")


def test_a_time_has_the_form_of_the_terminal(shown: Opened) -> None:
    page = shown(a_run_of(CHAIN))
    seconds = [0.1, 0.24, 1, 59.9, 61, 187, 3599.4, 3600, 7_285, 180_000]
    assert page.evaluate(f"{seconds}.map(each => duration(1000 * each))") == [*map(seconds_text, seconds)]
    page.send("Emulation.setTimezoneOverride", timezoneId="Asia/Tokyo")
    when = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    form = f"form => timeOf({when.timestamp()}, form).textContent"
    forms = page.evaluate(f"[clock, calendar, minute].map({form})")
    assert forms == [f"{when:%H:%M:%S}", f"{when:%Y-%m-%d %H:%M:%S} UTC", f"{when:%Y-%m-%d %H:%M}"]


def test_each_step_has_a_bar_in_the_timeline(shown: Opened) -> None:
    changes: list[Any] = [
        {"a": ("in_progress", 0, {"attempt": 1})},
        {"a": ("completed", 4, {"attempt": 1}), "b": ("in_progress", 4, {"attempt": 1})},
        {"b": ("in_progress", 6, {"attempt": 2})},
        {
            "b": ("failed", 10, {"attempt": 2, "error": StepFailure("gone")}),
            "c": ("pending", 10, {"after": "b"}),
        },
    ]
    run = recorded(Session(), a_workflow({"a": [], "b": ["a"], "c": ["b"]}), *changes)
    page = shown(of_memory(run), width=1440)
    assert page.evaluate(BARS) == [
        ["a", [["in-completed", 0, 40]]],
        ["b", [["in-failed", 40, 60], ["in-failed", 60, 100]]],
        ["c", []],
    ]
    assert page.texts(".time") == [
        "a\n4.0 s\ncompleted", "b\n2 attempts\n6.0 s\nfailed", "c\nblocked",
    ]  # fmt: skip
    assert page.text("#axis").endswith("10.0 s from the first step to the last")
    page.evaluate("show(2, { settles: false }); render()")
    assert [name for name, bars in page.evaluate(BARS) if bars] == ["a"]
    page.evaluate("document.querySelector('.time[data-step=c]').click()")
    page.evaluate("show(5, { settles: false }); render()")
    assert page.text("#step .wrong") == "It did not run, for this step failed: b"


def test_a_pause_of_a_run_does_not_hide_its_bars(shown: Opened) -> None:
    day = 86_400
    changes = [
        {"a": ("in_progress", 0, {"attempt": 1})},
        {"a": ("completed", 10, {"attempt": 1})},
        {"b": ("in_progress", day, {"attempt": 1})},
        {"b": ("completed", day + 10, {"attempt": 1})},
    ]
    run = recorded(Session(), a_workflow({"a": [], "b": ["a"]}), *changes)
    page = shown(of_memory(run), width=1440)
    (_, [(_, begin, end)]), (_, [(_, second, last)]) = page.evaluate(BARS)
    assert (begin, last) == (0, 100)
    assert 45 <= end < second <= 55
    assert page.text("#axis").endswith("; pauses are cut")


def test_an_answer_that_is_private_is_not_shown(shown: Opened) -> None:
    tool = Tool("find", "Find", lambda: {"name": "secret-9f1"}, returns_private_data=True)
    session = Session()
    run_workflow(a_workflow({"find": []}), Capabilities(tools={"find": tool}), session=session)
    data = of_memory(session)
    assert "9f1" not in str(data)
    assert shown(data, width=1440).text("#answer") == "Answer\nPrivate, not shown."


def test_a_document_alone_opens_on_its_graph(shown: Opened, tmp_path: Path) -> None:
    steps = [
        {"step_id": "find", "description": "Find it", "type": "tool", "name": "find", "inputs": {"n": 1}},
        {"step_id": "tell", "description": "Tell it", "depends_on": ["find"]},
    ]
    (tmp_path / "flow.json").write_text(json.dumps({"schema_version": 2, "goal": "Look", "steps": steps}))
    with opened_page(str(tmp_path / "flow.json"), None) as given:
        document = given.document()
    page = shown(data_of(document), width=1440)
    assert [each["isIn"] for each in nodes(page).values()] == [True, True]
    assert not page.evaluate("$('versions').checkVisibility() || $('plan').checkVisibility()")
    page.evaluate("document.querySelector('.node[data-step=find]').dispatchEvent(new MouseEvent('click'))")
    page.settle()
    assert page.text("#step code.text") == '{"n":1}'
