"""Which format a document has, and where its steps are."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

import attrs

from planning.errors import show
from planning.reading import Wanted
from planning.reading.found import Found, Path

if TYPE_CHECKING:
    import jsonschema_rs


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
    """What validates a document, or one of its parts."""
    import jsonschema_rs

    return jsonschema_rs.Draft202012Validator(part_of(version, part), retriever=_refuse)


def _refuse(uri: str) -> Any:
    """Fetch nothing: the schemas refer to themselves alone."""
    raise ValueError(f"the schema refers to {uri}, outside of itself")


# Spelled as one text: a list would take a page.
_FIELDS: Final = (
    "step_id description type name agent tool inputs parameters outputs depends_on dependencies expected_key "
    "output_path done_check status completed_at skipped schema_version goal steps created_at owner can_modify"
)
WORKFLOW: Final = Wanted(
    "workflow",
    names=("steps", "schema_version", "plan", "workflow"),
    item="step_id",
    fields=frozenset(_FIELDS.split()),
)
"""What distinguishes a workflow from other JSON."""

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
    """How a document is written.

    Attributes:
        version: The format; None where it is unknown.
        document: What the schema of that format validates.
        path: Where that is in the value that was read.
        steps: The steps, without their fields that are null; empty where there is no list.
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
        """Where a step is in the value that was read."""
        return self.steps_path if self.is_single else (*self.steps_path, index)


def form_of(value: Any) -> Form:
    """Determine the format of a document from its fields.

    A field that is null is absent: models that must write every field write null for those they do not use.
    """
    value = _given(value)
    path: Path = ()
    found: tuple[Found, ...] = ()
    for _ in range(_MOST_WRAPPERS):
        wrapper = _wrapper(value)
        if wrapper is None:
            break
        message = f"the workflow was in the field {wrapper}; other fields were ignored"
        path = (*path, wrapper)
        found = found or (Found("wrapped_plan", message, "send the workflow itself", path, at_key=True),)
        value = _given(value[wrapper])
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
        found += _ignored(value, path)
        value = {name: value[name] for name in schema(2)["properties"] if name in value}
    return _newer({"goal": "", **value, "schema_version": 2}, path, found)


def _ignored(value: Mapping[str, Any], path: Path) -> tuple[Found, ...]:
    """The warning about fields beside the steps, such as a model's reasoning."""
    others = [name for name in value if name not in schema(2)["properties"]]
    if not others:
        return ()
    names = ", ".join(map(show, others[:_MOST_SHOWN])) + (" and more" if len(others) > _MOST_SHOWN else "")
    message = f"{names} beside the steps {'is' if len(others) == 1 else 'are'} ignored"
    return (Found("ignored_field", message, "send the workflow alone", (*path, others[0]), at_key=True),)


def _newer(document: Mapping[str, Any], path: Path, found: tuple[Found, ...]) -> Form:
    """A document of version 2."""
    steps = _list(document, "steps")
    if steps:
        document = {**document, "steps": steps}
    return Form(2, document, path, steps, (*path, "steps"), found=found)


def _of_steps(steps: list[Any], path: Path, found: tuple[Found, ...], *, is_newer: bool = False) -> Form:
    steps = [_given(step) for step in steps]
    if is_newer or any(is_numbered(step) for step in steps):
        document = {"schema_version": 2, "goal": "", "steps": steps}
        return Form(2, document, path, steps, path, found=found)
    return Form(1, steps, path, steps, path, found=found)


def _of_version(value: Mapping[str, Any], path: Path, found: tuple[Found, ...]) -> Form:
    version = value["schema_version"]
    if isinstance(version, bool) or not isinstance(version, (int, float)) or version not in VERSIONS:
        message = f"schema version {_spelled(version)} is unknown"
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
    """Whether a step is in the form with numbers as ids: not one of the other form with a wrong id."""
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
    return [_given(step) for step in steps] if isinstance(steps, list) else []


def _given(fields: Any) -> Any:
    """An object without its fields that are null; anything else as it is."""
    if not isinstance(fields, dict) or None not in fields.values():
        return fields
    return {name: value for name, value in fields.items() if value is not None}


def _spelled(value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or abs(value) >= _LARGE:
        return show(value)
    return str(value)
