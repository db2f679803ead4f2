"""The format of a document, where its steps are, and every error against the schema of that format."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache, lru_cache, partial
from importlib.resources import files
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import attrs

from planning.errors import nearest, show
from planning.reading import Wanted
from planning.reading.found import Found, Path
from planning.tools.parameters.schema import Node, node_at, options
from planning.tools.parameters.words import BOUNDS, Wrong, bounds_of, choices, expected, names_in, type_word

if TYPE_CHECKING:
    import jsonschema_rs

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
"""The fields that mean type and name together in a step that has these, and the type that it means."""
_WHOLE: Final = 'write {"schema_version": 2, "goal": "...", "steps": [...]}'
_LONGEST: Final = 100
_MOST: Final = 20


def hint_for(name: str, fields: Mapping[str, Any], known: tuple[str, ...]) -> str:
    """A hint for a field that is not known."""
    kind = _CALLED.get(_fold(name))
    if kind is not None and "type" in known and not ("type" in fields and "name" in fields):
        return f'write "type": "{kind}" and "name" instead'
    field = _resolve(name, fields[name], known)
    if field is None or field in fields:
        return f"remove it; the fields are {', '.join(known)}"
    return _WHOLE if field == "steps" else f"did you mean {field}?"


def renamed_fields(fields: Mapping[str, Any], known: tuple[str, ...]) -> set[str | None]:
    """The fields that an object has under other names: they do not count as missing."""
    others = list(islice((name for name in fields if name not in known), _MOST))
    meant = {_resolve(name, fields[name], known) for name in others}
    calls = "type" in known and any(_fold(name) in _CALLED for name in others)
    return meant | {"type", "name"} if calls else meant


def _resolve(name: str, value: object, known: tuple[str, ...]) -> str | None:
    meant = _find_known(name[:_LONGEST], known)
    if meant is not None or "steps" not in known:
        return meant
    is_of_steps = isinstance(value, list) and value and isinstance(value[0], dict)
    return "steps" if is_of_steps or (isinstance(value, dict) and "steps" in value) else None


@lru_cache(maxsize=1_000)  # the same name is mostly in every step
def _find_known(name: str, known: tuple[str, ...]) -> str | None:
    others = _MEANT.get(_fold(name), ())
    return next((field for field in others if field in known), None) or nearest(name, known)


def _fold(name: str) -> str:
    return name[:_LONGEST].casefold().replace("_", "").replace("-", "")


MOST_ERRORS: Final = 1000
_MOST_ITEMS: Final = 1000
_LARGEST_ID: Final = 10**15


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
    from planning.tools.parameters.json_schema import errors_of

    outline = _outline(given, version, part) if isinstance(given, dict) else given
    if has_steps:
        outline["steps"] = []
    known, at = _fields(version, part), partial(_node_at, version, part)
    for error in validator(version, part).iter_errors(outline):
        is_conflict = "dependentSchemas" in error.schema_path
        for wrong in errors_of([error], outline, at):
            if wrong.keyword != "required" or wrong.path[-1] not in renamed_fields(given, known):
                yield from (_conflict(wrong, prefix) if is_conflict else _report(wrong, at, given, prefix))


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


def _report(wrong: Wrong, at: Callable[[Path], Node], given: Any, prefix: Path) -> Iterator[Found]:
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
            is_large = type(value) is int and abs(value) >= _LARGEST_ID
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
    if is_id and type(value) is int and abs(value) < _LARGEST_ID:
        return f'write it in quotes: "{value}"'
    return f"send {wanted}"


VERSIONS: Final = (1, 2)


def schema_text(version: int) -> str:
    """The schema file of a format.

    Args:
        version: 1 or 2.

    Raises:
        ValueError: There is no such version.
    """
    if version not in VERSIONS:
        raise ValueError(f"schema version must be 1 or 2, got {version!r}")
    return (files(__package__) / f"v{version}.schema.json").read_text(encoding="utf-8")


@cache
def schema(version: int) -> dict[str, Any]:
    """The schema of a format, parsed; not to be changed."""
    parsed: dict[str, Any] = json.loads(schema_text(version))
    return parsed


def part_of(version: int, part: str | None) -> dict[str, Any]:
    """The schema of a document, or of one of its own definitions; not to be changed."""
    whole = schema(version)
    return whole if part is None else {**whole["$defs"][part], "$defs": whole["$defs"]}


@cache
def validator(version: int, part: str | None = None) -> jsonschema_rs.Validator:
    """The validator of a document, or of one of its parts."""
    import jsonschema_rs

    return jsonschema_rs.Draft202012Validator(part_of(version, part), retriever=_refuse)


def _refuse(uri: str) -> Any:
    """Fetch nothing: the schemas refer only to themselves."""
    raise ValueError(f"the schema refers to {uri}, outside of itself")


# Spelled as one text: a list would take a page.
_FIELDS: Final = (
    "step_id description type name agent tool inputs parameters outputs depends_on dependencies expected_key "
    "output_path done_check timeout retries on_failure status completed_at skipped schema_version goal steps "
    "created_at owner can_modify"
)
WORKFLOW: Final = Wanted(
    "workflow",
    names=("steps", "schema_version", "plan", "workflow"),
    item="step_id",
    fields=frozenset(_FIELDS.split()),
)
"""The signs of a workflow among other JSON."""

_WRAPPERS: Final = ("plan", "workflow")
_STEP_FIELDS: Final = frozenset(
    {"step_id", "description", "name", "inputs", "depends_on", "tool", "parameters"}
)
_OLDER_FIELDS: Final = frozenset({"type", "name"})  # a step of version 1 has them; a thinking step has not
_NUMBERED_FIELDS: Final = frozenset({"tool", "parameters", "dependencies"})
_NAMED_FIELDS: Final = frozenset({"type", "name", "inputs", "outputs", "depends_on"})
_MOST_SHOWN: Final = 5
_MARKS: Final = 3
_LARGE: Final = 1_000_000
_MOST_WRAPPERS: Final = 3


@attrs.frozen
class Form:
    """The format of a document, and its parts.

    Attributes:
        version: The format; None where it is unknown.
        document: What the schema of that format validates.
        path: Where that is in the value that was read.
        steps: The steps, without their fields that are null; empty if there is no list.
        steps_path: Where the list is in the value that was read; for a single step, where that is.
        is_single: Whether a single step was given.
        found: The warnings, or why there is no version.
    """

    version: int | None
    document: Any
    path: Path
    steps: list[Any]
    steps_path: Path
    is_single: bool = False
    found: tuple[Found, ...] = ()

    def step_path(self, index: int) -> Path:
        """The place of a step in the value that was read."""
        return self.steps_path if self.is_single else (*self.steps_path, index)


def form_of(value: Any) -> Form:
    """Determine the format of a document from its fields.

    A field that is null is absent: models that must write every field write null for those they do not use.
    """
    value = _drop_nulls(value)
    path: Path = ()
    found: tuple[Found, ...] = ()
    for _ in range(_MOST_WRAPPERS):
        wrapper = _wrapper(value)
        if wrapper is None:
            break
        message = f"the workflow was in the field {wrapper}; other fields were ignored"
        path = (*path, wrapper)
        found = found or (Found("wrapped_plan", message, "send the workflow itself", path, at_key=True),)
        value = _drop_nulls(value[wrapper])
    if isinstance(value, list):
        return _of_steps(value, path, found)
    if "schema_version" in value:
        return _of_version(value, path, found)
    if "steps" not in value and ("step_id" in value or len(_STEP_FIELDS & value.keys()) >= _MARKS):
        message = "a single step was read as a workflow of one step"
        found += (Found("single_step", message, "send a list of steps", path),)
        is_newer = not _OLDER_FIELDS & value.keys()
        return attrs.evolve(_of_steps([value], path, found, is_newer=is_newer), is_single=True)
    steps = _list(value, "steps")
    if steps and not any(is_numbered(step) for step in steps):
        message = "the object has no schema_version; version 2 was assumed"
        found += (Found("assumed_version", message, 'add "schema_version": 2', path),)
    if "steps" in value:
        found += _warn_ignored(value, path)
        value = {name: value[name] for name in schema(2)["properties"] if name in value}
    return _newer({"goal": "", **value, "schema_version": 2}, path, found)


def _warn_ignored(value: Mapping[str, Any], path: Path) -> tuple[Found, ...]:
    """The warning about fields beside the steps, such as a model's reasoning."""
    others = [name for name in value if name not in schema(2)["properties"]]
    if not others:
        return ()
    names = ", ".join(map(show, others[:_MOST_SHOWN])) + (" and more" if len(others) > _MOST_SHOWN else "")
    message = f"{names} beside the steps {'is' if len(others) == 1 else 'are'} ignored"
    return (Found("ignored_field", message, "send only the workflow", (*path, others[0]), at_key=True),)


