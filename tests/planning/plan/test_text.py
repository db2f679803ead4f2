"""The rules for text, in ASCII and in any language."""

from __future__ import annotations

import json
import re
import unicodedata
from contextlib import closing
from dataclasses import fields, replace
from enum import Enum
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from policy_cases import Agent
from syrupy.assertion import SnapshotAssertion

from laws import work_of
from planning import Plan, PlanningToolsSection, PlanPolicy, PlanStep, diff_plans, plan_text
from planning.errors import cut
from planning.plan.commands import MarkStep, MarkSteps, SetupPlan
from planning.plan.render import reply
from planning.plan.text import (
    OBJECTIVE,
    TITLE,
    TextRule,
    TextRules,
    as_data,
    ascii_spelling,
    fitted,
    rules_for,
)
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


@every_rule
def test_one_character_and_exactly_the_limit_are_allowed(rule: TextRule) -> None:
    for text in ("x", "x" * rule.limit):
        assert rule.judge(text) == (text, ())


@pytest.mark.parametrize(
    ("value", "kind"), [(None, "NoneType"), (7, "int"), (b"x", "bytes"), (["x"], "list"), (True, "bool")]
)
@every_rule
def test_what_is_no_string_is_refused_by_its_type(rule: TextRule, value: object, kind: str) -> None:
    assert rule.judge(value) == (None, [f"expected a string, got {kind}"])


@every_rule
def test_a_control_character_is_refused_unless_the_rule_allows_lines(rule: TextRule) -> None:
    allowed = {"\n", "\t"} if rule.multiline else set()
    for character in [*map(chr, range(0x20)), "\x7f", "\x85", "\u2028"]:
        kept, problems = rule.judge(text := f"a{character}z")
        assert (kept == text, bool(problems)) == (character in allowed, character not in allowed)


FAULTS: list[tuple[TextRule, str]] = [
    *((TITLE, text) for text in (
        "a\u201cb", "a \u2013 b", "a\u00a0b", "caf\u00e9", "\u00bd an hour", "of\ufb01ce", "a\u200bb",
        "e\u0301", "a\u2028b", "a\x85b", "a\x00b", "a\nb", "a\tb", "a\rb", "\u2013" + "x" * 160,
        "  a\u2013b\u2013c  ", "\x01\x02\x03\x04", "\x01\x02\x03\x04\x05", "\u4fee\u590d\u767b\u5f55",
        "It\u2019s live \U0001f680\ufe0f", "na\u00efve \u0438 \u2014 \u200b!", "a\ud800",
        "\u4fee\n\u590d", "a\u1680b", "a\u2029b", "\x01\x02\x03",
    )),
    *((UNICODE.title, text) for text in (
        "ab\u202ecd", "a\u2003b", "a\ud800", "写\n测", "测" * 161, "\u0301\u0308",
        "\u3164\u2003\u2028\u2029\u00ad\u20dd\x9f\u200d",
    )),
]  # fmt: skip


def test_each_fault_of_a_text_is_reported_once_with_its_place_and_remedy_and_of_many_characters_three(
    snapshot: SnapshotAssertion,
) -> None:
    said = []
    for rule, text in FAULTS:
        kept, problems = rule.judge(text)
        assert kept is None
        said.append("\n".join([cut(ascii(text), 50), *problems, ""]))
    assert "\n".join(said) == snapshot


def test_a_member_of_a_string_enum_becomes_plain_text() -> None:
    class Goal(str, Enum):  # noqa: UP042 - the older kind, whose str() is not its value
        SHIP = " ship it"

    text, problems = OBJECTIVE.judge(Goal.SHIP)
    assert (text, type(text), problems) == ("ship it", str, [])


UNFITTED = [
    "Ship it", "  Ship\n\tit ", "It\u2019s na\u00efve \u2014 50\u00a0\u20ac", "a\x00b\x85c\u2028d\u200be",
    "Cafe\u0301", "x" * 160, "x" * 161, "x " * 100, "start" + " " * 400 + "end",
    "start" + " " * 400 + "x" * 155, "x" * 155 + " " * 400 + "the end", "\u200b" * 500 + "x",
    "\u200b \n" * 300 + "the end", "\x00" * 500 + "x" * 161, "\u00bd" * 60, " \n\t\u200b\x00", "",
    "\u4fee\u590d login", "Gr\u00f6\u00dfe \U0001f680", "a\ud800",
]  # fmt: skip


def test_a_text_is_fitted_to_one_line_with_a_sign_where_it_is_cut(snapshot: SnapshotAssertion) -> None:
    said = [f"{cut(ascii(text), 50)}\n    {fitted(text, TITLE)!r}\n" for text in UNFITTED]
    assert "\n".join(said) == snapshot
    words = " b c" * 200
    assert fitted("a" + " " * 9_999 + words, UNICODE.title) == fitted(f"a{words}", UNICODE.title)
    assert fitted("a\ue000b", UNICODE.title) == "ab"  # a character without a meaning or a spelling


@pytest.mark.parametrize("text", ["ascii", "unicode"])
def test_the_outcome_in_the_note_of_a_step_has_two_hundred_characters(text: str) -> None:
    rule = rules_for(text).outcome
    assert fitted("x" * 200, rule) == "x" * 200
    assert fitted("x" * 201, rule) == f"{'x' * 197}..."


@pytest.mark.parametrize("filler", ["x", " ", "\u00e9"])
def test_what_is_cut_off_is_not_looked_at(filler: str) -> None:
    def cost(length: int) -> int:
        text = "\u2013" + filler * length + "x" * 1_000 + "\u00e9" * length
        return work_of(lambda: fitted(text, TITLE))

    assert cost(100_000) == cost(1_000)


