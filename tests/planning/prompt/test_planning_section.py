"""Prompts, whose sections are numbered into one text; and the planning section, whose copy is stored."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from policy_cases import Agent
from syrupy.assertion import SnapshotAssertion

from planning import PlanningStrategy, PlanningToolsSection, PlanPolicy, Toolbox
from planning.plan.text import NOTE, OBJECTIVE, TITLE
from planning.prompt import MarkdownSection, Prompt, PromptRenderError, RenderedPrompt, Section
from planning.prompt.planning_section import section_body
from planning.suite.tools import planning_tools
from planning.testing import MarkdownFiles
from session import PromptRendered, Session, select_all

STRATEGIES = pytest.mark.parametrize("strategy", PlanningStrategy, ids=lambda strategy: strategy.name.lower())


def rendered(session: Session, strategy: PlanningStrategy) -> str:
    section = PlanningToolsSection(session=session, strategy=strategy)
    return Prompt(ns="tests", key="planning", sections=[section]).render().text


@STRATEGIES
def test_each_strategy_renders_its_stored_copy(
    session: Session, strategy: PlanningStrategy, snapshot: SnapshotAssertion
) -> None:
    text = rendered(session, strategy)
    assert text == snapshot.use_extension(MarkdownFiles)
    assert text.isascii()
    assert re.findall(r"^#+ .*$", text, re.MULTILINE) == ["## 1. Planning"]
    assert re.findall(r"^(\d+)\. ", text, re.MULTILINE) == [str(number) for number in range(1, 8)]
    assert not re.search(r"\b(above|previous|preceding|earlier)\b", text, re.IGNORECASE)
    assert re.findall(r"`(planning_\w+)`", text) == [
        *("planning_setup_plan", "planning_add_step", "planning_update_step"),
        *("planning_mark_step", "planning_read_plan", "planning_clear_plan"),
    ]
    assert re.findall(r"max (\d+)", text) == [str(rule.limit) for rule in (OBJECTIVE, TITLE, NOTE)]


def test_strategies_differ_in_the_mindset_paragraph_alone(session: Session) -> None:
    paragraphs = [rendered(session, strategy).split("\n\n") for strategy in PlanningStrategy]
    heading, when, mindset, guidance = zip(*paragraphs, strict=True)
    assert (len(set(heading)), len(set(when)), len(set(mindset)), len(set(guidance))) == (1, 1, 3, 1)


@pytest.mark.parametrize(
    ("spelled", "strategy"),
    [
        ("react", PlanningStrategy.REACT),
        ("plan-act-reflect", PlanningStrategy.PLAN_ACT_REFLECT),
        ("par", PlanningStrategy.PLAN_ACT_REFLECT),
        ("GDRS", PlanningStrategy.GOAL_DECOMPOSE_ROUTE_SYNTHESISE),
        ("goal-decompose-route-synthesise", PlanningStrategy.GOAL_DECOMPOSE_ROUTE_SYNTHESISE),
    ],
)
def test_a_strategy_is_found_by_its_name(spelled: str, strategy: PlanningStrategy) -> None:
    assert PlanningStrategy(spelled) is strategy
    section = PlanningToolsSection(session=Session(), strategy=spelled)
    assert (section.strategy, section.body()) == (strategy, section_body(strategy))
    for other in (f"{spelled}s", ["react"], None):
        with pytest.raises(ValueError, match="is not a valid PlanningStrategy"):
            PlanningStrategy(other)


DEMANDS: list[dict[str, Any]] = [
    {"batch_marks": True},
    {"dependencies": True},
    {"most_in_progress": 1},
    {"most_in_progress": 2},
    {"evidence": "required"},
    {"evidence": "unique", "verify": str.__eq__},
    {"approval": True},
    {"replace": "refuse_unfinished"},
    {"agent_edits": True},
]


def test_a_demand_is_in_the_copy_of_those_who_have_the_tools_for_it(snapshot: SnapshotAssertion) -> None:
    def lines(tool: str, **settings: Any) -> list[str]:
        policy = PlanPolicy(tools=(tool,), **settings)
        body = PlanningToolsSection(session=Session(), policy=policy).body()
        return re.findall(r"^\d\. (.*)$", body, re.MULTILINE)

    said = []
    for settings in DEMANDS:
        offered = ["setup", "add", "update", "mark", "clear", "read"]
        edits = ["remove", "move"] if "agent_edits" in settings else []
        said.append(", ".join(settings))
        for tool in offered + edits:
            plain = lines(tool) if tool in offered else []
            said += [f"    {tool}: {line}" for line in lines(tool, **settings) if line not in plain]
    assert "\n".join(said) == snapshot


def test_a_mindset_of_the_host_replaces_that_of_the_strategy_alone(session: Session) -> None:
    own = "Plane wie eine Bäckerin."
    given = PlanningToolsSection(session=session, mindset=f" {own}\n").body()
    for strategy in PlanningStrategy:
        first, _, guidance = section_body(strategy).split("\n\n")
        assert given.split("\n\n") == [first, own, guidance]
    few = PlanPolicy(tools=("mark", "read"))
    assert PlanningToolsSection(session=session, mindset=own, policy=few).body() == "\n\n".join(
        [own, section_body(PlanningStrategy.REACT, few)]
    )


def test_descriptions_of_the_host_replace_those_of_the_tools_alone(session: Session) -> None:
    texts = {"planning_mark_step": "Mark it.", "planning_read_plan": "Read it."}
    section = PlanningToolsSection(session=session, descriptions=texts)
    assert [(tool.name, tool.description, tool.parameters_schema()) for tool in section.tools()] == [
        (tool.name, texts.get(tool.name, tool.description), tool.parameters_schema())
        for tool in planning_tools(session)
    ]
    box = Toolbox(section.tools(), session=session)
    assert box.call("planning_setup_plan", {"objective": "o", "initial_steps": ["a"]}).success
    assert box.call("planning_mark_step", {"step_id": "S001", "status": "done"}).success


WRONG: list[dict[str, Any]] = [
    {"strategy": "reakt"},
    {"strategy": None},
    {"mindset": " \n"},
    {"mindset": 7},
    {"policy": "strict"},
    {"descriptions": {"planning_mark": "Do."}},
    {"descriptions": {"planning_remove_step": "Do."}},
    {"descriptions": {"planning_mark_step": ""}},
]


def test_a_prompt_that_cannot_be_is_refused(session: Session, snapshot: SnapshotAssertion) -> None:
    said = []
    for given in WRONG:
        with pytest.raises((TypeError, ValueError)) as caught:
            PlanningToolsSection(session=session, **given)
        said.append(repr(caught.value))
    assert "\n".join(said) == snapshot


@pytest.mark.parametrize("enabled", [False, lambda: False, lambda _params: False])
def test_a_disabled_section_renders_nothing_and_offers_no_tool(session: Session, enabled: object) -> None:
    section = PlanningToolsSection(session=session, enabled=enabled)  # type: ignore[arg-type]  # several forms
    prompt = Prompt(ns="t", key="t", sections=[section]).render()
    assert (prompt.text, prompt.tools, section.tools()) == ("", (), ())


def test_the_reminder_is_the_plan_while_it_is_active(section: PlanningToolsSection, toolbox: Toolbox) -> None:
    assert section.reminder() == ""
    toolbox.call("planning_setup_plan", {"objective": "Ship it", "initial_steps": ["Tag"]})
    assert section.reminder() == "Ship it (active, 0 of 1 done)\nS001 pending: Tag"
    toolbox.call("planning_mark_step", {"step_id": "S001", "status": "done"})
    assert section.reminder() == ""


def test_the_reminder_shows_what_each_step_waits_for(snapshot: SnapshotAssertion) -> None:
    agent = Agent(PlanPolicy(approval=True, dependencies=True)).plans("a", {"title": "b", "depends_on": [1]})
    agent.call("add_step", steps=["c"])
    assert agent.call("read_plan") == agent.section.reminder() == snapshot


# Prompts: sections numbered into one text, with their parameters and tools


@dataclass
class Behaviour:
    objective: str
    limit: int = 3


@dataclass
class Tone:
    word: str


def prompt(*sections: Section[Any]) -> Prompt:
    return Prompt(ns="tests", key="prompt", sections=sections)


def refusal(render: Callable[[], object]) -> str:
    with pytest.raises(PromptRenderError) as caught:
        render()
    return str(caught.value)


def test_sections_are_numbered_and_filled_from_their_parameters_and_have_tools(session: Session) -> None:
    planning = PlanningToolsSection(session=session)
    rendered = prompt(
        MarkdownSection[Behaviour](title="Behaviour", template="Stay focused on ${objective}. Max ${limit}."),
        MarkdownSection(title="Rules", template="  Be kind.  "),
        MarkdownSection[Tone](title="Tone", template="${word}, ${word}"),
        planning,
    ).render(Tone("calm"), Behaviour("triage"))
    assert rendered == RenderedPrompt(
        "## 1. Behaviour\n\nStay focused on triage. Max 3.\n\n"
        "## 2. Rules\n\nBe kind.\n\n"
        "## 3. Tone\n\ncalm, calm\n\n"
        f"## 4. Planning\n\n{planning.body()}",
        planning.tools(),
    )


class Own(Section[Behaviour]):
    """A section of a program's own."""

    def body(self, params: Behaviour | None) -> str:
        """The objective."""
        return "" if params is None else params.objective


