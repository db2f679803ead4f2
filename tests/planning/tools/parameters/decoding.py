"""What a declaration makes of arguments: shared by the tests of this folder."""

from __future__ import annotations

from typing import Any

from planning import ToolValidationError
from planning.tools.parameters import arguments as reading
from planning.tools.spec import model_of


def decode(kind: Any, arguments: object, diagnose: Any = None, *, is_private: bool = False) -> Any:
    """The parameters."""
    return reading.decode(model_of(kind, rules=diagnose is None), arguments, diagnose, is_private=is_private)


def problems(model: Any, arguments: object) -> list[str]:
    """Every problem, as a model reads it; empty where there is none."""
    try:
        decode(model, arguments)
    except ToolValidationError as error:
        return [str(problem) for problem in error.problems]
    return []
