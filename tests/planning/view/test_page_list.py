"""The list of sessions: what it shows of each, how it is filtered and sorted, and how long it may be."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest
from browser import Browser
from page_stage import Stage, opened

pytestmark = pytest.mark.browser


def listed(number: int, **fields: Any) -> Any:
    return {
        "id": f"s/{number}",
        "version": 3,
        "changed": 1_795_413_553.5 + number,
        "began": 1_795_413_550.5 + number,
        "objective": f"Plan {number}",
        "state": "working",
        "done": 1,
        "total": 4,
        "step": "S002",
        "title": "Mend it",
        **fields,
    }


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1280, "light")])
def test_nothing_in_the_list_keeps_people_out(
    pages: ExitStack, browser: Browser, stage: Stage, axe: str, width: int, scheme: str
) -> None:
    damaged = {"id": "s/0", "version": 1, "changed": 0, "problem": "damaged"}
    states = ("working", "waiting", "finished", "failed", "stopped")
    every = [listed(number, state=state, error="No key") for number, state in enumerate(states, start=1)]
    stage.say("sessions", [*every, damaged])
    stage.say("list", {"more": True, "problem": "x", "reading": 3, "gone": []})
    page = opened(pages, browser, stage.url, width=width, scheme=scheme)
    page.wait("document.querySelectorAll('#list-box .entry').length === 6")
    page.click("[data-state=failed]")
    page.click("[data-state=failed]")
    page.evaluate(f"{axe}; null")
    assert page.evaluate("axe.run().then(found => found.violations.map(each => each.id))") == []
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_the_list_has_the_newest_session_first_and_follows(
    pages: ExitStack, browser: Browser, stage: Stage
) -> None:
    stage.say("sessions", [listed(2), listed(1)])
    page = opened(pages, browser, stage.url)
    names = "[...document.querySelectorAll('#list .name')].map(each => each.textContent)"
    page.wait(f"String({names}) === 'Plan 2,Plan 1'")
    stage.say("sessions", [listed(1, changed=1_795_413_600.0, done=4, objective="<b>Plan 1</b>"), listed(3)])
    page.wait(f"String({names}) === '<b>Plan 1</b>,Plan 3,Plan 2'")
    assert page.evaluate("document.querySelector('#list a').getAttribute('href')") == "/T/s/s%2F1"
    page.press("/")
    page.type("plan 3")
    page.wait(f"String({names}) === 'Plan 3'")
    assert page.text("#list .find p") == "1 of 3 sessions"
    stage.say("list", {"more": True, "problem": None, "reading": 2, "gone": ["s/3"]})
    page.wait(
        "document.querySelector('#list .find p').textContent"
        " === '0 of 2 sessions; 2 are still being read; older ones are not shown'"
    )
    assert page.errors == []


NAMES = "[...document.querySelectorAll('#list .name')].map(each => each.textContent)"


def test_the_list_filters_by_state_and_sorts(pages: ExitStack, browser: Browser, stage: Stage) -> None:
    stage.say(
        "sessions",
        [
            listed(1, state="failed", done=3, error="join: refused"),
            listed(2, state="finished", done=4, step=None, error="ask: closed"),
            listed(3, state="waiting", done=0),
            listed(4, done=2, others=1),
            {"id": "s/5", "version": 1, "changed": 1_795_413_559},
        ],
    )
    page = opened(pages, browser, stage.url)
    page.wait(f"String({NAMES}) === 's/5,Plan 4,Plan 3,Plan 2,Plan 1'")
    rows = "[...document.querySelectorAll('#list .entry')].map(each => each.innerText.split('\\n'))"
    assert [[part for part in row if part][:3] for row in page.evaluate(rows)] == [
        ["s/5", "s/5", "2026-11-23 05:59"],
        ["working", "Plan 4", "s/4 · S002 Mend it and 1 other step"],
        ["waiting for approval", "Plan 3", "s/3 · S002 Mend it"],
        ["finished", "Plan 2", "s/2"],
        ["failed", "Plan 1", "s/1 · join: refused"],
    ]
    buttons = "[...document.querySelectorAll('[data-state]')].map(each => each.textContent)"
    assert page.evaluate(buttons) == [
        "working 1",
        "waiting for approval 1",
        "finished 1",
        "failed 1",
        "stopped 0",
    ]
    orders = {}
    for sort in ("progress", "state", "name", "changed"):
        page.evaluate(f"$('list-sort').value = '{sort}'; $('list-sort').dispatchEvent(new Event('change'))")
        page.settle()
        orders[sort] = "".join(name[-1] for name in page.evaluate(NAMES))
    assert orders == {"progress": "21453", "state": "31425", "name": "12345", "changed": "54321"}
    page.click("[data-state=failed]")
    page.click("[data-state=waiting]")
    page.settle()
    assert page.evaluate(NAMES) == ["Plan 3", "Plan 1"]
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
    pressed = "[...document.querySelectorAll('[aria-pressed=true]')].map(each => each.dataset.state)"
    assert page.evaluate(pressed) == ["waiting", "failed"]
    assert page.errors == []


def test_ten_thousand_sessions_draw_what_is_in_sight(
    pages: ExitStack, browser: Browser, stage: Stage
) -> None:
    states = ("working", "failed", "finished", "stopped")
    stage.say("sessions", [listed(number, state=states[number % 4]) for number in range(10_000)])
    page = opened(pages, browser, stage.url)
    page.wait("document.querySelector('#list .find p')?.textContent === '10,000 sessions'")
    seen = []
    for part in (0, 0.5, 1):
        page.evaluate(f"$('list-box').scrollTop = $('list-box').scrollHeight * {part}")
        page.settle()
        page.settle()
        assert page.evaluate("document.querySelectorAll('*').length") < 1_000
        seen.append(page.evaluate(NAMES))
    assert (seen[0][0], seen[2][-1]) == ("Plan 9999", "Plan 0")
    page.press("/")
    page.type("plan 123")
    page.click("[data-state=failed]")
    page.wait("document.querySelector('#list .find p').textContent === '2 of 10,000 sessions'")
    assert page.evaluate(NAMES) == ["Plan 1237", "Plan 1233"]
