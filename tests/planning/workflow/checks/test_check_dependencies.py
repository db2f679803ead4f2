"""What steps depend on."""

from __future__ import annotations

import pytest
from drafting import found, older, step, told

from planning.workflow.checks.steps import check_steps

CIRCLE = "steps depend on each other in a circle: "
OUT = "take one of these dependencies out of depends_on"


@pytest.mark.parametrize(
    ("dependency", "hint"),
    [
        ("fetsh", "did you mean fetch?"),
        ("FETCH", "did you mean fetch?"),
        ("fetch ", "did you mean fetch?"),
        ("report", "the step ids are fetch, parse"),
        ("", "the step ids are fetch, parse"),
        ("pars", "the step ids are fetch, parse"),
    ],
)
def test_a_dependency_on_no_step_is_told_with_the_nearest_other_one(dependency: str, hint: str) -> None:
    wrong = [("unknown_dependency", f"no step has the id {dependency!r}", hint, ("depends_on", 0))]
    assert told(step("fetch"), step("parse", dependency)) == wrong


def test_where_no_step_has_an_id_the_hint_says_so() -> None:
    assert told(step(None, "a")) == [
        ("unknown_dependency", "no step has the id 'a'", "there are no step ids", ("depends_on", 0))
    ]


def test_a_step_whose_id_is_a_number_is_not_unknown() -> None:
    assert told(step(1), step("b", "1", inputs={"a": "${1.output}"}), step("c", "2")) == [
        ("unknown_dependency", "no step has the id '2'", "the step ids are b, c", ("depends_on", 0))
    ]


def test_a_step_that_depends_on_itself_is_no_circle_besides() -> None:
    assert told(step("a", "a")) == [
        ("self_dependency", "step 'a' depends on itself", "leave it out of depends_on", ("depends_on", 0))
    ]


def test_each_further_entry_of_a_dependency_is_told() -> None:
    told_twice = ("repeated_dependency", "'a' stands in depends_on already", "leave out this one")
    assert told(step("a"), step("b", "a", "a", None, None, "x", "a", "x")) == [
        (*told_twice, ("depends_on", 1)),
        ("unknown_dependency", "no step has the id 'x'", "the step ids are a, b", ("depends_on", 4)),
        (*told_twice, ("depends_on", 5)),
        ("repeated_dependency", "'x' stands in depends_on already", "leave out this one", ("depends_on", 6)),
    ]


def test_a_circle_is_told_once_from_its_earliest_step() -> None:
    plan = (step("z"), step("b", "z", "c"), step("a", "b"), step("c", "a"))
    assert told(*plan) == [("dependency_cycle", f"{CIRCLE}b -> c -> a -> b", OUT, ("depends_on", 1))]
    assert [(each.step_index, each.step_id) for each in found(*plan)] == [(1, "b")]


def test_every_circle_is_told() -> None:
    plan = (step("a", "b"), step("b", "a"), step("c", "d", "a"), step("d", "c"))
    assert [each[1] for each in told(*plan)] == [f"{CIRCLE}a -> b -> a", f"{CIRCLE}c -> d -> c"]


def test_a_dependency_on_a_later_step_is_no_circle() -> None:
    assert told(step("a", "b"), step("b")) == []


@pytest.mark.parametrize(
    ("size", "path"),
    [
        (8, "0 -> 1 -> 2 -> 3 -> 4 -> 5 -> 6 -> 7 -> 0"),
        (9, "0 -> 1 -> 2 -> ... 4 more ... -> 7 -> 8 -> 0"),
        (10_000, "0 -> 1 -> 2 -> ... 9,995 more ... -> 9998 -> 9999 -> 0"),
    ],
)
def test_the_path_of_a_long_circle_is_shortened(size: int, path: str) -> None:
    plan = [step(str(number), str((number + 1) % size)) for number in range(size)]
    assert told(*plan) == [("dependency_cycle", CIRCLE + path, OUT, ("depends_on", 0))]


def test_of_steps_with_the_same_id_the_first_is_meant() -> None:
    plan = (step("a"), step("b", "a"), step("a", "b"))
    assert [each[0] for each in told(*plan)] == ["duplicate_step_id"]
    plan = (step("a", "b"), step("b", "a"), step("a", "a"))
    assert [each[0] for each in told(*plan)] == ["dependency_cycle", "duplicate_step_id"]


def test_a_step_of_the_older_form_is_told_of_its_dependencies() -> None:
    drafts = [
        older(0, {"step_id": 1, "dependencies": [2]}),
        older(1, {"step_id": 2, "dependencies": [1, 1, 2, 9]}),
    ]
    assert [(each.message, each.hint, each.path) for each in check_steps(drafts, None)] == [
        ("'1' stands in dependencies already", "leave out this one", ("steps", 1, "dependencies", 1)),
        ("step '2' depends on itself", "leave it out of dependencies", ("steps", 1, "dependencies", 2)),
        ("no step has the id '9'", "the step ids are 1, 2", ("steps", 1, "dependencies", 3)),
        (
            f"{CIRCLE}1 -> 2 -> 1",
            "take one of these dependencies out of dependencies",
            ("steps", 0, "dependencies", 0),
        ),
    ]


def test_hostile_ids_are_shown_and_not_repeated() -> None:
    long = "i" * 1_000_000
    assert told(step(long), step("a", f"{long}x"), step("b\n", "b \n")) == [
        (
            "unknown_dependency",
            f"no step has the id '{'i' * 37}...'",
            rf"the step ids are '{'i' * 37}...', a, 'b\n'",
            ("depends_on", 0),
        ),
        (
            "unknown_dependency",
            r"no step has the id 'b \n'",
            rf"the step ids are '{'i' * 37}...', a, 'b\n'",
            ("depends_on", 0),
        ),
    ]
