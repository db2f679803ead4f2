"""The planning section: its copy is stored whole, and its tools come with it."""

from __future__ import annotations

import re

import pytest
from syrupy.assertion import SnapshotAssertion

from planning import Plan, PlanningStrategy, PlanningToolsSection, Toolbox
from planning.plan.text import NOTE, OBJECTIVE, TITLE
from planning.prompt import Prompt
from planning.testing import MarkdownFiles
from session import Session, select_latest

STRATEGIES = pytest.mark.parametrize("strategy", PlanningStrategy, ids=lambda strategy: strategy.name.lower())


def rendered(session: Session, strategy: PlanningStrategy) -> str:
    section = PlanningToolsSection(session=session, strategy=strategy)
    return Prompt(ns="tests", key="planning", sections=[section]).render().text


@STRATEGIES
def test_each_strategy_renders_its_stored_copy(
    session: Session, strategy: PlanningStrategy, snapshot: SnapshotAssertion
) -> None:
    assert rendered(session, strategy) == snapshot.use_extension(MarkdownFiles)


def test_strategies_differ_in_the_mindset_paragraph_alone(session: Session) -> None:
    paragraphs = [rendered(session, strategy).split("\n\n") for strategy in PlanningStrategy]
    heading, when, mindset, guidance = zip(*paragraphs, strict=True)
    assert (len(set(heading)), len(set(when)), len(set(mindset)), len(set(guidance))) == (1, 1, 3, 1)


@STRATEGIES
def test_the_copy_is_ascii_with_one_heading_and_an_ordered_list(
    session: Session, strategy: PlanningStrategy
) -> None:
    text = rendered(session, strategy)
    assert text.isascii()
    assert re.findall(r"^#+ .*$", text, re.MULTILINE) == ["## 1. Planning"]
    assert re.findall(r"^(\d+)\. ", text, re.MULTILINE) == [str(number) for number in range(1, 8)]
    assert not re.search(r"\b(above|previous|preceding|earlier)\b", text, re.IGNORECASE)


@STRATEGIES
def test_the_copy_names_every_tool_and_the_limits_that_are_enforced(
    session: Session, strategy: PlanningStrategy
) -> None:
    section = PlanningToolsSection(session=session, strategy=strategy)
    text = section.body()
    assert re.findall(r"`(planning_\w+)`", text) == [
        "planning_setup_plan",
        "planning_add_step",
        "planning_update_step",
        "planning_mark_step",
        "planning_read_plan",
        "planning_clear_plan",
    ]
    assert re.findall(r"max (\d+)", text) == [str(rule.limit) for rule in (OBJECTIVE, TITLE, NOTE)]


def test_a_session_is_required() -> None:
    with pytest.raises(TypeError):
        PlanningToolsSection()  # type: ignore[call-arg]  # the point of the test
    with pytest.raises(TypeError) as caught:
        PlanningToolsSection(session=None)  # type: ignore[arg-type]  # the point of the test
    assert str(caught.value) == "session must be a Session or return one, got None"


def test_an_unknown_strategy_is_refused(session: Session) -> None:
    with pytest.raises(TypeError) as caught:
        PlanningToolsSection(session=session, strategy="react")  # type: ignore[arg-type]  # the point
    assert str(caught.value) == "strategy must be a PlanningStrategy, got 'react'"


@pytest.mark.parametrize("enabled", [False, lambda: False, lambda _params: False])
def test_a_disabled_section_renders_nothing_and_offers_no_tool(session: Session, enabled: object) -> None:
    section = PlanningToolsSection(session=session, enabled=enabled)  # type: ignore[arg-type]  # several forms
    prompt = Prompt(ns="t", key="t", sections=[section]).render()
    assert (prompt.text, prompt.tools, section.tools()) == ("", (), ())


def test_two_sections_on_one_session_share_its_plan_and_reduce_once(session: Session) -> None:
    first, second = PlanningToolsSection(session=session), PlanningToolsSection(session=session)
    Toolbox(first.tools(), session=session).call("planning_setup_plan", {"objective": "One"})
    Toolbox(second.tools(), session=session).call("planning_add_step", {"steps": ["Once"]})
    plan = select_latest(session, Plan)
    assert plan is not None
    assert [step.step_id for step in plan.steps] == ["S001"]


def test_the_reminder_is_the_live_plan_while_it_is_active(
    section: PlanningToolsSection, toolbox: Toolbox
) -> None:
    assert section.reminder() == ""
    toolbox.call("planning_setup_plan", {"objective": "Ship it", "initial_steps": ["Tag"]})
    assert section.reminder() == "Ship it (active, 0 of 1 done)\nS001 pending: Tag"
    toolbox.call("planning_mark_step", {"step_id": "S001", "status": "done"})
    assert section.reminder() == ""