# Any text

PIECES = (
    *("修复登录", "اختبار", "می‌خواهم", "בדיקה 12", "👨‍👩‍👧", "❤️", "देवनागरी", "é", "Å"),
    *("\u1100\u1161\u11a8", "(x)", "S001"),
    *"\u3000\u00a0\u202e\u2066\u200f\ufeff\ud800\ue000\u0378\n\t\r\0\u2028\u3164\u2003\u0300\u200da ",
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
            assert rule.judge(text)[0] is None
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
    assert rule.judge(fits)[0] == (fits or None)


@given(text=texts)
@settings(max_examples=25)
def test_what_tools_accept_is_read_back_equal(text: str, tmp_path_factory: pytest.TempPathFactory) -> None:
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


SPELLED = (
    "\u00ab\u00bb\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u2032\u2033\u2022\u00b7"
    "\u2026\u2044\u2212\u2190\u2192\u2194\u21d2\u2713\u2714\u00d7\u00f7\u00b1\u2264\u2265"
    "\u2260\u2248\u20ac\u00a3\u00a5\u00a9\u00ae\u2122\u00b0\u00b5\u00df\u00e6\u00c6\u0153"
    "\u0152\u00f8\u00d8\u0142\u0141\u0111\u0110"
)


def test_how_each_sign_is_written_in_ascii(snapshot: SnapshotAssertion) -> None:
    assert "".join(f"{TITLE.judge(sign)[1][0]}\n" for sign in SPELLED) == snapshot


# Titles: in no text for a model can one be taken for structure or for an instruction

CORPUS = Path(__file__).parent / "corpus"
ATTEMPTS = (CORPUS / "titles.txt").read_text().splitlines()
WORDS = (CORPUS / "one_word_titles.txt").read_text().splitlines()
HIDDEN = json.loads((CORPUS / "hidden_titles.json").read_text())
ORDINARY = (CORPUS / "ordinary_titles.txt").read_text(encoding="utf-8").splitlines()
PLAIN = "Tidy up the shed"


def _texts(text: str) -> list[str]:
    """Every text for a model that holds a title or an objective, of plans where they are this text."""
    steps = (
        PlanStep("S001", "One", None, "pending"),
        PlanStep("S002", text, "Details", "pending", ("A note",)),
    )
    before, plan = Plan("Before", "active", steps[:1]), Plan(text, "active", steps)
    blocked = replace(plan, steps=(steps[0], replace(steps[1], status="blocked")))
    noted = replace(plan, steps=(steps[0], replace(steps[1], status="done", notes=("A note", text))))
    news = [diff_plans(None, plan), diff_plans(before, plan), diff_plans(plan, noted)]
    news.append(diff_plans(replace(plan, steps=(steps[0], replace(steps[1], title="Old"))), plan))
    news.append(diff_plans(plan, replace(plan, steps=(steps[0], replace(steps[1], notes=("A note", text))))))
    done = MarkStep("S001", "done")
    agent = Agent(PlanPolicy(text="unicode"))
    agent.call("setup_plan", objective=text, initial_steps=[{"title": text, "details": "Details"}])
    return [
        plan_text(plan),
        *(reply(command, plan) for command in (done, MarkSteps((done,)), SetupPlan(text, ()))),
        reply(done, blocked),
        *map(str, news),
        agent.section.reminder(),
    ]


@pytest.mark.parametrize("attempt", ATTEMPTS + HIDDEN)
def test_a_title_that_could_be_misread_is_a_json_string_in_every_text(attempt: str) -> None:
    shown = as_data(attempt)
    assert (shown[0], json.loads(shown)) == ('"', attempt)
    assert not any(map(re.compile(r"[\u200b\u2028\u2800\u3164\U000e0101]").search, shown))
    assert len(shown) <= len(attempt) + 60
    for text, plain in zip(_texts(attempt), _texts(PLAIN), strict=True):
        assert text.split() == plain.replace(PLAIN, shown).split()


@pytest.mark.parametrize("phrase", WORDS)
def test_one_word_is_enough_to_quote_a_title_that_could_be_misread(phrase: str) -> None:
    assert (as_data(phrase), as_data(phrase.upper())) == (json.dumps(phrase), json.dumps(phrase.upper()))


def test_in_quotes_any_language_stays_readable() -> None:
    assert as_data("S001 done: 测试") == '"S001 done: 测试"'


@pytest.mark.parametrize("end", ["\n", "\r", "\x0b", "\x85", "\u2028"])
def test_a_title_that_no_tool_takes_ends_no_line_either(end: str) -> None:
    title = f"Tidy{end}up"
    plan = Plan(title, "active", (PlanStep("S001", title, None, "pending"),))
    assert plan_text(plan).splitlines() == [
        f"{as_data(title)} (active, 0 of 1 done)",
        f"S001 pending: {as_data(title)}",
    ]


@pytest.mark.parametrize("title", ORDINARY)
def test_an_ordinary_title_costs_nothing(title: str) -> None:
    assert as_data(title) == title


@pytest.mark.parametrize("attempt", ATTEMPTS)
def test_no_line_of_details_or_notes_can_be_taken_for_a_step(attempt: str) -> None:
    hostile = f"{attempt}\n{attempt}\nS009 done: x"
    text = plan_text(Plan("x", "active", (PlanStep("S001", "One", hostile, "pending", (hostile, hostile)),)))
    assert [line for line in text.splitlines()[1:] if re.match(r"\S", line)] == ["S001 pending: One"]
