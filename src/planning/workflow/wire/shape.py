"""What a document breaks in the schema of its format, with messages that say what to send."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache, partial
from itertools import islice
from typing import Any, Final

from planning.errors import nearest, show
from planning.reading.found import Found, Path
from planning.tools.parameters.schema import Node, node_at, options
from planning.tools.parameters.words import BOUNDS, Wrong, bounds_of, choices, expected, names_in, type_word
from planning.workflow.wire.form import Form, is_numbered, part_of, schema, validator

_OTHERS: Final = {
    "steps": "tasks nodes actions todos items stages subtasks plan workflow",
    "step_id": "id key number uid identifier taskid nodeid actionid",
    "inputs parameters": "inputs parameters parameter params args arguments kwargs input toolinput toolargs",
    "depends_on dependencies": "dependson dependencies dependency prerequisites requires needs deps after",
    "outputs": "output returns",
    "goal description": "objective",
    "description": "task title desc instruction purpose text",
    "tool": "name toolname toolid function functionname action",
}
_MEANT: Final = {name: fields.split() for fields, names in _OTHERS.items() for name in names.split()}
"""Other common names, without case and separators, and what each means: the first field that there is."""
_CALLED: Final = {
    **dict.fromkeys(("tool", "toolname", "toolid", "function", "functionname", "action"), "tool"),
    **dict.fromkeys(("handler", "handlername"), "handler"),
}
"""What means type and name together in a step that has these, and the type that it means."""
_WHOLE: Final = 'write {"schema_version": 2, "goal": "...", "steps": [...]}'
_LONGEST: Final = 100
_MOST: Final = 20


def hint_for(name: str, fields: Mapping[str, Any], known: tuple[str, ...]) -> str:
    """What to write instead of a field that is not known."""
    kind = _CALLED.get(_folded(name))
    if kind is not None and "type" in known and not ("type" in fields and "name" in fields):
        return f'write "type": "{kind}" and "name" instead'
    field = _meant_by(name, fields[name], known)
    if field is None or field in fields:
        return f"remove it; the fields are {', '.join(known)}"
    return _WHOLE if field == "steps" else f"did you mean {field}?"


def renamed_fields(fields: Mapping[str, Any], known: tuple[str, ...]) -> set[str | None]:
    """The fields that an object has under other names: they are not missing besides."""
    others = list(islice((name for name in fields if name not in known), _MOST))
    meant = {_meant_by(name, fields[name], known) for name in others}
    calls = "type" in known and any(_folded(name) in _CALLED for name in others)
    return meant | {"type", "name"} if calls else meant


def _meant_by(name: str, value: object, known: tuple[str, ...]) -> str | None:
    meant = _known_as(name[:_LONGEST], known)
    if meant is not None or "steps" not in known:
        return meant
    is_of_steps = isinstance(value, list) and value and isinstance(value[0], dict)
    return "steps" if is_of_steps or (isinstance(value, dict) and "steps" in value) else None


@lru_cache(maxsize=1_000)  # the same name is mostly in every step
def _known_as(name: str, known: tuple[str, ...]) -> str | None:
    others = _MEANT.get(_folded(name), ())
    return next((field for field in others if field in known), None) or nearest(name, known)


def _folded(name: str) -> str:
    return name[:_LONGEST].casefold().replace("_", "").replace("-", "")


MOST_ERRORS: Final = 1000
_MOST_ITEMS: Final = 1000
_LARGE: Final = 10**15


def check_shape(form: Form) -> list[Found]:
    """Every error against the schema; none where the document is valid."""
    version = form.version
    assert version is not None  # noqa: S101 - the caller has looked
    if validator(version).is_valid(form.document):
        return []
    found = list(islice(_errors(form, version), MOST_ERRORS + 1))
    if not found:
        message = f"an item behind the first {_MOST_ITEMS:,} of a list has the wrong type"
        found = [Found("wrong_type", message, "send shorter lists", form.path)]
    if len(found) > MOST_ERRORS:
        message = "there are more errors than are listed"
        found[MOST_ERRORS] = Found("too_many_errors", message, "fix the errors above first", form.path)
    return found


def _errors(form: Form, version: int) -> Iterator[Found]:
    """The errors of the document around the steps, then those of the steps, one after the other."""
    if version == 2 or not form.steps:
        yield from _of_part(version, None, form.document, form.path, has_steps=bool(form.steps))
    for index, step in enumerate(form.steps):
        part = "numbered_step" if version == 2 and is_numbered(step) else "step"
        if not validator(version, part).is_valid(step):
            yield from _of_part(version, part, step, form.step_path(index))


def _of_part(
    version: int, part: str | None, given: Any, prefix: Path, *, has_steps: bool = False
) -> Iterator[Found]:
    from planning.tools.parameters.json_schema import errors_of  # noqa: PLC0415 - loads jsonschema-rs

    outline = _outline(given, version, part) if isinstance(given, dict) else given
    if has_steps:
        outline["steps"] = []
    known, at = _fields(version, part), partial(_node_at, version, part)
    for error in validator(version, part).iter_errors(outline):
        is_conflict = "dependentSchemas" in error.schema_path
        for wrong in errors_of([error], outline, at):
            if wrong.keyword != "required" or wrong.path[-1] not in renamed_fields(given, known):
                yield from (_conflict(wrong, prefix) if is_conflict else _worded(wrong, at, given, prefix))


@cache
def _fields(version: int, part: str | None) -> tuple[str, ...]:
    return tuple(names_in(part_of(version, part)))


@lru_cache(maxsize=1_000)  # the same places are mostly wrong in every step
def _node_at(version: int, part: str | None, path: Path) -> Node:
    return node_at(part_of(version, part), path)


def _outline(fields: Mapping[str, Any], version: int, part: str | None) -> dict[str, Any]:
    """An object as far as the schema looks at it: an error holds a copy of it."""
    whole = schema(version)
    parts = [whole] if part is None else [whole["$defs"].get(name, {}) for name in ("step", "numbered_step")]
    known = {name for each in parts for name in each.get("properties", ())}
    unknown = islice((name for name in fields if name not in known), MOST_ERRORS + 1)
    kept = {name: fields[name] for name in fields if name in known}
    kept |= {name: value[:_MOST_ITEMS] for name, value in kept.items() if isinstance(value, list)}
    free: dict[str, Any] = {name: {} for name in ("inputs", "parameters") if isinstance(kept.get(name), dict)}
    return dict.fromkeys(unknown) | kept | free


def _conflict(wrong: Wrong, prefix: Path) -> Iterator[Found]:
    """A step says in two ways what it calls, or in half of one."""
    path, name = (*prefix, *wrong.path), str(wrong.path[-1])
    if wrong.keyword == "required":
        present = "name" if name == "type" else "type"
        message = f"{present} is given without {name}"
        yield Found("conflicting_fields", message, f"add {name}, or remove {present}", path[:-1])
    else:
        one, other = ("agent", "tool") if name == "tool" else ("agent", "type and name")
        message = f"{name} and agent exclude each other; a step calls one thing"
        yield Found("conflicting_fields", message, f"send {one}, or {other}", path, at_key=True)


def _worded(wrong: Wrong, at: Callable[[Path], Node], given: Any, prefix: Path) -> Iterator[Found]:
    path, node, value = (*prefix, *wrong.path), wrong.limit, wrong.got
    field = str(path[-1]) if path else ""
    match wrong.keyword:
        case "required":
            wanted = expected({key: node[key] for key in ("enum", "type") if key in node})
            yield Found("missing_field", f"{field} is missing", f"add {field}: {wanted}", path[:-1])
        case "additionalProperties":
            known = tuple(names_in(node))
            message = f"{show(field)} is not a field of {'a step' if 'step_id' in known else 'a workflow'}"
            yield Found("unknown_field", message, hint_for(field, given, known), path, at_key=True)
        case "enum" if isinstance(value, str):
            hint = f"use one of {', '.join(map(str, choices(node)))}"
            yield Found("unknown_option", f"{field} is {show(value)}", hint, path)
        case "enum":
            pass  # wrong_type says so
        case "pattern" if not value:
            pass  # minLength says so
        case "minLength" | "minItems" | "pattern":
            wanted = "at least one item" if wrong.keyword == "minItems" else "some text"
            is_ = "blank" if wrong.keyword == "pattern" else "empty"
            yield Found("empty_value", f"{field} is {is_}", f"send {wanted}", path)
        case keyword if keyword in BOUNDS:
            (bounded, *_null) = options({}, at(wrong.path))
            limits = {key: f"{bounded[key]:,}" for key in BOUNDS if key in bounded}
            wanted = " and ".join(bounds_of(limits))
            is_large = type(value) is int and abs(value) >= _LARGE
            message = f"{field} is {'a very large number' if is_large else f'{value:,}'}"
            yield Found("out_of_range", message, f"send a number, {wanted}", path)
        case _:
            kinds = [{"type": each.get("type")} for each in options({}, node)]
            wanted = expected({"anyOf": kinds})
            message = f"expected {wanted}, got {type_word(value)}"
            yield Found("wrong_type", message, _how(value, wanted, path), path)


def _how(value: object, wanted: str, path: Path) -> str:
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        return f"send {wanted} itself, not a string that contains it"
    is_id = wanted == "a string" and not {"step_id", "depends_on"}.isdisjoint(path[-2:])
    if is_id and type(value) is int and abs(value) < _LARGE:
        return f'write it in quotes: "{value}"'
    return f"send {wanted}"
