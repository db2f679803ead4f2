"""Everyone can read the page, and a long run does not make it heavy."""

from __future__ import annotations

from typing import Any

import pytest
from browser import Page
from page_data import call, in_memory, of_memory, run_of, with_tools
from page_stage import Opened

from planning import Plan, PlanStep
from planning.suite.tools import register_plan
from session import Session

pytestmark = pytest.mark.browser

FEW = 900  # elements of the whole page
ELEMENTS = "document.querySelectorAll('*').length"


@pytest.fixture(scope="module")
def everything() -> Any:
    """A run with data of each kind: refusals, failures, a workflow, a family, usage, a problem."""
    session, toolbox = in_memory()
    call(toolbox, "setup_plan", objective="Fix the login", initial_steps=["Look", "Find", "Mend", "Tell"])
    call(toolbox, "mark_step", step_id="S009", status="done")
    for step, status in (("S001", "done"), ("S002", "in_progress"), ("S003", "blocked")):
        call(toolbox, "mark_step", step_id=step, status=status, note="A note " * 200)
    with_tools(session, deploy=lambda: 1 / 0).call("deploy", {}, context={"actor": "bob"})
    run_of(session)
    session.rewind(session.version - 1, actor="ann")
    data = of_memory(session)
    data["changes"][5]["usage"] = {"input": 1200, "output": 90, "cost": 0.0123}
    member = {"title": "Fix the login", "status": "active", "done": 1, "total": 4}
    data["id"] = "run"
    data["family"] = [{"id": "run", "parent": None, **member}, {"id": "fork", "parent": "run", **member}]
    data["problem"] = "Changes after 17 are damaged."
    data["omitted"] = "The oldest 5 changes are not shown."
    return data


def violations(page: Page, part: str = "document") -> Any:
    """What axe-core finds in the page, or in a part of it."""
    return page.evaluate(
        f"axe.run({part}, {{ resultTypes: ['violations'] }})"
        ".then(found => found.violations.map(each => [each.id, each.nodes.map(node => node.html)]))"
    )


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (800, "dark"), (1280, "light")])
def test_nothing_keeps_people_out(shown: Opened, everything: Any, axe: str, width: int, scheme: str) -> None:
    page = shown(everything, width=width, scheme=scheme)
    page.evaluate(f"{axe}; null")
    tabs = page.values("[role=tab]", "dataset.tab")
    found: dict[str, Any] = {}
    for version in (2, 9):
        page.evaluate(f"show({version}, {{ settles: false }}); render()")
        for tab in tabs:
            page.click(f"#tab-{tab}")
            found[f"{tab} {version}"] = violations(page, f"$('{tab}').closest('.place')")
        found[f"{version}"] = violations(page)
    page.press("?")
    found["help"] = violations(page)
    assert {part: each for part, each in found.items() if each} == {}
    assert len(found) == 2 * len(tabs) + 3


def test_axe_core_is_awake(shown: Opened, everything: Any, axe: str) -> None:
    page = shown(everything)
    page.click("#tab-changes")
    page.evaluate(f"{axe}; null")
    page.evaluate(
        "$('count').style.color = '#ccc'; $('search').ariaLabel = $('search').placeholder = ''; null"
    )
    assert [name for name, _ in violations(page)] == ["color-contrast", "label"]


@pytest.mark.parametrize("width", [320, 360, 390, 720, 800, 1080, 1440, 1600])
def test_no_part_is_wider_than_the_window_and_every_tab_and_filter_is_in_sight(
    shown: Opened, everything: Any, width: int
) -> None:
    page = shown(everything, width=width)
    for box in (".tabs button", ".chips button"):
        seen = f"[...document.querySelectorAll('{box}')].filter(each => each.checkVisibility())"
        assert 0 < max(page.evaluate(f"{seen}.map(each => each.getBoundingClientRect().right)")) <= width
    for tab in page.values("[role=tab]", "dataset.tab"):
        page.click(f"#tab-{tab}")
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert page.evaluate(f"$('{tab}').scrollWidth <= $('{tab}').clientWidth"), tab


