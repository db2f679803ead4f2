"""The page in a browser: text stays text, everyone can read it, and a long run is not heavy."""

from __future__ import annotations

import json
from typing import Any

import pytest
from browser import Page
from page_data import call, in_memory, of_memory, run_of, with_tools
from page_stage import Opened

from planning import Plan, PlanStep
from planning.suite.tools import register_plan
from planning.tools import ToolError
from planning.workflow import Capabilities, Workflow, WorkflowStep, run_workflow
from session import Session

pytestmark = pytest.mark.browser

TEXTS = [
    "</script><script>alert(1)</script>", "<!--", "<!--<script>", "]]>", "a\u2028b\u2029c",
    "<img src=x onerror=alert(1)>", "&lt;b&gt;", "\"'`", "javascript:alert(1)", "${7*7}", "{{7*7}}",
    "\u202egnp.exe", "\u2066\u202e\u2069 isolates", "a\x00null", "\x1b[31mred", "a\x07b", "x" * 10_000,
    "<svg onload=alert(1)>", "\ud800 half", "__proto__", "constructor", "' onmouseover='alert(1)",
    "\\u003c/script>", "</style><style>*{display:none}</style>", "<a href='//evil.example'>x</a>",
    "<iframe src=//evil.example>", "<base href=//evil.example>", "<meta http-equiv=refresh content=0>",
    "<form action=//evil.example><input name=q>", "<plaintext>", "</title><title>", "<template>",
    "<noscript>", '<math><mi//xlink:href="data:x,<script>alert(1)</script>">',
    "<details open ontoggle=alert(1)>", "日本語のタイトル" * 30, "👩‍👩‍👧‍👦 zero\u200bwidth\u200d\ufeff",
    "a\u0301" * 500, "<script src=//evil.example/x.js></script>",
    "<object data=//evil.example><embed src=//evil.example>",
]  # fmt: skip
ELEMENTS = "iframe, img, base, form, object, embed, a[href*=evil], script[src], meta[http-equiv=refresh]"


@pytest.fixture(scope="module")
def hostile() -> Any:
    """A run in which each text is an objective, a title, details and a note."""
    session = Session()
    register_plan(session)
    with pytest.MonkeyPatch.context() as patched:
        # The limits of a plan keep most of these texts out; the page relies on no limit.
        patched.setattr(Plan, "check_slice", staticmethod(lambda _: None))
        for number, text in enumerate(TEXTS):
            ids = ["__proto__", "12", *(f"S{each:03}" for each in range(len(TEXTS)))]
            steps = tuple(
                PlanStep(ids[each], TEXTS[each], TEXTS[-1 - each], "pending", (TEXTS[each],))
                for each in range(number + 1)
            )
            session.dispatch(Plan(text, "active", steps))
        return of_memory(session)


def test_each_title_is_shown_as_it_is(shown: Opened, hostile: str) -> None:
    page = shown(hostile)
    elements = len(page.values("script, style, title, meta, template, details"))
    page.evaluate("planRows.all = true; planRows.draw()")
    page.evaluate("document.querySelectorAll('.step button:not(.id)').forEach(each => each.click())")
    names = "[...document.querySelectorAll('.step .name > .text')]"
    text = "JSON.stringify((each.querySelector('span') ?? each).textContent)"
    assert [json.loads(each) for each in page.evaluate(f"{names}.map(each => {text})")] == TEXTS
    assert page.values(ELEMENTS) == []
    assert len(page.values("script, style, title, meta, template, details")) == elements
    texts = "[...document.querySelectorAll('.step .text, .entry .text, #title')]"
    turns = page.evaluate(f"{texts}.map(each => getComputedStyle(each).unicodeBidi)")
    assert set(turns) == {"isolate"}  # no text turns what stands beside it


def test_no_text_acts_at_any_version(shown: Opened, hostile: str) -> None:
    page = shown(hostile)
    for index in range(len(TEXTS) + 1):
        page.evaluate(f"show({index}, {{ settles: false }}); render()")
        for tab in ("plan", "totals"):
            page.evaluate(f"openTab('{tab}')")
        assert page.values(ELEMENTS) == []


def test_a_search_for_a_pattern_looks_for_its_characters(shown: Opened, hostile: str) -> None:
    page = shown(hostile)
    for text in ("${7*7}", "]]>", "<img src=x onerror=alert(1)>", "\\u003c/script>", "(", "[", "\\"):
        page.evaluate(f"$('search').value = {json.dumps(text)}; search()")
        page.wait(f"document.querySelector('#app mark')?.textContent === {json.dumps(text)}")


def test_no_text_of_a_workflow_acts_and_each_is_shown_as_it_is(shown: Opened) -> None:
    def say(number: int) -> object:
        if number % 3 == 0:
            raise ToolError(TEXTS[number])
        return TEXTS[number] if number % 3 == 1 else {"text": TEXTS[number], TEXTS[number][:50]: [1]}

    steps = tuple(
        WorkflowStep(
            step_id=f"{text[:40]} {number}", description=text, type="tool", name="say",
            inputs={"number": number}, on_failure="continue",
        )
        for number, text in enumerate(TEXTS)
    )  # fmt: skip
    session = Session()
    run_workflow(Workflow(goal=TEXTS[0], steps=steps), Capabilities(tools={"say": say}), session=session)
    page = shown(of_memory(session), width=1440)
    for number, text in enumerate(TEXTS):
        page.evaluate(f"choose(graph.data.nodes[{number}].id); openTab('answer'); openTab('step')")
        assert page.values("#step h2")[0] == f"{text[:40]} {number}"
        assert page.values(ELEMENTS) == []
        if number % 3 == 2 and len(text) < 1_000:
            assert json.loads(page.values("#step pre, #step code.text")[-1])["text"] == text


# Everyone can read the page, and a long run does not make it heavy


FEW = 900  # elements of the whole page
COUNT = "document.querySelectorAll('*').length"


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
def test_no_part_is_wider_than_the_window_or_out_of_sight(shown: Opened, everything: Any, width: int) -> None:
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
        most = max(most, page.evaluate(COUNT))
    for part in (0, 0.3, 0.7, 1):
        page.evaluate(f"$('changes-box').scrollTop = $('changes-box').scrollHeight * {part}")
        page.settle()
        most = max(most, page.evaluate(COUNT))
        assert len(page.texts("#changes .entry")) >= 8
    assert most < FEW
    assert page.texts("#changes .entry b")[-1] == "10,000"
