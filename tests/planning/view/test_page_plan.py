"""A long plan on the page: where it opens, what it counts and hides, and what it says of one step."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from browser import Page
from page_data import call, in_memory, of_memory

pytestmark = pytest.mark.browser

Shown = Callable[..., Page]
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


def chips(page: Page) -> list[str]:
    """The buttons that count steps."""
    texts: list[str] = page.evaluate("[...$('plan-bar').children].map(each => each.textContent)")
    return texts


@pytest.mark.parametrize("width", [360, 1440])
def test_a_long_plan_opens_at_the_step_at_hand_with_what_comes_next(
    shown: Shown, long: Any, width: int
) -> None:
    page = shown(json.dumps(long), width=width, height=740)
    assert {"S041", "S042", "S043", "S044"} <= set(page.evaluate(IN_SIGHT))


def test_a_link_to_a_version_opens_at_what_it_changed(shown: Shown, long: Any) -> None:
    page = shown(json.dumps(long), part="#v=5", width=1440)
    assert "S003" in page.evaluate(IN_SIGHT)


def test_a_plan_counts_its_steps_by_status_and_shows_those_that_are_chosen(shown: Shown, long: Any) -> None:
    page = shown(json.dumps(long), width=1440, height=900)
    assert chips(page) == ["pending 18", "in progress 1", "blocked 1", "done 40", "Hide done"]
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


def test_a_step_that_is_done_or_pending_has_its_icon_alone(shown: Shown, long: Any) -> None:
    page = shown(json.dumps(long), width=1440, height=900)
    badges = "[...document.querySelectorAll('.step .badge')].map(each => each.textContent)"
    assert page.evaluate(badges) == ["in progress"]
    page.click("#plan-bar [data-status=blocked]")
    assert page.evaluate(badges) == ["blocked"]
    page.click("#plan-bar [data-status=blocked]")
    page.click("#plan-bar [data-status=done]")
    assert page.evaluate(badges) == []
    assert page.evaluate("document.querySelector('.step .unseen').textContent") == "done"


def test_a_click_on_a_step_lists_its_changes(shown: Shown, long: Any) -> None:
    page = shown(json.dumps(long), part="#v=11", width=1440)
    page.evaluate(
        "[...document.querySelectorAll('.step .id')].find(each => each.textContent === 'S009').click()"
    )
    page.settle()
    assert page.texts("#changes .entry b") == ["1", "11", "45"]
    assert page.text("#matches") == "3 of 45 changes"
    assert page.text("#filters [data-filter=step]") == "Step S009 \u00d7"
    page.click("#filters [data-filter=step]")
    assert page.text("#matches") == "45 changes"
    narrow = shown(json.dumps(long), part="#v=11", width=360)
    narrow.evaluate(
        "[...document.querySelectorAll('.step .id')].find(each => each.textContent === 'S009').click()"
    )
    narrow.settle()
    assert narrow.evaluate("$('tab-changes').ariaSelected") == "true"
    assert narrow.texts("#changes .entry b") == ["1", "11", "45"]


@pytest.mark.parametrize(
    ("text", "steps", "changes"), [("blocked", ["S020"], ["22"]), ("in progress", ["S042"], ["44"])]
)
def test_the_search_finds_statuses(
    shown: Shown, long: Any, text: str, steps: list[str], changes: list[str]
) -> None:
    page = shown(json.dumps(long), width=1440)
    page.press("/")
    page.type(text)
    page.wait("$('matches').textContent === '1 of 45 changes'")
    page.settle()
    assert (page.texts(".step .id"), page.texts("#changes .entry b")) == (steps, changes)


def test_json_in_a_note_is_code_and_folded(shown: Shown, long: Any) -> None:
    page = shown(json.dumps(long), part="#v=12", width=1440)
    step = "[...document.querySelectorAll('.step')].find(each => each.innerText.startsWith('S010'))"
    assert page.evaluate(f"{step}.querySelectorAll('pre').length") == 0
    assert page.evaluate(f"{step}.querySelector('.fold span').textContent") == "JSON, 2 fields"
    page.evaluate(f"{step}.querySelector('.fold').focus()")
    page.press("Enter")
    assert json.loads(page.evaluate(f"{step}.querySelector('pre').textContent")) == FOUND
    assert page.evaluate(f"{step}.querySelector('.fold').ariaExpanded") == "true"
    page.press("Enter")
    assert page.evaluate(f"{step}.querySelectorAll('pre').length") == 0


def test_json_in_the_words_of_a_change_is_a_sign_in_the_list_and_code_beside_it(
    shown: Shown, long: Any
) -> None:
    page = shown(json.dumps(long), part="#v=12", width=1440)
    assert page.text("#changes [aria-current] .body") == "S010 done: {\u2026}."
    page.click("#change .lead .fold")
    assert json.loads(page.evaluate("document.querySelector('#change .lead pre').textContent")) == FOUND