def _newer(document: Mapping[str, Any], path: Path, found: tuple[Found, ...]) -> Form:
    """A document of version 2."""
    steps = _list(document, "steps")
    if steps:
        document = {**document, "steps": steps}
    return Form(2, document, path, steps, (*path, "steps"), found=found)


def _of_steps(steps: list[Any], path: Path, found: tuple[Found, ...], *, is_newer: bool = False) -> Form:
    steps = [_drop_nulls(step) for step in steps]
    if is_newer or any(is_numbered(step) for step in steps):
        document = {"schema_version": 2, "goal": "", "steps": steps}
        return Form(2, document, path, steps, path, found=found)
    return Form(1, steps, path, steps, path, found=found)


def _of_version(value: Mapping[str, Any], path: Path, found: tuple[Found, ...]) -> Form:
    version = value["schema_version"]
    if isinstance(version, bool) or not isinstance(version, (int, float)) or version not in VERSIONS:
        message = f"schema version {_spell(version)} is unknown"
        unknown = Found("unknown_version", message, "send 2, or an array of steps", (*path, "schema_version"))
        return Form(None, None, path, [], path, found=(*found, unknown))
    if version == 1:
        name = next((each for each in ("steps", "plan") if isinstance(value.get(each), list)), None)
        if name is None:
            message = "schema version 1 is an array of steps"
            missing = Found("missing_field", message, "send the array itself", path)
            return Form(None, None, path, [], path, found=(*found, missing))
        return _of_steps(value[name], (*path, name), found)
    return _newer(value, path, found)


def is_numbered(step: object) -> bool:
    """True if a step is in the form with numbers as ids: not one of the other form with a wrong id."""
    if not isinstance(step, dict):
        return False
    number = step.get("step_id")
    if type(number) is not int and not (type(number) is float and number.is_integer()):
        return False
    return _NAMED_FIELDS.isdisjoint(step) or not _NUMBERED_FIELDS.isdisjoint(step)


def _wrapper(value: object) -> str | None:
    """The field that holds the plan, where it is another's."""
    if not isinstance(value, Mapping) or "steps" in value or "schema_version" in value:
        return None
    return next((name for name in _WRAPPERS if isinstance(value.get(name), (list, dict))), None)


def _list(value: Mapping[str, Any], name: str) -> list[Any]:
    steps = value.get(name)
    return [_drop_nulls(step) for step in steps] if isinstance(steps, list) else []


def _drop_nulls(fields: Any) -> Any:
    """An object without its fields that are null; anything else as it is."""
    if not isinstance(fields, dict) or None not in fields.values():
        return fields
    return {name: value for name, value in fields.items() if value is not None}


def _spell(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) >= _LARGE:
        return show(value)
    return str(value)
