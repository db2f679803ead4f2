"""The names and ids of steps against what exists."""

from __future__ import annotations

import pytest
from plan_findings import findings, findings_text, older, plan, step, thought
from syrupy.assertion import SnapshotAssertion

from planning.workflow import Capabilities

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
    "an unknown type": plan(step("a", type="robot")),
    "repeated ids": plan(*map(step, ["a", "b", "a", "A", "a", " a", "b"])),
    "steps without an id": plan(*map(step, [None, None, "", "", "a"])),
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


@pytest.mark.parametrize(
    "capabilities", [None, Capabilities(tools=None), Capabilities(tools=None, handlers=["search"])]
)
def test_names_of_a_kind_that_is_not_known_are_not_checked(capabilities: Capabilities | None) -> None:
    assert findings(plan(step("a", name="anything")), capabilities) == []


def test_when_everything_is_wrong_only_the_first_names_are_compared_with_all() -> None:
    many = Capabilities(tools=[f"look_{number}" for number in range(15_000)])
    first, second = findings(plan(step("a", name="lok_7"), step("b", name="lokk_8")), many)
    listed = f"the tools are {', '.join(f'look_{number}' for number in range(20))} and 14,980 more"
    assert (first.hint, second.hint) == ("did you mean look_7?", listed)


def in_a_cycle(size: int) -> dict[str, object]:
    return plan(*(step(str(number), str((number + 1) % size)) for number in range(size)))


LONG = "i" * 100_000
DEPENDENCIES: dict[str, object] = {
    "a dependency with a wrong letter": plan(step("fetch"), step("parse", "fetsh")),
    "a dependency that is not similar to an id": plan(step("fetch"), step("parse", "report")),
    "a dependency like the step's own id": plan(step("fetch"), step("parse", "pars")),
    "no step has an id": plan(step(None, "a")),
    "a step whose id is a number": [
        step(1),
        step("b", "1", inputs={"a": "${1.output}"}),
        step("c", "2"),
    ],
    "a step that depends on itself": plan(step("a", "a")),
    "repeated dependencies": plan(step("a"), step("b", "a", "a", None, None, "x", "a", "x")),
    "a cycle, reported from its earliest step": plan(
        step("z"), step("b", "z", "c"), step("a", "b"), step("c", "a")
    ),
    "two cycles": plan(step("a", "b"), step("b", "a"), step("c", "d", "a"), step("d", "c")),
    "a dependency on a later step": plan(step("a", "b"), step("b")),
    "a cycle of eight": in_a_cycle(8),
    "a cycle of nine": in_a_cycle(9),
    "a cycle of ten thousand": in_a_cycle(10_000),
    "a repeated id in a cycle": plan(step("a", "b"), step("b", "a"), step("a", "a")),
    "the older form": [older(1, dependencies=[2]), older(2, dependencies=[1, 1, 2, 9])],
    "ids that are long or odd": plan(step(LONG), step("a", f"{LONG}x"), step("b\n", "b \n")),
}
"""By name, plans whose steps depend on each other, correctly or not."""


def test_what_steps_depend_on(snapshot: SnapshotAssertion) -> None:
    assert findings_text(DEPENDENCIES) == snapshot


def test_a_line_break_in_an_id_is_escaped_in_the_message_of_a_cycle() -> None:
    (cycle,) = findings(plan(step("a\nb", "c"), step("c", "a\nb")))
    assert cycle.message == r"steps depend on each other in a cycle: 'a\nb' -> c -> 'a\nb'"
