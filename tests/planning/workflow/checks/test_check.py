"""The names and ids of steps against what exists."""

from __future__ import annotations

from typing import Any

import pytest
from drafting import draft, found, older, step, told
from hypothesis import given
from hypothesis import strategies as st

from planning.workflow.capabilities import Capabilities
from planning.workflow.checks.steps import check_steps
from planning.workflow.codes import CODES
from planning.workflow.findings import Found

KNOWN = Capabilities(tools=["search", "fetch_page"], handlers=["notify"], agents=["writer"])


def test_a_plan_that_is_right_has_no_findings() -> None:
    plan = [
        step("find", inputs={"query": "${user_prompt}", "limit": 3}, outputs=["items", "count"]),
        step("read", "find", name="fetch_page", inputs={"urls": ["${find.output.items[0].url}", {"a": [1]}]}),
        step(
            "tell",
            "read",
            "find",
            type="handler",
            name="notify",
            inputs={"text": "${find.output.count} found"},
        ),
        {"step_id": "write", "agent": "writer", "inputs": {"text": "${read.output}"}, "depends_on": ["read"]},
        {"step_id": "think", "description": "Think.", "depends_on": ["write"]},
    ]
    assert found(*plan, capabilities=KNOWN) == []


def test_a_finding_names_its_step_and_the_place_in_the_document() -> None:
    assert found(step("find", name="serch"), capabilities=KNOWN) == [
        Found(
            "unknown_tool",
            "no tool is named 'serch'",
            "did you mean search?",
            ("steps", 0, "name"),
            step_index=0,
            step_id="find",
        )
    ]


@pytest.mark.parametrize(
    ("fields", "code", "message", "hint"),
    [
        ({"name": "SEARCH"}, "unknown_tool", "no tool is named 'SEARCH'", "did you mean search?"),
        ({"name": " search"}, "unknown_tool", "no tool is named ' search'", "did you mean search?"),
        ({"name": "mail"}, "unknown_tool", "no tool is named 'mail'", "the tools are search, fetch_page"),
        (
            {"name": "s\u00e9arch\n"},
            "unknown_tool",
            r"no tool is named 's\xe9arch\n'",
            "did you mean search?",
        ),
        (
            {"type": "handler", "name": "notyfy"},
            "unknown_handler",
            "no handler is named 'notyfy'",
            "did you mean notify?",
        ),
        ({"agent": "wrter"}, "unknown_agent", "no agent is named 'wrter'", "did you mean writer?"),
        (
            {"name": "notify"},
            "wrong_capability",
            "'notify' is a handler, not a tool",
            'write "type": "handler"',
        ),
        (
            {"type": "handler", "name": "search"},
            "wrong_capability",
            "'search' is a tool, not a handler",
            'write "type": "tool"',
        ),
        (
            {"name": "writer"},
            "wrong_capability",
            "'writer' is an agent, not a tool",
            'write "agent": "writer" in place of type and name, which schema version 2 has',
        ),
        (
            {"agent": "search"},
            "wrong_capability",
            "'search' is a tool, not an agent",
            'write "type": "tool" and "name": "search" in place of agent',
        ),
    ],
)
def test_a_name_that_no_capability_has(fields: dict[str, Any], code: str, message: str, hint: str) -> None:
    place = ("agent",) if "agent" in fields else ("name",)
    assert told(step("a", **fields), capabilities=KNOWN) == [(code, message, hint, place)]


def test_a_name_with_all_the_words_of_another_means_that_one() -> None:
    known = Capabilities(tools=["calculate_discount", "calculate_tip", "get_weather"])
    assert told(step("a", name="calculate_tip_amount"), capabilities=known) == [
        ("unknown_tool", "no tool is named 'calculate_tip_amount'", "did you mean calculate_tip?", ("name",))
    ]


@pytest.mark.parametrize(
    ("fields", "message", "hint"),
    [
        ({"tool": "notify"}, "'notify' is a handler, not a tool", "name a tool"),
        ({"tool": "writer"}, "'writer' is an agent, not a tool", "name it in agent, not in tool"),
        ({"agent": "search"}, "'search' is a tool, not an agent", "name it in tool, not in agent"),
    ],
)
def test_a_step_of_the_older_form_is_told_of_its_own_fields(
    fields: dict[str, Any], message: str, hint: str
) -> None:
    (finding,) = check_steps([older(0, {"step_id": 1} | fields)], KNOWN)
    assert (finding.code, finding.message, finding.hint) == ("wrong_capability", message, hint)
    assert finding.path == ("steps", 0, *fields)


