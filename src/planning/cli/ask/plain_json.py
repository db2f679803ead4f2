"""Values of a database as JSON that every reader takes."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

__all__ = ["as_json"]


def as_json(value: object) -> str:
    """A value as strict JSON.

    NaN and the infinities are the texts ``NaN``, ``Infinity`` and ``-Infinity``, bytes are the text that SQL
    writes them in, and what JSON does not know otherwise is its text.
    """
    return json.dumps(_plain(value), indent=2, allow_nan=False)


def _plain(value: object) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(each) for each in value]
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"x'{bytes(value).hex()}'"
    return str(value)
