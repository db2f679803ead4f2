"""A partly read step: what the semantic checks work on, even if the schema is violated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from planning.reading import Found, Path


class Draft(NamedTuple):
    """One step, as far as it could be read.

    Attributes:
        number: Which step, from 0.
        path: Where it is in the parsed value, such as ``("steps", 3)``.
        fields: The object itself.
        step_id: Its id; None where it is missing or not a string.
        type: ``tool``, ``handler`` or ``agent``; None for a thinking step, or where it is unclear.
        name: The tool, handler or agent that it names; None where it names nothing.
        name_field: The field that holds the name: ``name``, ``tool`` or ``agent``.
        inputs: Its inputs; None where they are not an object.
        inputs_field: The field that holds them: ``inputs`` or ``parameters``.
        outputs: The declared output fields; None where they cannot be read.
        depends_on: The ids as strings, one for each entry of the list; None for an entry that is not an id.
        depends_field: The field that holds them: ``depends_on`` or ``dependencies``.
    """

    number: int
    path: Path
    fields: Mapping[str, Any]
    step_id: str | None
    type: str | None
    name: str | None
    name_field: str
    inputs: Mapping[str, Any] | None
    inputs_field: str
    outputs: Sequence[str] | None
    depends_on: Sequence[str | None]
    depends_field: str

    def found(self, code: str, message: str, hint: str, path: Path, **where: Any) -> Found:
        """A finding at a path below the step; ``where`` says more about its place, as in ``Found``."""
        path = (*self.path, *path)
        return Found(code, message, hint, path, step_index=self.number, step_id=self.step_id, **where)
