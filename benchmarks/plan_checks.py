"""What checking a plan document costs, beside the straightforward way and beside json-repair."""

from __future__ import annotations

import gc
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from statistics import median
from time import perf_counter_ns
from typing import Any

import json_repair
import jsonschema

from planning.workflow import Capabilities, Report, schema_text, validate_workflow

__all__ = [
    "CYCLE",
    "DOORS",
    "HOSTILE",
    "LARGE",
    "OURS",
    "REPAIR",
    "SMALL",
    "STRAIGHT",
    "PlanFigures",
    "measure_plans",
]

SMALL, LARGE, CYCLE = 50, 5_000, 10_000
OURS, STRAIGHT, REPAIR = "session-planning", "jsonschema and a loop", "json-repair alone"

DOORS = {
    OURS: "validate_workflow, from the text to the report, with the tool's name known",
    STRAIGHT: "json.loads, jsonschema.validate with the same schema, then ids, names and references",
    REPAIR: "json_repair.loads: a value, without places, schema or any further check",
}

_CAPABILITIES = Capabilities(tools=["search"])
_REFERENCE = re.compile(r"\$\{([^}]*)\}")


@dataclass(frozen=True, slots=True)
class PlanFigures:
    """Milliseconds, medians of rounds.

    Attributes:
        valid: By door and number of steps, a valid plan.
        broken: By door, a plan of 50 steps with a fence, prose around, and trailing commas everywhere.
        cycle: A circle through 10,000 steps, to the report.
        hostile: By what it is, other input that is hard to read.
    """

    valid: dict[tuple[str, int], float]
    broken: dict[str, float]
    cycle: float
    hostile: dict[str, float]


def plan_text(steps: int) -> str:
    """A valid plan as a model writes it: each step reads what the one before found."""
    return json.dumps([_step(number) for number in range(steps)], indent=2)


def _step(number: int) -> dict[str, Any]:
    before = f"step_{number - 1}"
    return {
        "step_id": f"step_{number}",
        "description": "Search the archive for what was said",
        "type": "tool",
        "name": "search",
        "inputs": {
            "query": f"${{{before}.output.title}} and more" if number else "${user_prompt}",
            "limit": 5,
        },
        "outputs": ["title", "body"],
        "depends_on": [before] if number else [],
    }


def broken_text(steps: int) -> str:
    """The same in a fence, with prose around it, and a comma behind the last field of every step and list."""
    text = plan_text(steps).replace("\n  }", ",\n  }").replace('"body"\n', '"body",\n')
    return f"Here is the plan:\n```json\n{text}\n```\nTell me when it is done."


def circle_text(steps: int) -> str:
    """A plan in which every step waits for the one before, and the first one for the last."""
    plan = [_step(number) for number in range(steps)]
    plan[0]["depends_on"] = [f"step_{steps - 1}"]
    return json.dumps(plan)


def measure_plans(*, rounds: int, small_times: int) -> PlanFigures:
    """Time every door in turn, several rounds.

    Args:
        rounds: How many times each is visited.
        small_times: How many plans of 50 steps one visit checks.
    """
    schema = json.loads(schema_text(1))
    doors: dict[tuple[str, int], Callable[[], object]] = {}
    for steps in (SMALL, LARGE):
        text = plan_text(steps)
        doors[OURS, steps] = lambda text=text: _valid(validate_workflow(text, _CAPABILITIES))
        doors[STRAIGHT, steps] = lambda text=text: _straightforward(text, schema, {"search"})
    bad, wanted = broken_text(SMALL), json.loads(plan_text(SMALL))
    report = validate_workflow(bad, _CAPABILITIES)
    if not report.ok or report.parsed_plan != wanted or json_repair.loads(bad) != wanted:
        raise RuntimeError("the broken plan was not read as it is meant")
    repairs: dict[str, Callable[[], object]] = {
        OURS: lambda: _valid(validate_workflow(bad, _CAPABILITIES)),
        REPAIR: lambda: json_repair.loads(bad),
    }
    circle = circle_text(CYCLE)
    if [error.code for error in validate_workflow(circle, _CAPABILITIES).errors] != ["dependency_cycle"]:
        raise RuntimeError("the circle was not found")
    valid: dict[tuple[str, int], list[float]] = {key: [] for key in doors}
    broken: dict[str, list[float]] = {key: [] for key in repairs}
    for _ in range(rounds):
        for key, check in doors.items():
            valid[key].append(_timed(check, small_times if key[1] == SMALL else 1))
        for name, check in repairs.items():
            broken[name].append(_timed(check, small_times))
    return PlanFigures(
        {key: median(times) for key, times in valid.items()},
        {name: median(times) for name, times in broken.items()},
        median(_timed(lambda: validate_workflow(circle, _CAPABILITIES), 1) for _ in range(rounds)),
        {what: _timed(lambda text=text: validate_workflow(text), 1) for what, text in HOSTILE.items()},
    )


def _valid(report: Report) -> None:
    if not report.ok:
        raise RuntimeError(f"a valid plan was refused: {report.errors[0]}")


def _timed(check: Callable[[], object], times: int) -> float:
    """Milliseconds of one check, the mean of several."""
    check()
    gc.collect()
    gc.disable()
    try:
        started = perf_counter_ns()
        for _ in range(times):
            check()
        return (perf_counter_ns() - started) / times / 1e6
    finally:
        gc.enable()


def _straightforward(text: str, schema: dict[str, Any], tools: set[str]) -> None:
    """What one would write by hand: it stops at the first error, and knows no place."""
    plan = json.loads(text)
    jsonschema.validate(plan, schema)
    known = {step["step_id"] for step in plan}
    if len(known) != len(plan):
        raise ValueError("duplicate step id")
    for step in plan:
        if step["type"] == "tool" and step["name"] not in tools:
            raise ValueError("unknown tool")
        for other in step["depends_on"]:
            if other not in known or other == step["step_id"]:
                raise ValueError("bad dependency")
        for value in step["inputs"].values():
            for reference in _REFERENCE.findall(value) if isinstance(value, str) else ():
                if reference != "user_prompt" and reference.split(".")[0] not in step["depends_on"]:
                    raise ValueError("bad reference")


def _mega(text: str, megabytes: float = 5) -> str:
    return text * int(megabytes * 1e6 / len(text))


HOSTILE = {
    "10,000 opening brackets": "[" * 10_000,
    "5 MB of opening brackets": _mega("["),
    "5 MB of prose with brackets": _mega("see [1] and {x} "),
    "5 MB of a valid plan": plan_text(14_000),
    "5 MB of a plan with trailing commas": broken_text(13_900),
    "5 MB in one string": json.dumps([{"step_id": _mega("x")}]),
    "5 MB of a string that never ends": '[{"step_id": "' + _mega("x"),
    "5 MB of single-quoted strings": "[" + _mega("'it', ") + "]",
    "5 MB of references": json.dumps([{**_step(0), "inputs": {"query": _mega("${step_0.output} ")}}]),
    "5 MB of steps that are none": f"[{_mega('1, ')}1]",
}
"""By what it is."""
