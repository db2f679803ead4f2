"""Fields under other names: which field each probably means, and the document as it was meant."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

import attrs

from planning.errors import nearest, show
from planning.workflow.findings import Found, Path
from planning.workflow.wire.form import Form, form_of, is_numbered, with_steps
from planning.workflow.wire.schemas import schema

__all__ = ["Meant", "hint_for", "read_as_meant"]

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
_MOST: Final = 1000


@attrs.frozen
class Meant:
    """A document as it was probably meant.

    Attributes:
        form: The document with the right names.
        steps: Its steps with the names that were given.
        found: An error for each of these names.
        given: These names, by the path with the right name.
    """

    form: Form
    steps: list[Any]
    found: list[Found] = attrs.field(factory=list)
    given: dict[Path, str] = attrs.field(factory=dict)

    def at_given(self, found: list[Found]) -> list[Found]:
        """Findings in the form, at the places that they have in the document."""
        return [each._replace(path=self._path(each.path)) for each in found] if self.given else found

    def _path(self, path: Path) -> Path:
        for end in range(1, len(path) + 1):
            if path[:end] in self.given:
                return (*path[: end - 1], self.given[path[:end]], *path[end:])
        return path


def hint_for(name: str, fields: Collection[str], known: tuple[str, ...]) -> str:
    """What to write instead of a field that is not known.

    Args:
        name: The field.
        fields: All fields of its object.
        known: Those that the object may have.
    """
    kind = _CALLED.get(_folded(name))
    if kind is not None and "type" in known and not ("type" in fields and "name" in fields):
        return f'write "type": "{kind}" and "name" instead'
    field = _meant_by(name, known)
    if field is None or field in fields:
        return f"remove it; the fields are {', '.join(known)}"
    return _WHOLE if field == "steps" else f"did you mean {field}?"


def read_as_meant(form: Form) -> Meant:
    """Read fields of other names as those that they probably mean.

    Args:
        form: A document of a known version.
    """
    renaming = _Renaming()
    if form.version == 2:
        form = renaming.plan(form)
    steps = [renaming.identified(step) for step in form.steps]
    version = 2 if any(map(is_numbered, steps)) else form.version
    right = [renaming.step(step, form.step_path(index), version) for index, step in enumerate(form.steps)]
    meant = with_steps(form, right) if right else form
    return Meant(meant, form.steps, renaming.found, renaming.given)


class _Renaming:
    """Gives fields their right names, and keeps the ones that they had."""

    def __init__(self) -> None:
        self.found: list[Found] = []
        self.given: dict[Path, str] = {}
        self._guesses: dict[tuple[str, tuple[str, ...]], str | None] = {}

    def plan(self, form: Form) -> Form:
        """A document of version 2 with the right names around its steps."""
        known, fields = _known(2), form.document
        names = self._names(fields, known)
        if "steps" not in fields:
            within = [name for name, value in fields.items() if _is_plan(value)]
            if len(within) == 1 and (plan := form_of(fields[within[0]])).version is not None:
                path = (*form.path, within[0])
                self._add(within[0], "steps", fields, known, form.path)
                return attrs.evolve(plan, path=path, steps_path=(*path, *plan.steps_path), found=form.found)
            lists = [name for name, value in fields.items() if name not in known and _is_of_objects(value)]
            if len(lists) == 1:
                names.setdefault("steps", lists[0])
        if not names:
            return form
        document = {"goal": "", **self._renamed(fields, names, known, form.path)}
        steps_path = (*form.path, names.get("steps", "steps"))
        return attrs.evolve(form_of(document), path=form.path, steps_path=steps_path, found=form.found)

    def identified(self, step: Any) -> Any:
        """A step with its id under its right name."""
        if not isinstance(step, dict) or "step_id" in step:
            return step
        name = self._names(step, _known(2, "step")).get("step_id")
        return step if name is None else {**step, "step_id": step[name]}

    def step(self, step: Any, path: Path, version: int | None) -> Any:
        """A step with the right names."""
        if not isinstance(step, dict):
            return step
        is_older = is_numbered(self.identified(step))
        known = _known(version or 2, "numbered_step" if is_older else "step")
        names = self._names(step, known)
        if not names:
            return step
        right = self._renamed(step, names, known, path)
        kind = _CALLED.get(_folded(names.get("name", "")))
        if kind is not None:
            right.setdefault("type", kind)
        if "step_id" in names and not is_older and type(right["step_id"]) is int:
            right["step_id"] = str(right["step_id"])
        return right

    def _names(self, fields: dict[str, Any], known: tuple[str, ...]) -> dict[str, str]:
        """By field, the name that it has instead."""
        names: dict[str, str] = {}
        for name in fields:
            field = None if name in known else self._guess(name, known)
            if field == "name" and _folded(name) in _CALLED:
                is_free = "type" not in fields or "name" not in fields  # else name is a title
            else:
                is_free = field not in fields and not (field == "agent" and {"type", "name"} & fields.keys())
            if field is not None and is_free:
                names.setdefault(field, name)
        return names

    def _guess(self, name: str, known: tuple[str, ...]) -> str | None:
        if "type" in known and _folded(name) in _CALLED:
            return "name"
        if (name, known) not in self._guesses:
            if len(self._guesses) == _MOST:
                return None
            self._guesses[name, known] = _meant_by(name, known)
        return self._guesses[name, known]

    def _renamed(
        self, fields: dict[str, Any], names: dict[str, str], known: tuple[str, ...], path: Path
    ) -> dict[str, Any]:
        """An object with the right names; each wrong one is an error."""
        for field, name in names.items():
            self.given[*path, field] = name
            self._add(name, field, fields, known, path)
        right = {name: field for field, name in names.items()}
        return {right.get(name, name): value for name, value in fields.items() if name not in names}

    def _add(
        self, name: str, field: str, fields: Collection[str], known: tuple[str, ...], path: Path
    ) -> None:
        if len(self.found) > _MOST:  # no more are listed
            return
        message = f"{show(name)} is not a field of a {'plan' if 'steps' in known else 'step'}"
        hint = _WHOLE if field == "steps" else hint_for(name, fields, known)
        self.found.append(Found("unknown_field", message, hint, (*path, name), at_key=True))


def _known(version: int, part: str | None = None) -> tuple[str, ...]:
    whole = schema(version)
    return tuple((whole if part is None else whole["$defs"][part])["properties"])


def _meant_by(name: str, known: tuple[str, ...]) -> str | None:
    others = _MEANT.get(_folded(name), ())
    return next((field for field in others if field in known), None) or nearest(name, known)


def _folded(name: str) -> str:
    return name[:_LONGEST].casefold().replace("_", "").replace("-", "")


def _is_plan(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("steps"), list)


def _is_of_objects(value: object) -> bool:
    return isinstance(value, list) and bool(value) and isinstance(value[0], dict)
