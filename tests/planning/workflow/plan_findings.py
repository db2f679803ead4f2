"""Short ways to write documents, and the findings in them as text for snapshots."""

from __future__ import annotations

import json
from ast import literal_eval
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from syrupy.assertion import SnapshotAssertion

from planning.workflow import Capabilities, Finding, Report, validate_workflow

SHOWN = 1_100


def thought(step_id: object, *depends_on: object, **fields: Any) -> dict[str, Any]:
    return {"step_id": step_id, "description": "d", "depends_on": list(depends_on), **fields}


def step(step_id: object, *depends_on: object, **fields: Any) -> dict[str, Any]:
    return thought(step_id, *depends_on, **{"type": "tool", "name": "search", "inputs": {}, **fields})


def nested(levels: int, inside: Any = ()) -> list[Any]:
    """A list at so many levels, with this at the bottom."""
    made = [*inside]
    for _ in range(levels):
        made = [made]
    return made


def whole(written: Any) -> str:
    """A text as a file of texts has it: itself, or a list of texts and of pairs of a text and a count."""
    if isinstance(written, str):
        return written
    return "".join(part if isinstance(part, str) else part[0] * part[1] for part in written)


def plan(*steps: object, **fields: Any) -> dict[str, Any]:
    return {"schema_version": 2, "goal": "g", "steps": list(steps), **fields}


def findings(source: object, capabilities: Capabilities | None = None) -> list[Finding]:
    report = validate_workflow(json.dumps(source), capabilities)
    return [*report.errors, *report.warnings]


def stored_text(snapshot: SnapshotAssertion) -> str:
    """The text of a stored snapshot, in which each input is beside its outcome: code has no list of them.

    To add one, write it there, and update the snapshot. A test that fails before it compares leaves its file
    unused, and an update deletes it then: git has it.
    """
    place = snapshot.extension.get_location(test_location=snapshot.test_location, index=snapshot.index)
    return Path(place).read_text("utf-8")


def stored(snapshot: SnapshotAssertion) -> dict[str, Any]:
    """The documents of a stored snapshot by their names."""
    blocks = stored_text(snapshot).removeprefix("# ").split("\n\n# ")
    return {name: json.loads(source) for name, source, *_ in (block.split("\n") for block in blocks)}


def stored_lines(snapshot: SnapshotAssertion) -> list[str]:
    """The lines of a stored snapshot that are inputs: outcomes are indented."""
    return [line for line in stored_text(snapshot).splitlines() if not line.startswith("    ")]


def stored_values(snapshot: SnapshotAssertion) -> list[Any]:
    """The same as values, of which Python prints the lines."""
    return [literal_eval(line) for line in stored_lines(snapshot)]


def with_outcomes(values: Iterable[Any], outcome: Callable[[Any], object]) -> str:
    """Each value in a line, and below it what comes of it, as a stored snapshot has them."""
    return "".join(f"{value!a}\n    {outcome(value)}\n" for value in values)


def findings_text(cases: Mapping[str, object], capabilities: Capabilities | None = None) -> str:
    """Each case with its name, its document and every finding with its place."""
    blocks = []
    for name, source in cases.items():
        text = json.dumps(source)
        shown = text if len(text) <= SHOWN else f"{text[:SHOWN]}... ({len(text)} characters)"
        lines = [f"# {name}", shown, *map(_line, findings(source, capabilities))]
        blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


def check_words(report: Report) -> None:
    """Every message is one plain line, and each form of the report can be made."""
    for each in report.errors + report.warnings:
        assert (each.message + each.hint).isascii()
        assert "\n" not in each.message + each.hint
    assert json.loads(json.dumps(report.to_dict()))["success"] is report.ok
    assert report.to_prompt().isascii()
    assert report.render().replace("\n", "").isprintable()


def _line(each: Finding) -> str:
    step = "" if each.step_index is None else f", step {each.step_index + 1} {each.step_id!a}"
    path = each.pointer if len(each.pointer) <= SHOWN else f"{each.pointer[:SHOWN]}..."
    place = f"{each.column}+{each.length}{step}, {ascii(path)[1:-1]}"
    return f"- {each.code} at {place}: {each.message}; {each.hint}"
