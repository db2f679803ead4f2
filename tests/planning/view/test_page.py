"""The page as bytes, what a browser lets it do, and what a model wrote: text, whatever it looks like."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from importlib import resources
from typing import Any

import pytest
from browser import Page
from page_data import of_memory
from page_stage import Opened

from planning import Plan, PlanStep
from planning.suite.tools import register_plan
from planning.tools import ToolError
from planning.view.page import export_page, live_page, policy
from planning.workflow import Capabilities, Workflow, WorkflowStep, run_workflow
from session import Session

PAGE = resources.files("planning.view").joinpath("page.html").read_text("utf-8")


def embedded(page: bytes) -> Any:
    """The data in a page, as a browser finds it: up to the first end of a script."""
    text = page.decode().split('<script type="application/json" id="data">', 1)[1]
    return json.loads(text.split("</script", 1)[0])


def hashes(pattern: str) -> str:
    (found,) = re.findall(pattern, PAGE, re.DOTALL)
    return f"'sha256-{base64.b64encode(hashlib.sha256(found.encode()).digest()).decode()}'"


def test_the_page_has_one_style_and_one_script_and_is_less_than_120_kilobytes() -> None:
    for tag in (
        "<style>",
        "<script>",
        '<script type="application/json" id="data">',
        '<meta charset="utf-8">',
    ):
        assert PAGE.count(tag) == 1
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


def test_a_file_has_its_run_and_a_live_page_where_to_ask() -> None:
    assert embedded(export_page('{"format":1}')) == {"mode": "export", "run": {"format": 1}}
    assert embedded(live_page('{"mode":"live"}')) == {"mode": "live"}


@pytest.mark.parametrize(
    "text", ["</SCRIPT >", "<!--<script>", "]]>", "\u2028\u2029", "\\", "\x00\x1b", "\\1 \\g<0>", "é"]
)
def test_no_text_of_the_data_acts_in_the_page(text: str) -> None:
    page = export_page(json.dumps({"title": text}, ensure_ascii=False))
    assert embedded(page) == {"mode": "export", "run": {"title": text}}
    assert page.decode().count("<") == export_page("{}").decode().count("<")


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


@pytest.mark.browser
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


def nothing_acted(page: Page) -> None:
    page.settle()
    assert (page.dialogs, page.errors) == ([], [])
    assert [url for url in page.requests if not url.startswith(("file:", "data:"))] == []


@pytest.mark.browser
def test_no_text_acts_at_any_version(shown: Opened, hostile: str) -> None:
    page = shown(hostile)
    for index in range(len(TEXTS) + 1):
        page.evaluate(f"show({index}, {{ settles: false }}); render()")
        for tab in ("plan", "totals"):
            page.evaluate(f"openTab('{tab}')")
        assert page.values(ELEMENTS) == []
    nothing_acted(page)


@pytest.mark.browser
def test_a_text_does_not_turn_what_stands_beside_it(shown: Opened, hostile: str) -> None:
    page = shown(hostile)
    page.evaluate("planRows.all = true; planRows.draw()")
    texts = "[...document.querySelectorAll('.step .text, .entry .text, #title')]"
    assert set(page.evaluate(f"{texts}.map(each => getComputedStyle(each).unicodeBidi)")) == {"isolate"}


@pytest.mark.browser
def test_a_search_for_a_pattern_looks_for_its_characters(shown: Opened, hostile: str) -> None:
    page = shown(hostile)
    for text in ("${7*7}", "]]>", "<img src=x onerror=alert(1)>", "\\u003c/script>", "(", "[", "\\"):
        page.evaluate(f"$('search').value = {json.dumps(text)}; search()")
        page.wait(f"document.querySelector('#app mark')?.textContent === {json.dumps(text)}")
    assert page.errors == []


@pytest.mark.browser
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
    nothing_acted(page)
