"""A workflow on the page: its graph, its timeline, one of its steps, and the answer."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from browser import Page
from page_data import a_run_of, a_workflow, data_of, of_memory
from page_stage import Opened

from planning.cli.opening import opened_page
from planning.cli.terminal import seconds_text
from planning.tools import Tool
from planning.workflow import Capabilities, StepFailure, Workflow, WorkflowStep, run_workflow
from planning.workflow.run.records import RunChanged, StepChanged, StepRecord, WorkflowRun, register_workflow
from session import Session

pytestmark = pytest.mark.browser

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


def timed(*changes: dict[str, Any], steps: dict[str, list[str]]) -> Any:
    """A run whose changes are these records of steps, each at a second of the run."""
    session, flow = Session(), a_workflow(steps)
    register_workflow(session)
    run = WorkflowRun(run_id="r", workflow=flow)
    session.dispatch(RunChanged(run, session_id=session.session_id))
    for change in changes:
        with session.transaction() as transaction:
            for step, (status, second, more) in change.items():
                at = datetime.fromtimestamp(1_000.0 + second, UTC).isoformat()
                record = StepRecord("r", step, status, at, called=True, **more)
                transaction.dispatch(StepChanged(record, session_id=session.session_id))
    return of_memory(session)


@pytest.mark.parametrize("steps", [CHAIN, FAN, LAYERS], ids=["a chain", "a fan", "layers"])
def test_a_workflow_of_twelve_steps_opens_on_its_graph_with_every_name_legible(
    shown: Opened, steps: dict[str, list[str]]
) -> None:
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


def test_the_graph_zooms_where_the_reader_looks(shown: Opened) -> None:
    page = shown(a_run_of(MANY), width=1440, height=800)
    middle = "(($('canvas').scrollTop + $('canvas').clientHeight / 2) / graph.scale)"
    page.evaluate("$('canvas').scrollTop = $('canvas').scrollHeight / 2")
    page.settle()
    before, scale = page.evaluate(middle), page.evaluate("graph.scale")
    page.click("#zoom-in")
    page.evaluate("$('canvas').focus()")
    page.press("+")
    assert page.evaluate("graph.scale") == pytest.approx(scale * 1.25**2)
    assert page.evaluate(middle) == pytest.approx(before, abs=2)
    page.press("0")
    assert page.evaluate("graph.scale") < scale


def test_the_wheel_zooms_below_the_pointer_and_the_mouse_drags(shown: Opened) -> None:
    page = shown(a_run_of(MANY), width=1440, height=800)
    corner = page.evaluate("$('canvas').getBoundingClientRect().toJSON()")
    below = {"x": corner["x"] + 8, "y": corner["y"] + 300}
    place = "[($('canvas').scrollLeft + 8) / graph.scale, ($('canvas').scrollTop + 300) / graph.scale]"
    page.evaluate("$('canvas').scrollTo(500, 200)")
    page.settle()
    scale, before = page.evaluate(f"[graph.scale, {place}]")
    page.send("Input.dispatchMouseEvent", type="mouseWheel", deltaX=0, deltaY=-120, modifiers=2, **below)
    page.wait(f"graph.scale > {scale}")
    assert page.evaluate(place) == pytest.approx(before, abs=2)
    left, top = page.evaluate("[$('canvas').scrollLeft, $('canvas').scrollTop]")
    page.send("Input.dispatchMouseEvent", type="mousePressed", button="left", clickCount=1, **below)
    moved = {"x": below["x"] + 60, "y": below["y"] + 40}
    page.send("Input.dispatchMouseEvent", type="mouseMoved", button="left", buttons=1, **moved)
    page.send("Input.dispatchMouseEvent", type="mouseReleased", button="left", clickCount=1, **moved)
    page.settle()
    place = page.evaluate("[$('canvas').scrollLeft, $('canvas').scrollTop]")
    assert place == pytest.approx([left - 60, top - 40], abs=1)


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


def test_a_step_has_the_prompt_of_the_run_and_no_code_that_says_nothing(shown: Opened) -> None:
    def ask(year: str) -> None:
        raise RuntimeError(f"nothing of {year}")

    inputs = {"year": "${user_prompt}"}
    step = WorkflowStep(step_id="ask", description="Ask", type="tool", name="ask", inputs=inputs)
    session = Session()
    capabilities = Capabilities(tools={"ask": ask})
    run_workflow(Workflow(goal="Ask", steps=(step,)), capabilities, session=session, user_prompt="of 2024")
    page = shown(of_memory(session), width=1440)
    assert page.text("#step .wrong").splitlines() == [
        "nothing of of 2024",
        "The model reads: ask failed. Call it again, or continue without it.",
    ]
    assert page.text("#step").split("Inputs\n")[1].splitlines()[:3] == [
        '{"year":"of 2024"}', "Prompt of the run", "of 2024",
    ]  # fmt: skip


@pytest.mark.parametrize("seconds", [0.1, 0.24, 1, 59.9, 61, 187, 3599.4, 3600, 7_285, 180_000])
def test_a_time_has_the_form_of_the_terminal(shown: Opened, seconds: float) -> None:
    page = shown(a_run_of(CHAIN))
    assert page.evaluate(f"duration({1000 * seconds})") == seconds_text(seconds)
    page.send("Emulation.setTimezoneOverride", timezoneId="Asia/Tokyo")
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    form = f"form => timeOf({at.timestamp()}, form).textContent"
    forms = page.evaluate(f"[clock, calendar, minute].map({form})")
    assert forms == [f"{at:%H:%M:%S}", f"{at:%Y-%m-%d %H:%M:%S} UTC", f"{at:%Y-%m-%d %H:%M}"]


GONE = StepFailure("gone")


def test_each_step_has_a_bar_in_the_timeline(shown: Opened) -> None:
    run = timed(
        {"a": ("in_progress", 0, {"attempt": 1})},
        {"a": ("completed", 4, {"attempt": 1}), "b": ("in_progress", 4, {"attempt": 1})},
        {"b": ("in_progress", 6, {"attempt": 2})},
        {"b": ("failed", 10, {"attempt": 2, "error": GONE}), "c": ("pending", 10, {"after": "b"})},
        steps={"a": [], "b": ["a"], "c": ["b"]},
    )
    page = shown(run, width=1440)
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
    run = timed(
        {"a": ("in_progress", 0, {"attempt": 1})},
        {"a": ("completed", 10, {"attempt": 1})},
        {"b": ("in_progress", day, {"attempt": 1})},
        {"b": ("completed", day + 10, {"attempt": 1})},
        steps={"a": [], "b": ["a"]},
    )
    page = shown(run, width=1440)
    (_, [(_, begin, end)]), (_, [(_, second, last)]) = page.evaluate(BARS)
    assert (begin, last) == (0, 100)
    assert 45 <= end < second <= 55
    assert page.text("#axis").endswith("; pauses are cut")


def test_the_answer_has_a_place_of_its_own(shown: Opened) -> None:
    def summed() -> dict[str, Any]:
        quarters = {f"Q{each}": 1000 * each for each in range(1, 5)}
        return {"answer": "Revenue grew in each quarter", "quarters": quarters}

    steps = {"fetch": [], "sum": ["fetch"]}
    session = Session()
    run_workflow(a_workflow(steps), Capabilities(tools={"fetch": lambda: 1, "sum": summed}), session=session)
    data = of_memory(session)
    page = shown(data, width=1440)
    assert page.evaluate("$('answer').checkVisibility()")
    assert json.loads(page.values("#answer pre")[0]) == summed()
    page.press("Home")
    page.press("ArrowRight")
    assert page.text("#answer").startswith("No answer yet\n")
    narrow = shown(data, width=360)
    narrow.click("#tab-answer")
    assert narrow.text("#answer h2") == "Answer"


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
    assert page.errors == []


def test_statuses_filter_the_graph_and_the_timeline(shown: Opened) -> None:
    page = shown(a_run_of({"a": [], "b": ["a"], "c": ["b"]}, fails="b"), width=1440)
    page.click("#graph-chips [data-status=failed]")
    assert [name for name, _ in page.evaluate(BARS)] == ["b"]
    assert page.values(".node.unmatched", "dataset.step") == ["a", "c"]
    page.click("#graph-chips [data-status=failed]")
    page.click("#graph-chips [data-status=open]")
    assert [name for name, _ in page.evaluate(BARS)] == ["b", "c"]


def test_the_parts_of_the_page_stay_where_they_are_while_it_opens(shown: Opened) -> None:
    page = shown(a_run_of(MANY, fails="n047"), width=1440)
    moved = (
        "new Promise(done => new PerformanceObserver(list => done(list.getEntries().map(each => each.value)))"
        ".observe({ type: 'layout-shift', buffered: true }))"
    )
    assert page.evaluate(f"Promise.race([{moved}, new Promise(done => setTimeout(done, 50, []))])") == []
