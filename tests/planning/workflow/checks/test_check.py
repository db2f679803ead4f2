"""The names and ids of steps against what exists."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from plan_findings import findings, findings_text, older, plan, step, thought
from syrupy.assertion import SnapshotAssertion

from planning.workflow import Capabilities
from planning.workflow.codes import CODES

KNOWN = Capabilities(tools=["search", "fetch_page"], handlers=["notify"], agents=["writer"])

NAMES: dict[str, object] = {
    "everything is right": plan(
        step("find", inputs={"query": "${user_prompt}", "limit": 3}, outputs=["items", "count"]),
        step("read", "find", name="fetch_page", inputs={"urls": ["${find.output.items[0].url}", {"a": [1]}]}),
        step("tell", "find", type="handler", name="notify", inputs={"text": "${find.output.count} found"}),
        thought("write", "read", agent="writer", inputs={"text": "${read.output}"}),
        thought("think", "write"),
    ),
    "a tool with a letter too few": plan(step("find", name="serch")),
    "a tool in capitals": plan(step("a", name="SEARCH")),
    "a tool with a blank": plan(step("a", name=" search")),
    "a tool whose name is not similar to another": plan(step("a", name="mail")),
    "a tool in odd letters": plan(step("a", name="s\u00e9arch\n")),
    "a handler with a wrong letter": plan(step("a", type="handler", name="notyfy")),
    "an agent with a letter too few": plan(thought("a", agent="wrter")),
    "a handler named as a tool": plan(step("a", name="notify")),
    "a tool named as a handler": plan(step("a", type="handler", name="search")),
    "an agent named as a tool": plan(step("a", name="writer")),
    "a tool named as an agent": plan(thought("a", agent="search")),
    "a handler named as a tool in the older form": [older(1, tool="notify")],
    "an agent named as a tool in the older form": [older(1, tool="writer")],
    "a tool named as an agent in the older form": [older(1, agent="search")],
    "no type": plan(step("a", type=None)),
    "no name": plan(step("a", name=None)),
    "an empty name": plan(step("a", name="")),
    "a name that is a number": plan(step("a", name=5)),
    "an unknown type": plan(step("a", type="robot")),
    "repeated ids": plan(*map(step, ["a", "b", "a", "A", "a", " a", "b"])),
    "steps without an id": plan(*map(step, [None, None, "", "", "a"])),
    "ids that are numbers": [step(7), step(7)],
    "steps between other things": plan(1, None, step("a"), 2, [], step("a")),
}
"""By name, plans of steps that name what they call, correctly or not, and the ids of steps."""


def test_the_names_and_ids_of_steps(snapshot: SnapshotAssertion) -> None:
    assert findings_text(NAMES, KNOWN) == snapshot


def test_a_name_with_all_the_words_of_another_means_that_one() -> None:
    known = Capabilities(tools=["calculate_discount", "calculate_tip", "get_weather"])
    (found,) = findings(plan(step("a", name="calculate_tip_amount")), known)
    assert found.hint == "did you mean calculate_tip?"


def test_where_there_are_none_of_a_kind_the_hint_says_so() -> None:
    steps = step("a"), step("b", type="handler"), thought("c", agent="x")
    assert [(each.code, each.message, each.hint) for each in findings(plan(*steps), Capabilities())] == [
        ("unknown_tool", "no tool is named 'search'", "there are no tools"),
        ("unknown_handler", "no handler is named 'search'", "there are no handlers"),
        ("unknown_agent", "no agent is named 'x'", "there are no agents"),
    ]


def test_a_long_list_of_names_is_cut() -> None:
    many = Capabilities(tools=[letter * 9 for letter in "abcdefghijklmnopqrstuvwxyz"])
    listed = ", ".join(letter * 9 for letter in "abcdefghijklmnopqrst")
    assert [each.hint for each in findings(plan(step("1")), many)] == [f"the tools are {listed} and 6 more"]


@pytest.mark.parametrize(
    "capabilities", [None, Capabilities(tools=None), Capabilities(tools=None, handlers=["search"])]
)
def test_names_of_a_kind_that_is_not_known_are_not_checked(capabilities: Capabilities | None) -> None:
    assert findings(plan(step("a", name="anything")), capabilities) == []


def test_when_everything_is_wrong_only_the_first_names_are_compared_with_all() -> None:
    many = Capabilities(tools=[f"look_{number}" for number in range(15_000)])
    names = {"a": "lok_7", "b": "lokk_8", "c": "LOOK_9", "d": "x" * 101}
    source = plan(*(step(step_id, name=name) for step_id, name in names.items()))
    listed = f"the tools are {', '.join(f'look_{number}' for number in range(20))} and 14,980 more"
    hints = ["did you mean look_7?", listed, "did you mean look_9?", listed]
    assert [each.hint for each in findings(source, many)] == hints


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
        "description": st.just("d"),
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
def test_findings_of_any_steps_are_printable_and_have_a_place(steps: list[dict[str, Any]]) -> None:
    def search(query: str, limit: int = 3) -> None: ...

    source = plan(*steps)
    size = len(json.dumps(source))
    for each in findings(source, Capabilities(tools=[search], handlers=["search"])):
        assert each.code in CODES
        for words in (each.message, each.hint):
            assert words.isascii()
            assert words.isprintable()
            assert words
        value: Any = source
        for part in each.pointer.split("/")[1:]:
            name = part.replace("~1", "/").replace("~0", "~")
            value = value[int(name)] if isinstance(value, list) else value[name]
        assert each.column is not None
        assert 1 <= each.column < each.column + each.length <= size + 1
