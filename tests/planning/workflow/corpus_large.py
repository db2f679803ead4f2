"""Cases of the corpus that are too large to be read by anyone: made here, and not written down."""

from __future__ import annotations

import json
from typing import Any

from corpus_cases import Case, Expected

__all__ = ["large_cases"]

_STEP = {"description": "d", "type": "tool", "name": "search", "inputs": {}, "depends_on": []}
_INPUTS = (
    '[{"step_id": "a", "description": "d", "type": "tool", "name": "search", "depends_on": [], '
    '"inputs": {"x": '
)


def large_cases() -> list[Case]:
    return [*_deep(), *_long(), *_many()]


def _case(name: str, text: str, *findings: Expected, value: bool = True) -> Case:
    said = {"value": json.loads(text)} if value else {}
    return Case(name, "large", text, findings, **said)


def _deep() -> list[Case]:
    allowed = _INPUTS + "[" * 61 + "]" * 61 + "}}]"
    one_more = _INPUTS + "[" * 62 + "]" * 62 + "}}]"
    place = Expected(1, len(_INPUTS) + 62, "too_deep")
    objects = '{"a":' * 10_000
    return [
        _case("Sixty-four levels are read.", allowed),
        _case("The sixty-fifth level is an error at its bracket.", one_more, place, value=False),
        _case("Ten thousand levels of lists are too deep.", "[" * 10_000, _deep_at(65), value=False),
        _case("Ten thousand levels of objects are too deep.", objects, _deep_at(64 * 5 + 1), value=False),
    ]


def _deep_at(column: int) -> Expected:
    return Expected(1, column, "too_deep")


def _long() -> list[Case]:
    text = "x" * 1_000_000
    prose = "Once more, then.\n" * 20_000
    step = json.dumps({"step_id": "a", **_STEP})
    return [
        _case("A string of a million characters is read.", f'{_INPUTS}"{text}"}}}}]'),
        Case(
            "Much prose before a plan is passed over.",
            "large",
            f"{prose}[{step}]",
            (Expected(1, 1, "surrounding_text"),),
            [json.loads(step)],
        ),
    ]


def _many() -> list[Case]:
    count = 2_000
    steps = [{"step_id": f"s{number}", **_STEP} for number in range(count)]
    circle: list[dict[str, Any]] = [
        {**step, "depends_on": [f"s{(number + 1) % count}"]} for number, step in enumerate(steps)
    ]
    lines = ",\n".join(map(json.dumps, circle))
    first = lines.split("\n")[0]
    commas = ",\n".join(json.dumps(step)[:-1] + ",}" for step in steps)
    return [
        _case("Two thousand steps are read.", json.dumps(steps)),
        _case(
            "A circle through two thousand steps is one error.",
            f"[\n{lines}\n]",
            Expected(2, first.index('"s1"') + 1, "dependency_cycle"),
        ),
        Case(
            "Two thousand commas too many are one warning.",
            "large",
            f"[\n{commas}\n]",
            (Expected(2, commas.index(",}") + 1, "trailing_comma"),),
            steps,
        ),
    ]
