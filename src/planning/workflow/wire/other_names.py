"""Fields with other names: the field that is probably meant."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import islice
from typing import Any, Final

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
