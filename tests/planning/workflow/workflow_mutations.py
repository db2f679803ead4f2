"""One fault put into a valid plan: of what kind it is, and where."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

__all__ = ["AROUND", "CHANGES", "WRITINGS", "At", "base"]

Path = tuple[str | int, ...]


class At(NamedTuple):
    """A finding that a fault must give.

    Attributes:
        code: Its code.
        path: Where it stands.
        at_key: Whether it stands at the name of the field.
        offset: At which character of a string; None for the value.
    """

    code: str
    path: Path
    at_key: bool = False
    offset: int | None = None


def base(text: str, value: Any) -> dict[str, Any]:
    """A valid plan of three steps in a row.

    Args:
        text: Any text.
        value: Any value, without a reference.
    """
    return {
        "schema_version": 2,
        "goal": text,
        "owner": text,
        "steps": [
            {"step_id": "a", "description": text, "type": "tool", "name": "search", "outputs": ["x"]},
            {
                "step_id": "b",
                "description": text,
                "inputs": {"v": value, "x": "${user_prompt}", "y": text},
                "type": "handler",
                "name": "store",
                "depends_on": ["a"],
            },
            {"step_id": "c", "description": text, "agent": "researcher", "inputs": {}, "depends_on": ["b"]},
        ],
    }


A, B, C = ("steps", 0), ("steps", 1), ("steps", 2)


def _set(path: Path, value: Any, *found: At) -> Callable[[Any], tuple[At, ...]]:
    """Set one field."""

    def change(plan: Any) -> tuple[At, ...]:
        for part in path[:-1]:
            plan = plan[part]
        plan[path[-1]] = value
        return found

    return change


def _drop(path: Path, *found: At) -> Callable[[Any], tuple[At, ...]]:
    """Leave out one field."""

    def change(plan: Any) -> tuple[At, ...]:
        for part in path[:-1]:
            plan = plan[part]
        del plan[path[-1]]
        return found

    return change


def _text(text: str, code: str, offset: int) -> Callable[[Any], tuple[At, ...]]:
    """Set an input to a text, wrong at one character."""
    path = (*B, "inputs", "y")
    return _set(path, text, At(code, path, offset=offset))


CHANGES: dict[str, Callable[[Any], tuple[At, ...]]] = {
    "a number for a text": _set((*B, "description"), 3, At("wrong_type", (*B, "description"))),
    "a text for a list": _set((*A, "depends_on"), "b", At("wrong_type", (*A, "depends_on"))),
    "a number in a list": _set((*C, "depends_on"), ["b", 1], At("wrong_type", (*C, "depends_on", 1))),
    "null for an object": _set((*C, "inputs"), None),
    "a text for true": _set(("can_modify",), "true", At("wrong_type", ("can_modify",))),
    "a step that is a text": _set(("steps", 3), "d", At("wrong_type", ("steps", 3))),
    "an object for the steps": _set(("steps",), {}, At("wrong_type", ("steps",))),
    "no goal": _drop(("goal",), At("missing_field", ())),
    "no description": _drop((*B, "description"), At("missing_field", B)),
    "no id": _drop((*C, "step_id"), At("missing_field", C)),
    "a field too many": _set((*B, "descr"), 1, At("unknown_field", (*B, "descr"), at_key=True)),
    "a field of the plan too many": _set(("aim",), 1, At("unknown_field", ("aim",), at_key=True)),
    "another type": _set((*A, "type"), "tol", At("unknown_option", (*A, "type"))),
    "another status": _set(("status",), "done", At("unknown_option", ("status",))),
    "an empty name": _set((*A, "name"), "", At("empty_value", (*A, "name"))),
    "an empty list": _set((*A, "output_path"), [], At("empty_value", (*A, "output_path"))),
    "a type without a name": _drop((*A, "name"), At("conflicting_fields", A)),
    "an agent beside a tool": _set(
        (*A, "agent"),
        "researcher",
        At("conflicting_fields", (*A, "type"), at_key=True),
        At("conflicting_fields", (*A, "name"), at_key=True),
    ),
    "another version": _set(("schema_version",), 3, At("unknown_version", ("schema_version",))),
    "no version": _drop(("schema_version",), At("assumed_version", ())),
    "no steps": _set(("steps",), [], At("empty_plan", ("steps",))),
    "an id twice": _set(
        ("steps", 3), {"step_id": "a", "description": ""}, At("duplicate_step_id", ("steps", 3, "step_id"))
    ),
    "another tool": _set((*A, "name"), "serch", At("unknown_tool", (*A, "name"))),
    "another handler": _set((*B, "name"), "stor", At("unknown_handler", (*B, "name"))),
    "another agent": _set((*C, "agent"), "nobody", At("unknown_agent", (*C, "agent"))),
    "a handler as a tool": _set((*A, "name"), "store", At("wrong_capability", (*A, "name"))),
    "another dependency": _set(
        (*C, "depends_on"), ["b", "z"], At("unknown_dependency", (*C, "depends_on", 1))
    ),
    "a dependency on itself": _set(
        (*C, "depends_on"), ["b", "c"], At("self_dependency", (*C, "depends_on", 1))
    ),
    "a dependency twice": _set(
        (*C, "depends_on"), ["b", "b"], At("repeated_dependency", (*C, "depends_on", 1))
    ),
    "a circle": _set((*A, "depends_on"), ["c"], At("dependency_cycle", (*A, "depends_on", 0))),
    "a reference that is none": _text('"é ${a}', "malformed_reference", 3),
    "a reference that is not closed": _text("\n\U0001f600${a.output", "unclosed_reference", 2),
    "a reference to no step": _text("\\${z.output}", "unknown_reference", 1),
    "a reference to itself": _text("x ${b.output}", "self_reference", 2),
    "a reference to a later step": _text("${c.output}", "undeclared_dependency", 0),
    "a reference to another field": _text("/${a.output.z}", "undeclared_output", 1),
    "a reference through another step": _set(
        (*C, "inputs"),
        {"q": ["\t", "\t${a.output.x}"]},
        At("indirect_reference", (*C, "inputs", "q", 1), offset=1),
    ),
}
"""By name, what changes a plan, and gives what must be found."""

WRITINGS: dict[str, tuple[str, str, int]] = {
    "a number that is none": ("NaN", "not_a_number", 0),
    "a word of Python": ("None", "python_literal", 0),
    "a number with zeros": ("007", "bad_number", 0),
    "a number with a plus": ("+1", "number_form", 0),
    "a word": ("tea", "unquoted_text", 0),
    "a line break in a string": ('"a\nb"', "raw_control", 2),
    "a backslash": ('"é\\d"', "bad_escape", 2),
    "half a character": ('"a\\ud800"', "lone_surrogate", 2),
    "an escape of Python": ('"a\\x41"', "escape_form", 2),
    "single quotes": ("'a'", "single_quotes", 0),
    "a name without quotes": ("{ a: 1}", "bare_key", 2),
    "a field twice": ('{"a": 1, "a": 1}', "duplicate_key", 9),
    "a comma too many": ("[1 ,]", "trailing_comma", 3),
    "two commas": ("[1,,2]", "syntax_error", 3),
    "a comment": ("/* a */ 1", "comment", 0),
    "a comment to the end of a line": ("[1, // a\n2]", "comment", 4),
    "a space of print": ("\u00a01", "odd_space", 0),
    "a quote in a string": ('"a" b"', "unescaped_quote", 4),
    "a sign": ("@", "syntax_error", 0),
    "no comma": ("[{} {}]", "missing_comma", 4),
    "no colon": ('{"a" 1}', "syntax_error", 5),
    "no value": ('{"a": }', "syntax_error", 6),
    "no closing bracket": ('{"a": [1}', "missing_bracket", 8),
    "too many levels": ("[" * 61 + "]" * 61, "too_deep", 60),
}
"""By name, what may stand for a value, the code that it gives, and where in it."""

AROUND: dict[str, tuple[str, str, str, int]] = {
    "text before it": ("So: ", "", "surrounding_text", 0),
    "text behind it": ("", "\nSo.", "surrounding_text", 1),
    "a fence": ("```json\n", "\n```", "fenced", 0),
    "a comment before it": ("// a\n", "", "comment", 0),
    "a brace too many": ("", "}", "extra_bracket", 0),
    "a comma behind it": ("", ",", "trailing_comma", 0),
    "another plan": ("", '\n[{"step_id": "z"}]', "several_documents", 1),
}
"""By name, what may stand before a plan and behind it, the code, and where in that: in the first that is."""
