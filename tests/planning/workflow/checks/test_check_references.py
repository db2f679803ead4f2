"""References in the inputs of steps."""

from __future__ import annotations

from typing import Any

import pytest
from drafting import found, older, step, told

from planning.workflow.checks.steps import check_steps

GENERAL = "write ${user_prompt}, or ${STEP.output.FIELD} with the id of a step for STEP"
FETCH = step("fetch", outputs=["items", "title"])


def malformed(text: str, *before: dict[str, Any]) -> list[tuple[Any, ...]]:
    steps = before or (step("fetch"), step("a.b"), step("caf\u00e9"))
    return [
        each[:3]
        for each in told(*steps, step("now", "fetch", inputs={"x": text}))
        if each[0] != "unknown_dependency"
    ]


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("${fetch}", "${fetch.output}"),
        ("${fetch.result}", "${fetch.output.result}"),
        ("${fetch.result[0].a}", "${fetch.output.result[0].a}"),
        ("${fetch[0]}", "${fetch.output[0]}"),
        ("${fetch.outputs}", "${fetch.output}"),
        ("${fetch.outputs.x}", "${fetch.output.x}"),
        ("${fetch.Output[1]}", "${fetch.output[1]}"),
        ("${fetch.output.}", "${fetch.output}"),
        ("${fetch.items.0.name}", "${fetch.output.items[0].name}"),
        ("${a.b}", "${a.b.output}"),
        ("${a.b.c}", "${a.b.output.c}"),
        ("${fetsh}", "${fetch.output}"),
        ("${Fetch.result}", "${fetch.output.result}"),
        ("${ user_prompt }", "${user_prompt}"),
        ("${ fetch.output.items }", "${fetch.output.items}"),
        ("${user_promt}", "${user_prompt}"),
        ("${USER_PROMPT}", "${user_prompt}"),
        ("${user_prompt.text}", "${user_prompt}"),
    ],
)
def test_the_right_form_of_a_malformed_reference_is_told_to_the_letter(text: str, right: str) -> None:
    assert malformed(text) == [("malformed_reference", f"'{text}' is no reference", f"write {right}")]


@pytest.mark.parametrize(
    "text", ["${}", "${ }", "${.}", "${anything else}", "${fetch..x}", "${caf\u00e9}", "${fetch.a]}"]
)
def test_where_it_cannot_be_guessed_the_forms_are_told(text: str) -> None:
    assert malformed(text) == [("malformed_reference", f"{text!a} is no reference", GENERAL)]


def test_the_output_of_the_step_itself_is_not_what_was_meant() -> None:
    assert malformed("${now.result}") == [("malformed_reference", "'${now.result}' is no reference", GENERAL)]


def test_a_malformed_reference_that_stands_twice_is_told_twice() -> None:
    wrong = ("malformed_reference", "'${fetch}' is no reference", "write ${fetch.output}")
    assert malformed("${fetch}${fetch}") == [wrong, wrong]


def test_a_long_malformed_reference_is_not_guessed_at() -> None:
    text = "${fetch." + "x" * 200 + "}"
    assert malformed(text) == [("malformed_reference", f"'{text[:37]}...' is no reference", GENERAL)]


def test_a_nested_reference_is_told_and_the_inner_one_read() -> None:
    assert malformed("${fetch.output.${fetch.output}}") == [
        (
            "malformed_reference",
            "another reference begins within '${fetch.output.'",
            "write } behind each reference; none can stand within another",
        )
    ]


def test_an_unclosed_reference_is_told_at_its_place() -> None:
    (finding,) = found(FETCH, step("now", "fetch", inputs={"x": "see ${fetch.output and more"}))
    assert (finding.code, finding.message, finding.hint, finding.path, finding.within) == (
        "unclosed_reference",
        "'${fetch.output' has no closing brace",
        "write } behind the reference",
        ("steps", 1, "inputs", "x"),
        (4, 18),
    )


@pytest.mark.parametrize(
    "text", ["{{other.output}}", "$other.output", "$", "{", "{user_prompt}", "$ {x}", "$${fetch.output}", ""]
)
def test_other_text_is_plain(text: str) -> None:
    assert malformed(text) == []


def test_references_are_found_at_any_depth_and_several_in_one_text() -> None:
    inputs = {"a": [{"b": ["${x.output} and ${y.output}"]}], "c": "${user_prompt}", "d": {"${z.output}": 5}}
    assert [(each.path[2:], each.within) for each in found(FETCH, step("now", inputs=inputs))] == [
        (("inputs", "a", 0, "b", 0), (0, 11)),
        (("inputs", "a", 0, "b", 0), (16, 27)),
    ]


def test_a_reference_sixty_levels_deep_is_found() -> None:
    value: Any = "${x.output}"
    for _ in range(60):
        value = [value]
    assert [each[3] for each in told(step("a", inputs={"v": value}))] == [("inputs", "v", *[0] * 60)]


@pytest.mark.parametrize(
    ("text", "shown", "hint"),
    [
        ("${fetsh.output.items}", "fetsh", "did you mean fetch?"),
        ("${nobody.output}", "nobody", "the step ids are fetch, now"),
        ("${noww.output}", "noww", "the step ids are fetch, now"),
    ],
)
def test_a_reference_to_no_step_is_told_with_the_nearest_other_one(text: str, shown: str, hint: str) -> None:
    message = f"a reference to step '{shown}', but no step has this id"
    assert told(FETCH, step("now", "fetch", inputs={"x": text})) == [
        ("unknown_reference", message, hint, ("inputs", "x"))
    ]


def test_a_step_that_refers_to_itself_is_told() -> None:
    assert told(step("a", inputs={"x": "${a.output.b}"})) == [
        (
            "self_reference",
            "step 'a' refers to its own output",
            "refer to a step that is done before it, or to ${user_prompt}",
            ("inputs", "x"),
        )
    ]


