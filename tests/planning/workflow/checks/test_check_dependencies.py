"""What steps depend on."""

from __future__ import annotations

from plan_findings import findings, findings_text, older, plan, step
from syrupy.assertion import SnapshotAssertion


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