def test_where_there_are_none_of_a_kind_the_hint_says_so() -> None:
    nothing = Capabilities()
    assert told(step("a"), step("b", type="handler"), step("c", agent="x"), capabilities=nothing) == [
        ("unknown_tool", "no tool is named 'search'", "there are no tools", ("name",)),
        ("unknown_handler", "no handler is named 'search'", "there are no handlers", ("name",)),
        ("unknown_agent", "no agent is named 'x'", "there are no agents", ("agent",)),
    ]


def test_a_long_list_of_names_is_cut() -> None:
    many = Capabilities(tools=[f"{letter * 9}" for letter in "abcdefghijklmnopqrstuvwxyz"])
    listed = ", ".join(letter * 9 for letter in "abcdefghijklmnopqrst")
    assert [each[2] for each in told(step("1"), capabilities=many)] == [f"the tools are {listed} and 6 more"]


@pytest.mark.parametrize(
    "capabilities", [None, Capabilities(tools=None), Capabilities(tools=None, handlers=["search"])]
)
def test_names_of_a_kind_that_is_not_known_are_not_checked(capabilities: Capabilities | None) -> None:
    assert told(step("a", name="anything"), capabilities=capabilities) == []


@pytest.mark.parametrize(
    "fields", [{"type": None}, {"type": "robot"}, {"name": None}, {"name": ""}, {"name": 5}]
)
def test_what_the_schema_refuses_is_not_told_again(fields: dict[str, Any]) -> None:
    known = None if fields.get("type") == "robot" else KNOWN
    assert told(step("a") | fields, capabilities=known) == []


def test_each_repeat_of_an_id_is_told_with_the_first_step_that_has_it() -> None:
    assert told(step("a"), step("b"), step("a"), step("A"), step("a"), step(" a"), step("b")) == [
        (
            "duplicate_step_id",
            "step 3 has the id 'a', which step 1 has already",
            "give it another id",
            ("step_id",),
        ),
        (
            "duplicate_step_id",
            "step 5 has the id 'a', which step 1 has already",
            "give it another id",
            ("step_id",),
        ),
        (
            "duplicate_step_id",
            "step 7 has the id 'b', which step 2 has already",
            "give it another id",
            ("step_id",),
        ),
    ]


def test_steps_without_an_id_are_no_duplicates() -> None:
    assert told(step(None), step(None), step(""), step(""), step(7), step(7), step("a")) == []


def test_steps_are_counted_as_the_document_counts_them() -> None:
    drafts = [draft(2, step("a")), draft(5, step("a"))]
    assert [each.message for each in check_steps(drafts, None)] == [
        "step 6 has the id 'a', which step 3 has already"
    ]


def test_when_everything_is_wrong_only_the_first_names_are_compared_with_all() -> None:
    many = Capabilities(tools=[f"look_{number}" for number in range(15_000)])
    hints = [
        each[2]
        for each in told(
            step("a", name="lok_7"),
            step("b", name="lokk_8"),
            step("c", name="LOOK_9"),
            step("d", name="x" * 101),
            capabilities=many,
        )
    ]
    listed = ", ".join(f"look_{number}" for number in range(20))
    assert hints == [
        "did you mean look_7?",
        f"the tools are {listed} and 14,980 more",
        "did you mean look_9?",
        f"the tools are {listed} and 14,980 more",
    ]


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(["${a.output}", "${b", "${a}"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
IDS = st.sampled_from(["a", "b", "a.output", "", " ", "}", "${", "\ud800", None, 3])
STEPS = st.fixed_dictionaries(
    {
        "step_id": IDS,
        "type": st.sampled_from(["tool", "handler", "x"]),
        "name": st.sampled_from(["search", "s", ""]),
    },
    optional={
        "inputs": st.dictionaries(st.text(max_size=3), JSON, max_size=3) | JSON,
        "outputs": st.lists(st.text(max_size=3), max_size=3) | st.none(),
        "depends_on": st.lists(IDS, max_size=4) | JSON,
        "agent": st.sampled_from(["writer", "w"]),
    },
)


@given(st.lists(STEPS, max_size=6))
def test_any_steps_give_findings_that_can_be_told(steps: list[dict[str, Any]]) -> None:
    def search(query: str, limit: int = 3) -> None: ...

    drafts = [draft(index, fields) for index, fields in enumerate(steps)]
    for each in check_steps(drafts, Capabilities(tools=[search], handlers=["search"])):
        assert each.code in CODES
        for words in (each.message, each.hint):
            assert words.isascii()
            assert words.isprintable()
            assert words
        value: Any = {"steps": steps}
        for part in each.path:
            value = value[part]
        assert each.within is None or (
            isinstance(value, str) and 0 <= each.within[0] < each.within[1] <= len(value)
        )
