"""The schema files of the two formats, and what validates with them."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

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


@cache
def validator(version: int, part: str | None = None) -> jsonschema_rs.Validator:
    """What validates a document, or a part of one.

    Args:
        version: 1 or 2.
        part: One of the schema's own definitions; by default the whole document.
    """
    import jsonschema_rs

    whole = schema(version)
    used = whole if part is None else {"$defs": whole["$defs"], "$ref": f"#/$defs/{part}"}
    return jsonschema_rs.Draft202012Validator(used, retriever=_refuse)


def _refuse(uri: str) -> Any:
    """Fetch nothing: the schemas refer to themselves alone."""
    raise ValueError(f"the schema refers to {uri}, outside of itself")
