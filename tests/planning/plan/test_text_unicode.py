"""The rules for text in ASCII and in any language: a plan holds what they accept, and the remedies work."""

from __future__ import annotations

import re
import unicodedata
from contextlib import closing
from dataclasses import fields

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planning import Plan, PlanningToolsSection, PlanPolicy, plan_text
from planning.plan.text import TextRule, TextRules, as_data, ascii_spelling, fitted, rules_for
from planning.tools import Toolbox
from session import Session, Snapshot
from session.stores import SqliteStore

UNICODE = rules_for("unicode")
NAMES = [field.name for field in fields(TextRules)]
every_rule = pytest.mark.parametrize(
    "rule",
    [getattr(rules, name) for rules in (rules_for("ascii"), UNICODE) for name in NAMES],
    ids=[f"{name} in {text}" for text in ("ascii", "any language") for name in NAMES],
)
PIECES = (
    *(
        "修复登录",
        "اختبار",
        "می‌خواهم",
        "בדיקה 12",
        "👨‍👩‍👧",
        "❤️",
        "देवनागरी",
        "é",
        "Å",
        "\u1100\u1161\u11a8",
        "　",
        "\u00a0",
    ),
    *(
        "\u202e",
        "\u2066",
        "\u200f",
        "\ufeff",
        "\ud800",
        "\ue000",
        "\u0378",
        "\n",
        "\t",
        "\r",
        "\0",
        "\u2028",
        "\u3164",
    ),
    *("\u2003", "\u0300", "\u200d", "a", " ", "(x)", "S001"),
)
texts = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=12).map("".join),
    st.text(st.characters(codec=None), max_size=20),
    st.integers(150, 700).map(lambda length: "e\u0301" * length),
)
REMEDY = re.compile(
    r"""at character (\d+); (?:remove it|(?:this field is one line, |only ASCII is allowed, )?"""
    r"""write (["'])(.*)\2)$""",
    re.DOTALL,
)


def _mended(text: str, rule: TextRule) -> str:
    """The text with each remedy carried out to the letter, last character first."""
    text = rule.trimmed(text)
    for message in reversed(rule.problems(text)):
        if found := re.search(r"; cut (\d+)$", message):
            text = text[: -int(found[1])]
        elif message.endswith("write the text in English or in ASCII"):
            text = "".join(each for each in text if each.isascii() or ascii_spelling(each) is not None)
        elif found := REMEDY.search(message):
            text = text.replace(text[int(found[1]) - 1], found[3] or "")
        else:
            assert re.fullmatch(r"\d+ more characters? to replace", message), message
    return text


@every_rule
@settings(max_examples=60)
@given(text=texts)
def test_a_plan_holds_what_is_accepted_and_the_remedy_of_a_refusal_works(rule: TextRule, text: str) -> None:
    assert rule.is_unicode <= (not any("ASCII" in message for message in rule.problems(text)))
    for _ in range(20):
        if not (problems := rule.problems(text)):
            break
        if problems[0].startswith("blank"):
            assert not text.strip() or rule.judge(text)[0] is None
            return
        text = _mended(text, rule)
    kept, problems = rule.judge(text)
    assert list(problems) == []
    assert (kept is None) <= rule.blank_is_none
    if kept is not None:
        rule.require(kept, "it is readable")
        assert rule.judge(kept)[0] == kept
        assert unicodedata.is_normalized("NFC", kept) if rule.is_unicode else kept.isascii()
        assert not any(unicodedata.bidirectional(each) in {"LRE", "RLO", "RLI", "PDI"} for each in kept)


@every_rule
@settings(max_examples=60)
@given(text=texts)
def test_a_mirrored_text_is_one_that_the_rule_accepts(rule: TextRule, text: str) -> None:
    fits = fitted(text, rule)
    assert fits == "" or rule.judge(fits)[0] == fits


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ab\u202ecd", "RIGHT-TO-LEFT OVERRIDE (U+202E) at character 3; remove it"),
        ("a\u2003b", 'EM SPACE (U+2003) at character 2; write " "'),
        ("a\ud800", "a character (U+D800) at character 2; remove it"),
        ("写\n测", 'a newline (U+000A) at character 2; this field is one line, write " "'),
        ("测" * 161, "161 characters, at most 160; cut 1"),
        ("\u3164\u200d", "blank; send 1 to 160 characters"),
    ],
)
def test_a_refusal_names_the_character_and_its_remedy(text: str, message: str) -> None:
    assert UNICODE.title.problems(text) == [message]


@given(text=texts)
@settings(max_examples=25)
def test_what_the_tools_accept_is_stored_and_read_back_equal(
    text: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("store") / "plans.db"
    with closing(SqliteStore(path)) as store:
        session = Session(session_id="x", store=store)
        section = PlanningToolsSection(session=session, policy=PlanPolicy(text="unicode"))
        box = Toolbox(section.tools(), session=session)
        step = {"title": text, "details": text}
        said = box.call("planning_setup_plan", {"objective": text, "initial_steps": [step]})
        assert "ASCII" not in said.message
        if not said.success:
            return
        marked = box.call("planning_mark_step", {"step_id": "1", "status": "done", "note": text})
        assert "ASCII" not in marked.message
        plan = session.select_latest(Plan)
        assert plan is not None
        assert plan.steps[0].title == UNICODE.title.judge(text)[0] == plan.objective
        assert as_data(plan.objective) in plan_text(plan)
        back = Snapshot.from_json(session.snapshot().to_json())
        other = Session(session_id="x", store=store)
        PlanningToolsSection(session=other)
        assert back.select_latest(Plan) == other.select_latest(Plan) == plan