def test_everything_can_be_reached_with_the_keyboard(shown: Opened, everything: Any) -> None:
    page = shown(everything, width=1280)
    seen = set()
    for _ in range(30):
        page.press("Tab")
        seen.add(page.evaluate("document.activeElement.id || document.activeElement.getAttribute('class')"))
        assert page.evaluate(
            "document.activeElement.matches(':focus-visible') || document.activeElement === document.body"
        )
    wanted = "skip help-button first previous slider tab-times tab-graph canvas zoom-in tab-step step"
    assert set(wanted.split()) <= seen
    assert {each.split()[0] for each in seen if each} >= {"time", "node"}


def test_arrows_move_through_the_list_and_through_the_graph(shown: Opened, everything: Any) -> None:
    page = shown(everything, width=1280)
    page.click("#tab-changes")
    page.evaluate("document.querySelector('#changes-box [aria-current]').focus()")
    versions = []
    for key in ("ArrowUp", "ArrowUp", "ArrowDown"):
        page.press(key)
        versions.append(page.evaluate("timeline.last - shown"))
        assert page.evaluate("document.activeElement.getAttribute('aria-current')") == "true"
    assert versions == [1, 2, 1]
    page.click("#tab-graph")
    page.evaluate("document.querySelector('.node').focus()")
    names = []
    for key in ("ArrowDown", "ArrowDown", "ArrowUp"):
        page.press(key)
        names.append(page.evaluate("document.activeElement.querySelector('text').textContent"))
    assert names == ["parse", "bad", "parse"]


def test_ten_thousand_changes_draw_what_is_in_sight(shown: Opened) -> None:
    session, toolbox = in_memory()
    call(toolbox, "setup_plan", objective="Mark", initial_steps=[f"Step {each}" for each in range(50)])
    call(toolbox, "mark_step", step_id="S001", status="done")
    data = of_memory(session)
    mark = data["changes"].pop()
    for version in range(2, 10_001):
        step = {f"S{version % 50 + 1:03}": {"status": ("done", "pending")[version // 50 % 2]}}
        data["changes"].append({**mark, "v": version, "text": f"Change {version}", "plan": {"steps": step}})
    page = shown(data)
    most = 0
    for version in (0, 1, 99, 100, 101, 5000, 9999, 10_000):
        page.evaluate(f"show({version}, {{ settles: false }}); render()")
        assert page.text("#where") == f"Version {version:,} of 10,000"
        most = max(most, page.evaluate(ELEMENTS))
    for part in (0, 0.3, 0.7, 1):
        page.evaluate(f"$('changes-box').scrollTop = $('changes-box').scrollHeight * {part}")
        page.settle()
        most = max(most, page.evaluate(ELEMENTS))
        assert len(page.texts("#changes .entry")) >= 8
    assert most < FEW
    assert page.texts("#changes .entry b")[-1] == "10,000"


def test_a_thousand_steps_draw_what_is_in_sight(shown: Opened) -> None:
    session = Session()
    register_plan(session)
    steps = tuple(
        PlanStep(f"S{each:04}", f"Step {each}", "\n".join(["details"] * (each % 4)) or None, "pending", ())
        for each in range(1000)
    )
    session.dispatch(Plan("A long plan", "active", steps))
    page = shown(of_memory(session))
    seen = []
    for part in (0, 0.5, 1):
        page.evaluate(f"$('plan-box').scrollTop = $('plan-box').scrollHeight * {part}")
        page.settle()
        page.settle()
        assert page.evaluate(ELEMENTS) < FEW
        seen.append(page.texts(".step .id"))
    assert (seen[0][0], seen[2][-1]) == ("S0000", "S0999")
    assert [each == sorted(each) for each in seen] == [True, True, True]


def test_what_is_printed_is_whole(shown: Opened) -> None:
    session, toolbox = in_memory()
    call(toolbox, "setup_plan", objective="Print", initial_steps=[f"Step {each}" for each in range(50)])
    page = shown(of_memory(session))
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert len(page.values(".step")) == 50
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert len(page.values(".step")) < 50