def test_a_section_of_a_class_takes_the_parameters_that_its_class_names() -> None:
    section = Own(title="T")
    assert (section.params_type, prompt(section).render(Behaviour("a")).text) == (Behaviour, "## 1. T\n\na")


def test_a_disabled_section_takes_no_number_and_needs_no_parameters() -> None:
    rendered = prompt(
        MarkdownSection[Behaviour](title="Off", template="${objective}", enabled=False),
        MarkdownSection(title="On", template="x"),
    ).render()
    assert rendered.text == "## 1. On\n\nx"


def behaviour(template: str, **switch: Any) -> Section[Any]:
    return MarkdownSection[Behaviour](title="T", template=template, **switch)


def test_a_switch_is_given_the_parameters() -> None:
    section = behaviour("${limit}", enabled=lambda params: params.limit > 5)
    assert prompt(section).render(Behaviour("x", limit=3)).text == ""
    assert prompt(section).render(Behaviour("x", limit=9)).text == "## 1. T\n\n9"


@pytest.mark.parametrize(
    ("template", "given", "text"),
    [
        ("${objective}", "${limit} $5 $${x}", "${limit} $5 $${x}"),  # what is inserted is not expanded again
        ("$5, $name, $${objective}, ${objective}", "a", "$5, $name, ${objective}, a"),
    ],
)
def test_only_a_placeholder_of_the_template_is_replaced(template: str, given: str, text: str) -> None:
    assert prompt(behaviour(template)).render(Behaviour(given)).text == f"## 1. T\n\n{text}"


