"""The page of a plan with a policy: what it says of it, and the buttons of a page that may change it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from browser import Page
from page_data import call, serving, waiting
from page_stage import Opened, at
from test_page_reach import violations

from planning import Toolbox
from planning.plan.commands import ApprovePlan, RejectPlan, RemoveStep
from planning.view.sources import StoreSource
from session import Session

pytestmark = pytest.mark.browser


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
    assert page.errors == []


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
    assert page.errors == []


def test_a_decision_about_a_plan_that_changed_is_not_carried_out(agent: Agent, steered: Opened) -> None:
    session, _ = agent
    page = steered()
    page.click("#reject")
    session.dispatch(RemoveStep("S003"))
    at(page, 2)
    page.type("Too long")
    page.click("#decide-yes")
    page.wait("notes.steer !== null")
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
    assert page.errors == []


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
def test_nothing_keeps_people_out(agent: Agent, steered: Opened, axe: str, width: int, scheme: str) -> None:
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
