"""What a document breaks in the schema of its format, with messages that say what to send."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from planning.errors import show
from planning.reading.found import Found, Path
from planning.tools.parameters import words
from planning.workflow.wire.form import Form
from planning.workflow.wire.schemas import schema, validator

if TYPE_CHECKING:
    import jsonschema_rs
from functools import lru_cache

from planning.errors import nearest

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
    """What to write instead of a field that is not known.

    Args:
        name: The field.
        fields: All fields of its object.
        known: Those that the object may have.
    """
    kind = _CALLED.get(_folded(name))
    if kind is not None and "type" in known and not ("type" in fields and "name" in fields):
        return f'write "type": "{kind}" and "name" instead'
    field = _meant_by(name, fields[name], known)
    if field is None or field in fields:
        return f"remove it; the fields are {', '.join(known)}"
    return _WHOLE if field == "steps" else f"did you mean {field}?"


def renamed_fields(fields: Mapping[str, Any], known: tuple[str, ...]) -> set[str | None]:
    """The fields that an object has under other names: they are not missing besides.

    Args:
        fields: The object.
        known: The fields that it may have.
    """
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

_BOUNDS: Final = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
}


def check_shape(form: Form) -> list[Found]:
    """Every error against the schema; none where the document is valid.

    Args:
        form: The document, its version known.
    """
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
    if form.steps:
        part = "step" if version == 1 else "any_step"
        if version == 2:
            outline = {**_outline(form.document, 2), "steps": []}
            yield from _found(validator(2), outline, form.document, form.path, 2)
        for index, step in enumerate(form.steps):
            yield from _of_step(version, part, step, form.step_path(index))
    else:
        given = form.document
        outline = _outline(given, version) if isinstance(given, dict) else given
        yield from _found(validator(version), outline, given, form.path, version)


def _of_step(version: int, part: str, step: Any, path: Path) -> Iterator[Found]:
    checked = validator(version, part)
    if not checked.is_valid(step):
        outline = _outline(step, version, part) if isinstance(step, dict) else step
        yield from _found(checked, outline, step, path, version)


def _outline(fields: Mapping[str, Any], version: int, part: str | None = None) -> dict[str, Any]:
    """An object as far as the schema looks at it, and of a list so many items: an error holds a copy of it.

    Args:
        fields: The object.
        version: The format.
        part: One of the schema's own definitions; by default the whole document.
    """
    whole = schema(version)
    parts = [whole] if part is None else [whole["$defs"].get(name, {}) for name in ("step", "numbered_step")]
    known = {name for each in parts for name in each.get("properties", ())}
    unknown = islice((name for name in fields if name not in known), MOST_ERRORS + 1)
    kept = {name: fields[name] for name in fields if name in known}
    kept |= {name: value[:_MOST_ITEMS] for name, value in kept.items() if isinstance(value, list)}
    free: dict[str, Any] = {name: {} for name in ("inputs", "parameters") if isinstance(kept.get(name), dict)}
    return dict.fromkeys(unknown) | kept | free


def _found(
    checked: jsonschema_rs.Validator, outline: Any, given: Any, path: Path, version: int
) -> Iterator[Found]:
    for error in checked.iter_errors(outline):
        yield from _worded(error, given, path, version)


def _worded(error: jsonschema_rs.ValidationError, given: Any, prefix: Path, version: int) -> Iterator[Found]:
    path, details = (*prefix, *error.instance_path), error.kind.as_dict()
    place = list(map(str, error.schema_path))
    field = str(path[-1]) if path else ""
    missing = str(details.get("property"))
    if error.kind.name == "required" and missing in renamed_fields(given, _known(version, place)):
        return
    if "dependentSchemas" in place and error.kind.name == "required":
        present = "name" if missing == "type" else "type"
        message = f"{present} is given without {missing}"
        yield Found("conflicting_fields", message, f"add {missing}, or remove {present}", path)
        return
    if "dependentSchemas" in place:
        one, other = ("agent", "tool") if field == "tool" else ("agent", "type and name")
        message = f"{field} and agent exclude each other; a step calls one thing"
        yield Found("conflicting_fields", message, f"send {one}, or {other}", path, at_key=True)
        return
    match error.kind.name:
        case "required":
            node = _node(version, place)["properties"][missing]
            wanted = words.expected({key: node[key] for key in ("enum", "type") if key in node})
            yield Found("missing_field", f"{missing} is missing", f"add {missing}: {wanted}", path)
        case "additionalProperties":
            known = _known(version, place)
            for name in islice(details["unexpected"], MOST_ERRORS + 1):
                message = f"{show(name)} is not a field of {'a step' if 'step_id' in known else 'a workflow'}"
                hint = hint_for(name, given, known)
                yield Found("unknown_field", message, hint, (*path, name), at_key=True)
        case "enum" if not isinstance(error.instance, str):
            pass  # wrong_type says so
        case "enum":
            options = ", ".join(each for each in details["options"] if each is not None)
            yield Found("unknown_option", f"{field} is {show(error.instance)}", f"use one of {options}", path)
        case "pattern" if not error.instance:
            pass  # minLength says so
        case "minLength" | "minItems" | "pattern":
            wanted = "at least one item" if error.kind.name == "minItems" else "some text"
            is_ = "blank" if error.kind.name == "pattern" else "empty"
            yield Found("empty_value", f"{field} is {is_}", f"send {wanted}", path)
        case "minimum" | "exclusiveMinimum" | "maximum":
            node = _node(version, place)
            wanted = " and ".join(
                bound.format(f"{node[key]:,}") for key, bound in _BOUNDS.items() if key in node
            )
            message = f"{field} is {_shown(error.instance)}"
            yield Found("out_of_range", message, f"send a number, {wanted}", path)
        case _:
            types = [each for each in details.get("types", ["object"]) if str(each) != "null"]
            wanted = words.expected({"anyOf": [{"type": str(each)} for each in types]})
            message = f"expected {wanted}, got {words.type_word(error.instance)}"
            yield Found("wrong_type", message, _how(error.instance, wanted, path), path)


def _known(version: int, place: list[str]) -> tuple[str, ...]:
    """The fields of the step, or else of the document, that a keyword of the schema is about."""
    whole = schema(version)
    owner = whole["$defs"][place[1]] if place[0] == "$defs" else whole
    return tuple(owner["properties"])


def _node(version: int, place: list[str]) -> Mapping[str, Any]:
    """What holds the keyword at a place of the schema."""
    node: Any = schema(version)
    for part in place[:-1]:
        node = node[part]
    found: Mapping[str, Any] = node
    return found


def _shown(number: Any) -> str:
    """A number as a message shows it."""
    is_large = type(number) is int and abs(number) >= _LARGE
    return "a very large number" if is_large else f"{number:,}"


def _how(value: object, wanted: str, path: Path) -> str:
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        return f"send {wanted} itself, not a string that contains it"
    is_id = wanted == "a string" and not {"step_id", "depends_on"}.isdisjoint(path[-2:])
    if is_id and type(value) is int and abs(value) < _LARGE:
        return f'write it in quotes: "{value}"'
    return f"send {wanted}"