NOT_RENDERED: list[tuple[Section[Any], list[Any]]] = [
    (behaviour("${objectiv}"), [Behaviour("a")]),
    (MarkdownSection(title="T", template="${objective}"), []),
    (behaviour("x"), []),
    (Own(title="T"), []),
    (behaviour("x", enabled=lambda params: params), []),
    (behaviour("x"), [Tone("x"), Behaviour("a")]),
    (behaviour("x"), [Behaviour("a"), Behaviour("b")]),
    *((behaviour("x"), [given]) for given in ({"word": "x"}, Tone, "x" * 300)),
    # A malformed placeholder never reaches the model.
    *((behaviour(template), [Behaviour("a")]) for template in (
        "${}", "${ objective }", "${a-b}", "${open", "${a{b}}", "${" + "a" * 50,
    )),
]  # fmt: skip


def test_what_cannot_be_rendered_says_why(snapshot: SnapshotAssertion) -> None:
    said = [refusal(partial(prompt(section).render, *params)) for section, params in NOT_RENDERED]
    assert "\n".join(said) == snapshot


def test_a_prompt_is_named_to_people_by_its_name() -> None:
    named = Prompt(ns="tests", key="prompt", name="Triage")
    assert refusal(lambda: named.render(Tone("x"))) == "no section of prompt 'Triage' takes Tone"
    assert (named.render(), named.sections) == (RenderedPrompt("", ()), ())


def test_two_tools_of_one_name_are_refused(session: Session) -> None:
    sections = (PlanningToolsSection(session=session), PlanningToolsSection(session=session))
    assert (
        refusal(lambda: prompt(*sections).render()) == "two sections offer a tool named planning_setup_plan"
    )


def test_rendering_for_a_session_is_an_event_and_no_subscriber_breaks_it(
    session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    session.bus.subscribe(PromptRendered, len)  # type: ignore[arg-type]  # an event has no length
    section = prompt(MarkdownSection(title="T", template="x"))
    rendered = section.render(session=session)
    assert rendered == section.render()
    (event,) = select_all(session, PromptRendered)
    assert (event.ns, event.key, event.text) == ("tests", "prompt", rendered.text)
    assert [vars(record)["handler"] for record in caplog.records] == ["builtins.len"]
