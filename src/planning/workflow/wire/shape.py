"""What a document breaks in the schema of its format, in words that say what to send."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from planning.errors import show
from planning.workflow.findings import Found, Path
from planning.workflow.wire.form import Form
from planning.workflow.wire.schemas import schema, validator

if TYPE_CHECKING:
    import jsonschema_rs

__all__ = ["MOST_ERRORS", "check_shape"]

MOST_ERRORS: Final = 1000
_CHUNK: Final = 1000

_WORDS: Final = {
    "string": "text",
    "array": "an array",
    "object": "an object",
    "integer": "a whole number",
    "boolean": "true or false",
    "null": "null",
}
_MEANT: Final = {
    "id": "step_id",
    "args": "inputs",
    "arguments": "inputs",
    "params": "inputs",
    "parameters": "inputs",
    "input": "inputs",
    "dependencies": "depends_on",
    "requires": "depends_on",
    "output": "outputs",
    "tool": "name",
    "tool_name": "name",
    "handler": "name",
    "objective": "goal",
}
"""Names that others have for the fields."""


def check_shape(form: Form) -> list[Found]:
    """Every error against the schema; none where the document is valid.

    Args:
        form: The document, its version known.
    """
    assert form.version is not None  # noqa: S101 - the caller has looked
    if validator(form.version).is_valid(form.document):
        return []
    found = list(islice(_errors(form), MOST_ERRORS + 1))
    if len(found) > MOST_ERRORS:
        told = "more is wrong than is written out"
        found[MOST_ERRORS] = Found("too_many_errors", told, "mend the others first", form.path)
    return found


def _errors(form: Form) -> Iterator[Found]:
    """The errors of the document around the steps, then those of the steps, one after the other."""
    assert form.version is not None  # noqa: S101 - the caller has looked
    if form.steps:
        part = "step" if form.version == 1 else "any_step"
        if form.version == 2:
            yield from _found(validator(2), {**form.document, "steps": []}, form.path, 2)
        for index, step in enumerate(form.steps):
            yield from _of_step(form.version, part, step, form.step_path(index))
    else:
        yield from _found(validator(form.version), form.document, form.path, form.version)


def _of_step(version: int, part: str, step: Any, path: Path) -> Iterator[Found]:
    """The errors of one step, whose lists are looked at in pieces: each wrong item is an error."""
    checked = validator(version, part)
    if checked.is_valid(step):
        return
    long = {name: items for name, items in step.items() if _is_long(items)} if isinstance(step, dict) else {}
    whole = {**step, **{name: items[:_CHUNK] for name, items in long.items()}} if long else step
    yield from _found(checked, whole, path, version)
    for name, items in long.items():
        for start in range(_CHUNK, len(items), _CHUNK):
            piece = {name: items[start : start + _CHUNK]}
            for found in _found(checked, piece, path, version):
                if found.code == "wrong_type" and len(found.path) > len(path) + 1:
                    yield found._replace(path=(*path, name, start + int(found.path[-1])))


def _is_long(items: object) -> bool:
    return isinstance(items, list) and len(items) > _CHUNK


def _found(checked: jsonschema_rs.Validator, value: Any, path: Path, version: int) -> Iterator[Found]:
    for error in checked.iter_errors(value):
        yield from _worded(error, path, version)


def _worded(error: jsonschema_rs.ValidationError, prefix: Path, version: int) -> Iterator[Found]:
    path, details = (*prefix, *error.instance_path), error.kind.as_dict()
    place = list(map(str, error.schema_path))
    field = str(path[-1]) if path else ""
    if "dependentSchemas" in place:
        one, other = ("agent", "tool") if field == "tool" else ("agent", "type and name")
        told = f"{field} stands beside agent; a step calls one thing"
        yield Found("conflicting_fields", told, f"send {one}, or {other}", path, at_key=True)
        return
    match error.kind.name:
        case "required" if place[-1] == "dependentRequired":
            missing = str(details["property"])
            present = "name" if missing == "type" else "type"
            told = f"{present} stands without {missing}"
            yield Found("conflicting_fields", told, f"add {missing}, or leave {present} out", path)
        case "required":
            missing = str(details["property"])
            wanted = _wanted(_properties(version, place)[missing])
            yield Found("missing_field", f"{missing} is missing", f"add {missing}: {wanted}", path)
        case "additionalProperties":
            known = list(_properties(version, place))
            for name in details["unexpected"]:
                told = f"{show(name)} is no field of {'a step' if _is_step(known) else 'a plan'}"
                yield Found("unknown_field", told, _meant(name, known), (*path, name), at_key=True)
        case "enum" if not isinstance(error.instance, str):
            pass  # that it is no text is said
        case "enum":
            options = ", ".join(map(str, details["options"]))
            yield Found("unknown_option", f"{field} is {show(error.instance)}", f"use one of {options}", path)
        case "minLength" | "minItems":
            wanted = "some text" if error.kind.name == "minLength" else "at least one item"
            yield Found("empty_value", f"{field} is empty", f"send {wanted}", path)
        case _:
            types = details.get("types", ["object"])
            wanted = " or ".join(_WORDS.get(str(each), str(each)) for each in types)
            told = f"expected {wanted}, got {_word(error.instance)}"
            yield Found("wrong_type", told, _how(error.instance, wanted), path)


def _is_step(known: list[str]) -> bool:
    return "step_id" in known


def _properties(version: int, place: list[str]) -> Mapping[str, Any]:
    """The fields of the object that the keyword at a place of the schema speaks of."""
    node: Any = schema(version)
    for part in place[:-1]:
        node = node[part]
    properties: Mapping[str, Any] = node["properties"]
    return properties


def _wanted(node: Mapping[str, Any]) -> str:
    """What a required field is to hold: they all say one type, or the options."""
    return f"one of {', '.join(node['enum'])}" if "enum" in node else _WORDS[node["type"]]


def _meant(name: str, known: list[str]) -> str:
    import difflib  # noqa: PLC0415 - only a wrong name needs it

    folded = name[:100].casefold()
    meant = _MEANT.get(folded)
    near = [meant] if meant in known else difflib.get_close_matches(folded, known, n=1)
    return f"did you mean {near[0]}?" if near else f"leave it out; the fields are {', '.join(known)}"


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return "null"
    if isinstance(value, (int, float)):
        return "a number"
    return "text" if isinstance(value, str) else "an array" if isinstance(value, list) else "an object"


def _how(value: object, wanted: str) -> str:
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        return f"send {wanted} itself, not a text that holds it"
    return f"send {wanted}"
