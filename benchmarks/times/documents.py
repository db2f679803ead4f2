"""What checking a workflow document costs, beside a schema alone and beside json-repair."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import json_repair
import jsonschema

from benchmarks.harness import OURS, Cost, Section, at_least, at_most, bullets, fastest, microseconds, table
from benchmarks.peers import floor
from planning.workflow import Capabilities, schema_text, validate_workflow

__all__ = ["measure"]

SMALL, LARGE = 50, 5_000
SCHEMA, REPAIR, LOADS = "jsonschema alone", "json-repair alone", "json.loads of it"
DOORS = {
    OURS: "validate_workflow, from the text to the report, with the tool's name known",
    SCHEMA: "json.loads, then jsonschema.validate with the same schema: no ids, names or references",
    LOADS: "the value of a valid text alone",
    REPAIR: "json_repair.loads: a value, without places, schema or any further check",
}
CAPABILITIES = Capabilities(tools=["search"])
METHOD = """\
Milliseconds from a document's text to its report. Every round measures each library once; a figure is the
lowest of the rounds. The broken document is in a fence, with prose around it and a trailing comma in every
step and list. Before measuring, the value that each library reads is compared with the intended one."""
SMALL_MILLISECONDS, LARGE_MILLISECONDS, LINEAR = 1.0, 150.0, 2.0
TIMES_SCHEMA, TIMES_REPAIR = 5.0, 2.5


def measure(rounds: int) -> Section:
    """Time every door in turn."""
    schema, broken = json.loads(schema_text(1)), broken_text(SMALL)
    report, wanted = validate_workflow(broken, CAPABILITIES), json.loads(plan_text(SMALL))
    if not report.ok or report.parsed_plan != wanted or json_repair.loads(broken) != wanted:
        raise RuntimeError("the broken document was not read as intended")
    runs: dict[tuple[str, str], Callable[[], float]] = {
        (OURS, "broken"): partial(microseconds, partial(_check, broken), 20),
        (REPAIR, "broken"): partial(microseconds, lambda: json_repair.loads(broken), 20),
    }
    for steps, times in ((SMALL, 20), (LARGE, 1)):
        text = plan_text(steps)
        runs[OURS, f"{steps}"] = partial(microseconds, partial(_check, text), times)
        runs[LOADS, f"{steps}"] = partial(microseconds, floor.loads(text), times)
        runs[SCHEMA, f"{steps}"] = partial(microseconds, partial(_by_schema, text, schema), times)
    time = {key: each / 1_000 for key, each in fastest(runs, rounds).items()}
    columns = (f"{SMALL}", f"{LARGE}", "broken")
    small, large, mended = (time[OURS, column] for column in columns)
    return Section(
        "One document",
        ("session-planning", "jsonschema", "jsonschema-rs", "json-repair"),
        [
            METHOD,
            table(
                ["with", f"{SMALL} steps, valid", f"{LARGE:,} steps, valid", f"{SMALL} steps, broken"],
                [[door, *(time.get((door, column), "") for column in columns)] for door in DOORS],
            ),
            bullets(DOORS),
        ],
        [
            at_most(f"a valid document of {SMALL} steps", small, SMALL_MILLISECONDS, "ms"),
            at_most(f"a valid document of {LARGE:,} steps", large, LARGE_MILLISECONDS, "ms"),
            at_most(
                f"a step among {LARGE:,} beside one among {SMALL}", large / LARGE / (small / SMALL), LINEAR
            ),
            at_least(f"faster than {SCHEMA}", time[SCHEMA, f"{SMALL}"] / small, TIMES_SCHEMA),
            at_least(f"broken: faster than {REPAIR}", time[REPAIR, "broken"] / mended, TIMES_REPAIR),
        ],
        [
            Cost(
                f"a document of {steps:,} steps, {what}", 1_000 * ours, LOADS, 1_000 * time[LOADS, f"{steps}"]
            )
            for steps, what, ours in (
                (SMALL, "valid", small),
                (LARGE, "valid", large),
                (SMALL, "broken", mended),
            )
        ],
    )


def plan_text(steps: int) -> str:
    """A valid document as a model writes it: each step reads the output of the one before."""
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


def _check(text: str) -> None:
    report = validate_workflow(text, CAPABILITIES)
    if not report.ok:
        raise RuntimeError(f"a valid document was refused: {report.errors[0]}")


def _by_schema(text: str, schema: dict[str, Any]) -> None:
    jsonschema.validate(json.loads(text), schema)