def test_a_reference_to_a_step_that_is_no_dependency_is_told_once_for_each_step() -> None:
    inputs = {"x": "${fetch.output.items} ${fetch.output.title}", "y": "${fetch.output}"}
    assert told(FETCH, step("now", inputs=inputs)) == [
        (
            "undeclared_dependency",
            "a reference to step 'fetch', which is not in depends_on",
            "add fetch to depends_on",
            ("inputs", "x"),
        )
    ]


def test_a_reference_to_a_step_that_itself_depends_on_this_one_is_told_so() -> None:
    assert told(step("a", inputs={"x": "${c.output}"}), step("b", "a"), step("c", "b")) == [
        (
            "undeclared_dependency",
            "a reference to step 'c', which itself depends on this step",
            "refer to a step that is done before this one, or turn the dependency round",
            ("inputs", "x"),
        )
    ]


def test_a_reference_to_a_dependency_of_a_dependency_is_a_warning() -> None:
    assert told(FETCH, step("b", "fetch"), step("c", "b", inputs={"x": "${fetch.output}"})) == [
        (
            "indirect_reference",
            "a reference to step 'fetch', which this step depends on only through others",
            "add fetch to depends_on",
            ("inputs", "x"),
        )
    ]


def test_within_a_circle_all_steps_are_reached() -> None:
    plan = (step("a", "b"), step("b", "c"), step("c", "a", inputs={"x": "${b.output}"}))
    assert [each[0] for each in told(*plan)] == ["dependency_cycle", "indirect_reference"]


def test_a_long_chain_of_steps_that_all_refer_far_back_is_told_step_by_step() -> None:
    size = 3_000
    plan = [step("0"), step("1", "0")]
    plan += [
        step(str(at), str(at - 1), inputs={"x": f"${{{at // 2 - 1}.output}} ${{{size - 1}.output}}"})
        for at in range(2, size - 1)
    ]
    plan.append(step(str(size - 1), str(size - 2)))
    codes = [each.code for each in found(*plan)]
    assert codes == ["indirect_reference", "undeclared_dependency"] * (size - 3)


@pytest.mark.parametrize("depends_on", ["fetch", None, 5, {"a": 1}, [None], [3, "x"]])
def test_where_the_dependencies_cannot_be_read_none_is_missing(depends_on: object) -> None:
    codes = {
        each[0]
        for each in told(FETCH, step("now", inputs={"x": "${fetch.output}"}) | {"depends_on": depends_on})
    }
    assert codes <= {"unknown_dependency"}


def test_a_reference_to_the_step_that_a_wrong_dependency_means_is_not_told_besides() -> None:
    plan = (FETCH, step("now", "fetsh", inputs={"x": "${fetch.output}"}))
    assert [each[0] for each in told(*plan)] == ["unknown_dependency"]


def test_without_a_list_of_dependencies_there_are_none() -> None:
    lone = {"step_id": "now", "agent": "x", "inputs": {"x": "${fetch.output}"}}
    assert [each[0] for each in told(FETCH, lone)] == ["undeclared_dependency"]


@pytest.mark.parametrize(
    "text", ["${fetch.output}", "${fetch.output.items}", "${fetch.output.items[0].x}", "${fetch.output[0].x}"]
)
def test_declared_outputs_may_be_referred_to(text: str) -> None:
    assert told(FETCH, step("now", "fetch", inputs={"x": text})) == []


@pytest.mark.parametrize(
    ("outputs", "name", "hint"),
    [
        (["items", "title"], "titel", "did you mean title?"),
        (["items", "title"], "count", "the outputs of fetch are items, title"),
        ([], "count", "add it to the outputs of fetch"),
    ],
)
def test_an_output_that_is_not_declared_is_a_warning(outputs: list[str], name: str, hint: str) -> None:
    text = f"${{fetch.output.{name}[0].x}}"
    assert told(step("fetch", outputs=outputs), step("now", "fetch", inputs={"x": text})) == [
        ("undeclared_output", f"step 'fetch' declares no output '{name}'", hint, ("inputs", "x"))
    ]


def test_a_step_id_with_dots_is_matched_by_the_longest_id() -> None:
    plan = (step("a"), step("a.output", outputs=["b"]), step("a.b"))
    right = "${a.output.output.b} ${a.b.output.x} ${a.output} ${a.output.c}"
    assert told(*plan, step("now", "a", "a.output", "a.b", inputs={"x": right})) == []
    wrong = "${a.output.output.c}"
    assert told(*plan, step("now", "a.output", inputs={"x": wrong})) == [
        (
            "undeclared_output",
            "step 'a.output' declares no output 'c'",
            "the outputs of a.output are b",
            ("inputs", "x"),
        )
    ]


def test_a_step_of_the_older_form_is_told_of_its_dependencies() -> None:
    drafts = [
        older(0, {"step_id": 3}),
        older(1, {"step_id": 4, "agent": "x", "parameters": {"x": "${3.output.a}"}}),
    ]
    (finding,) = check_steps(drafts, None)
    assert (finding.code, finding.hint, finding.path) == (
        "undeclared_dependency",
        "add 3 to dependencies",
        ("steps", 1, "parameters", "x"),
    )


def test_a_step_without_inputs_that_can_be_read_has_no_references() -> None:
    assert told(step("a", inputs="${x.output}")) == []


def test_a_reference_is_not_told_of_other_things_in_the_same_step() -> None:
    (unclosed, unknown) = found(step(None, inputs={"b": "${x.output}", "a": "${"}))
    assert (unclosed.code, unclosed.step_id) == ("unclosed_reference", None)
    assert (unknown.code, unknown.hint) == ("unknown_reference", "there are no step ids")
