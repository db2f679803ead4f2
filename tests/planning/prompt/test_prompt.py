"""Prompts: sections numbered into one text, with their parameters and tools."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from planning import PlanningToolsSection
from planning.prompt import MarkdownSection, Prompt, PromptRenderError, RenderedPrompt, Section
from session import PromptRendered, Session, select_all


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


def test_sections_are_numbered_and_filled_from_their_own_parameters() -> None:
    rendered = prompt(
        MarkdownSection[Behaviour](title="Behaviour", template="Stay focused on ${objective}. Max ${limit}."),
        MarkdownSection(title="Rules", template="  Be kind.  "),
        MarkdownSection[Tone](title="Tone", template="${word}, ${word}"),
    ).render(Tone("calm"), Behaviour("triage"))
    assert rendered == RenderedPrompt(
        "## 1. Behaviour\n\nStay focused on triage. Max 3.\n\n"
        "## 2. Rules\n\nBe kind.\n\n"
        "## 3. Tone\n\ncalm, calm"
    )


def test_the_usage_sketch_renders_with_the_planning_tools(session: Session) -> None:
    planning = PlanningToolsSection(session=session)
    rendered = Prompt(
        ns="agents/background",
        key="session-plan",
        name="session-plan",
        sections=[
            MarkdownSection[Behaviour](title="Behaviour", template="Stay focused on ${objective}."),
            planning,
        ],
    ).render(Behaviour(objective="triage open bug reports"))
    assert rendered.text == (
        f"## 1. Behaviour\n\nStay focused on triage open bug reports.\n\n## 2. Planning\n\n{planning.body()}"
    )
    assert rendered.tools == planning.tools()


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


@pytest.mark.parametrize(
    ("section", "params", "message"),
    [
        (behaviour("${objectiv}"), [Behaviour("a")],
         "section 'T': no value for placeholder ${objectiv}; its fields are objective, limit"),
        (MarkdownSection(title="T", template="${objective}"), [],
         "section 'T': no value for placeholder ${objective}; its fields are none: "
         "write MarkdownSection[Params](...)"),
        *((section, [], "section 'T' takes Behaviour; pass an instance to render()")
          for section in (behaviour("x"), Own(title="T"), behaviour("x", enabled=lambda params: params))),
        (behaviour("x"), [Tone("x"), Behaviour("a")], "no section of prompt 'prompt' takes Tone"),
        (behaviour("x"), [Behaviour("a"), Behaviour("b")], "Behaviour was given twice; pass one instance"),
        (behaviour("x"), [{"word": "x"}], "parameters must be dataclass instances, got {'word': 'x'}"),
        (behaviour("x"), [Tone], f"parameters must be dataclass instances, got {Tone!r}"),
        (behaviour("x"), ["x" * 300], f"parameters must be dataclass instances, got '{'x' * 155}"),
    ],
)  # fmt: skip
def test_what_cannot_be_rendered_says_why(section: Section[Any], params: list[Any], message: str) -> None:
    assert refusal(lambda: prompt(section).render(*params)) == message


@pytest.mark.parametrize(
    "template", ["${}", "${ objective }", "${a-b}", "${open", "${a{b}}", "${" + "a" * 50]
)
def test_a_malformed_placeholder_never_reaches_the_model(template: str) -> None:
    found = {"${a{b}}": "${a"}.get(template, template[:40])
    assert refusal(lambda: prompt(behaviour(template)).render(Behaviour("a"))) == (
        f"section 'T': malformed placeholder {found!r}; write ${{name}}, or $${{ for a literal ${{"
    )


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
