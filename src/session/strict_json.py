"""JSON as the standard has it: what other readers let pass is refused, for it could be read in two ways."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

from session.errors import shown

__all__ = ["read_json"]


def read_json(text: str | bytes) -> Any:
    """Read strict JSON: no key twice in an object, and no number that a float cannot hold.

    Raises:
        TypeError: It is not text.
        ValueError: It is not JSON.
        RecursionError: It is nested too deep.
    """
    return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        (twice, _), *_ = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"the key {shown(twice)} is in an object twice")
    return found


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON value")


def _finite(number: str) -> float:
    value = float(number)
    if math.isinf(value):
        raise ValueError(f"{number if len(number) <= 40 else shown(number)} is too large")
    return value
