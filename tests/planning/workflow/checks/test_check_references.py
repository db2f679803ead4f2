"""References in the inputs of steps."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from plan_findings import findings, findings_text, older, plan, step, thought
from syrupy.assertion import SnapshotAssertion

from planning.errors import show

GENERAL = "write ${user_prompt}, or ${STEP.output.FIELD} with the id of a step for STEP"
CASES: dict[str, list[Any]] = json.loads(
    (Path(__file__).parents[1] / "references.json").read_text(encoding="utf-8")
)
FETCH = step("fetch", outputs=["items", "title"])


def malformed(text: str) -> list[tuple[str, str, str]]:
    """What is said of a text in the inputs of a step that depends on three."""
    before = step("fetch"), step("a.b"), step("caf\u00e9")
    now = step("now", "fetch", "a.b", inputs={"x": text})
    return [(each.code, each.message, each.hint) for each in findings(plan(*before, now))]


@pytest.mark.parametrize(
    ("text", "right"),
    CASES["malformed"],
)
def test_the_hint_for_a_malformed_reference_is_its_right_form(text: str, right: str) -> None:
    wrong = ("malformed_reference", f"'{text}' is not a reference", f"write {right}")
    assert malformed(text) == [wrong]
    assert malformed(f"Top secret: {text}{text}") == [wrong, wrong]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        *((text, None) for text in ["${}", "${.}", "${anything else}", "${fetch..x}", "${ user_prompt }"]),
        ("${caf\u00e9}", r"${caf\xe9}"),
        ("${now.result}", None),
        ("${fetch.a\tb}", r"${fetch.a\tb}"),
        ("${fetch." + "x" * 200 + "}", "${fetch." + "x" * 29 + "..."),
    ],
)
def test_a_malformed_reference_with_an_unclear_meaning_gets_the_general_forms(
    text: str, shown: str | None
) -> None:
    assert malformed(text) == [("malformed_reference", f"'{shown or text}' is not a reference", GENERAL)]


@pytest.mark.parametrize(
    ("text", "right"),
    CASES["foreign"],
)
def test_a_reference_in_a_foreign_notation_gets_the_right_form(text: str, right: str) -> None:
    warning = ("foreign_reference", f"{show(text)} names a step, but is plain text here", f"write {right}")
    assert malformed(text) == [warning]
    assert malformed(f"Read {text} now") == [warning]


@pytest.mark.parametrize("text", ["{fetch}", "$(fetch)", "<fetch>", "$fetch"])
def test_a_name_alone_in_a_foreign_notation_counts_where_it_is_the_whole_text(text: str) -> None:
    assert [code for code, _, _ in malformed(text)] == ["foreign_reference"]
    assert malformed(f"Read {text} now") == []


@pytest.mark.parametrize(
    "text",
    CASES["quiet"],
)
def test_prose_and_code_with_braces_is_quiet(text: str) -> None:
    assert malformed(text) == []


def test_a_key_with_a_dot_is_an_output_like_any_other() -> None:
    fetch = step("fetch", outputs=["a.b", "c"])
    text = """${fetch.output["a.b"]} ${fetch.output['c']} ${fetch.output["d"]} ${fetch.output.a.b}"""
    told = findings(plan(fetch, step("now", "fetch", inputs={"x": text})))
    assert [(each.code, each.message) for each in told] == [
        ("undeclared_output", "step 'fetch' declares no output 'd'"),
        ("undeclared_output", "step 'fetch' declares no output 'a'"),
    ]


def deep(value: Any, levels: int) -> Any:
    for _ in range(levels):
        value = [value]
    return value


def now(text: object, *depends_on: str, **fields: Any) -> dict[str, Any]:
    """A plan with a step ``fetch``, and one with this text that depends on these."""
    return plan(FETCH, step("now", *depends_on, inputs={"x": text}, **fields))


NESTED = {"a": [{"b": ["${x.output} and ${y.output}"]}], "c": "${user_prompt}", "d": {"${z.output}": 5}}
DOTTED = (step("a"), step("a.output", outputs=["b"]), step("a.b"))
REFERENCES: dict[str, object] = {
    "a reference within another": now("${fetch.output.${fetch.output}}", "fetch"),
    "a reference that is not closed": now("see ${fetch.output and more", "fetch"),
    "several in one text, at any depth": plan(FETCH, step("now", inputs=NESTED)),
    "sixty levels deep": now(deep("${x.output}", 60)),
    "no such step, but a similar one": now("${fetsh.output.items}", "fetch"),
    "no such step, and no similar one": now("${nobody.output}", "fetch"),
    "no such step, but the id of the step itself is similar": now("${noww.output}", "fetch"),
    "its own output": plan(step("a", inputs={"x": "${a.output.b}"})),
    "a step that is not a dependency, three times": plan(
        FETCH,
        step("now", inputs={"x": "${fetch.output.items} ${fetch.output.title}", "y": "${fetch.output}"}),
    ),
    "a step that itself depends on this one": plan(
        step("a", inputs={"x": "${c.output}"}), step("b", "a"), step("c", "b")
    ),
    "a dependency of a dependency": plan(
        FETCH, step("b", "fetch"), step("c", "b", inputs={"x": "${fetch.output}"})
    ),
    "within a cycle": plan(step("a", "b"), step("b", "c"), step("c", "a", inputs={"x": "${b.output}"})),
    "the step that a wrong dependency means": now("${fetch.output}", "fetsh"),
    "declared outputs": now(
        "${fetch.output} ${fetch.output.items} ${fetch.output.items[0].x} ${fetch.output[0].x}", "fetch"
    ),
    "an output like a declared one": now("${fetch.output.titel[0].x}", "fetch"),
    "an output that is not similar to a declared one": now("${fetch.output.count[0].x}", "fetch"),
    "an output of a step that declares no outputs": plan(
        step("fetch", outputs=[]), step("now", "fetch", inputs={"x": "${fetch.output.count[0].x}"})
    ),
    "ids with dots, the longest of which is meant": plan(
        *DOTTED,
        step(
            "now",
            "a",
            "a.output",
            "a.b",
            inputs={"x": "${a.output.output.b} ${a.b.output.x} ${a.output} ${a.output.c}"},
        ),
    ),
    "an undeclared output of an id with dots": plan(
        *DOTTED, step("now", "a.output", inputs={"x": "${a.output.output.c}"})
    ),
    "of steps a and a.b the longer is meant": plan(
        step("a"), step("a.b"), step("c", "a", "a.b", inputs={"x": "${a.b.outpt.title}"})
    ),
    "an index that is not an ASCII digit": now("${fetch.output[\u0663]}", "fetch"),
    "the older form": [older(3), older(4, agent="x", parameters={"x": "${3.output.a}"})],
    "two references in a step without an id": plan(step(None, inputs={"b": "${x.output}", "a": "${"})),
    **{
        f"dependencies that are {shown!r}": plan(
            FETCH, step("now", inputs={"x": "${fetch.output}"}) | {"depends_on": shown}
        )
        for shown in (None, [3, "x"])
    },
    "a step that only thinks": plan(FETCH, thought("now", "fetch", inputs={"x": "${fetch.output.items}"})),
}
"""By name, plans whose steps refer to outputs, correctly or not."""


def test_references_in_the_inputs_of_steps(snapshot: SnapshotAssertion) -> None:
    assert findings_text(REFERENCES) == snapshot


def test_a_long_chain_of_steps_that_all_refer_far_back_has_findings_for_each_step() -> None:
    size = 150
    plain = {0: step("0"), 1: step("1", "0"), size - 1: step(str(size - 1), str(size - 2))}
    chain = [
        plain.get(at)
        or step(str(at), str(at - 1), inputs={"x": f"${{{at // 2 - 1}.output}} ${{{size - 1}.output}}"})
        for at in range(size)
    ]
    codes = sorted(each.code for each in findings(plan(*chain)))
    assert codes == ["indirect_reference"] * (size - 3) + ["undeclared_dependency"] * (size - 3)
