"""A plan on the page: its versions, its steps, the search and the filters."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from page_data import STEPS, a_run_of, call, in_memory, kept, of_memory, of_store, plans_of, with_tools
from page_stage import Opened

pytestmark = pytest.mark.browser


@pytest.fixture
def nightly(tmp_path: Path) -> Any:
    """A run with refusals, a failed call, a rewind and a fork."""
    session, toolbox = kept(tmp_path / "plans.db")
    first = {"title": "Reproduce it", "details": "On 3.12 only.\nSee the log."}
    call(toolbox, "setup_plan", objective="Fix the login", initial_steps=[first, "Find the cause", "Mend it"])
    call(toolbox, "mark_step", step_id="S001", status="in_progress")
    call(toolbox, "mark_step", step_id="S009", status="done")
    call(toolbox, "mark_step", step_id="S001", status="done", note="It was the cookie")

    def deploy() -> None:
        raise ConnectionError("it is gone")

    with_tools(session, deploy=deploy).call("deploy", {}, context={"actor": "bob"})
    call(toolbox, "add_step", steps=["Tell the team"])
    session.rewind(2, actor="ann")
    session.fork(3, session_id="what-if")
    assert session.store is not None
    session.store.close()
    return of_store(tmp_path / "plans.db")


PLAN = """({ plan }) => plan && {
    objective: plan.objective, status: plan.status, steps: plan.ids.map(id => plan.steps.get(id))
}"""
CHANGES = "#changes .entry b"  # their versions


def test_a_file_opens_without_an_error_and_asks_for_nothing(shown: Opened, nightly: Any) -> None:
    page = shown(nightly)
    for tab in page.values("[role=tab]", "dataset.tab"):
        page.click(f"#tab-{tab}")
    assert page.errors == []
    assert [url for url in page.requests if not url.startswith(("file:", "data:"))] == []
    assert len([url for url in page.requests if not url.startswith("data:")]) == 1


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
    assert page.text("#where") == "Version 3 of 7"
    page.click("#changes-box a[href='#v=5']")
    page.wait("$('where').textContent === 'Version 5 of 7'")
    page.press("ArrowRight")
    page.wait("location.hash === '#v=6'")
    page.evaluate("history.back()")
    page.wait("$('where').textContent === 'Version 5 of 7'")
    page.evaluate("history.back()")
    page.wait("$('where').textContent === 'Version 3 of 7'")
    page.evaluate("history.forward()")
    page.wait("$('where').textContent === 'Version 5 of 7'")


def test_the_search_finds_changes_steps_and_calls(shown: Opened, nightly: Any) -> None:
    page = shown(nightly, part="#v=5")
    page.press("/")
    assert page.evaluate("document.activeElement.id") == "search"
    page.type("cookie")
    page.wait("$('matches').textContent === '1 of 7 changes'")
    page.settle()
    assert page.texts(CHANGES) == ["4"]
    assert page.text("#plan-summary").splitlines()[0] == "1 of 3 steps match the search."
    assert page.evaluate("document.querySelector('#plan mark').innerText") == "cookie"
    page.press("Escape")
    page.wait("$('matches').textContent === '7 changes'")
    page.press("/")
    page.type("DEPLOY")
    page.wait("$('matches').textContent === '1 of 7 changes'")
    page.settle()
    assert page.texts(CHANGES) == ["5"]


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
    assert sorted(re.sub(r", \d+ ms", "", label) for label in page.values(".node", "ariaLabel")) == [
        "bad, tool bad, failed",
        "fetch, tool fetch, completed",
        "parse, tool parse, completed",
        "say, tool say, completed",
        "use, tool use, skipped",
    ]
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


FOUND = {"files": ["login.py", "cookie.py"], "lines": {"login.py": [12, 40], "cookie.py": [7, 8, 9]}}
IN_SIGHT = """(() => { const frame = $('plan-box').getBoundingClientRect();
  return [...document.querySelectorAll('.step')].filter(each => {
    const box = each.getBoundingClientRect();
    return box.top >= frame.top && box.bottom <= frame.bottom;
  }).map(each => each.querySelector('.id').textContent); })()"""


@pytest.fixture(scope="module")
def long() -> Any:
    """A plan of 60 steps: 40 done, of which S010 has JSON as its note; one blocked, one in progress."""
    session, toolbox = in_memory()
    call(toolbox, "setup_plan", objective="Mend it", initial_steps=[f"Mend file {n}" for n in range(1, 51)])
    call(toolbox, "add_step", steps=[f"Look at file {n}" for n in range(51, 61)])
    for number in range(1, 42):
        note = json.dumps(FOUND, separators=(",", ":")) if number == 10 else "It was fine"
        status = "blocked" if number == 20 else "done"
        call(toolbox, "mark_step", step_id=f"S{number:03}", status=status, note=note)
    call(toolbox, "mark_step", step_id="S042", status="in_progress")
    call(toolbox, "mark_step", step_id="S009", status="done", note="Once more")
    return of_memory(session)


@pytest.mark.parametrize("width", [360, 1440])
def test_a_long_plan_opens_at_the_step_at_hand_and_the_next(shown: Opened, long: Any, width: int) -> None:
    page = shown(long, width=width, height=740)
    assert {"S041", "S042", "S043", "S044"} <= set(page.evaluate(IN_SIGHT))


def test_a_link_to_a_version_opens_at_what_it_changed(shown: Opened, long: Any) -> None:
    page = shown(long, part="#v=5", width=1440)
    assert "S003" in page.evaluate(IN_SIGHT)


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


def test_a_step_that_is_done_or_pending_has_its_icon_alone(shown: Opened, long: Any) -> None:
    page = shown(long, width=1440, height=900)
    assert page.values(".step .badge") == ["in progress"]
    page.click("#plan-bar [data-status=blocked]")
    assert page.values(".step .badge") == ["blocked"]
    page.click("#plan-bar [data-status=blocked]")
    page.click("#plan-bar [data-status=done]")
    assert page.values(".step .badge") == []
    assert page.values(".step .unseen")[0] == "done"


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


@pytest.mark.parametrize(
    ("text", "steps", "changes"), [("blocked", ["S020"], ["22"]), ("in progress", ["S042"], ["44"])]
)
def test_the_search_finds_statuses(
    shown: Opened, long: Any, text: str, steps: list[str], changes: list[str]
) -> None:
    page = shown(long, width=1440)
    page.press("/")
    page.type(text)
    page.wait("$('matches').textContent === '1 of 45 changes'")
    page.settle()
    assert (page.texts(".step .id"), page.texts("#changes .entry b")) == (steps, changes)


def test_json_in_a_note_is_code_and_folded(shown: Opened, long: Any) -> None:
    page = shown(long, part="#v=12", width=1440)
    step = "[...document.querySelectorAll('.step')].find(each => each.innerText.startsWith('S010'))"
    assert page.evaluate(f"{step}.querySelectorAll('pre').length") == 0
    assert page.evaluate(f"{step}.querySelector('.fold span').textContent") == "JSON, 2 fields"
    page.evaluate(f"{step}.querySelector('.fold').focus()")
    page.press("Enter")
    assert json.loads(page.evaluate(f"{step}.querySelector('pre').textContent")) == FOUND
    assert page.evaluate(f"{step}.querySelector('.fold').ariaExpanded") == "true"
    page.press("Enter")
    assert page.evaluate(f"{step}.querySelectorAll('pre').length") == 0


def test_json_in_a_change_is_a_sign_in_the_list_and_code_beside_it(shown: Opened, long: Any) -> None:
    page = shown(long, part="#v=12", width=1440)
    assert page.text("#changes [aria-current] .body") == "S010 done: {\u2026}."
    page.click("#change .lead .fold")
    assert json.loads(page.evaluate("document.querySelector('#change .lead pre').textContent")) == FOUND
