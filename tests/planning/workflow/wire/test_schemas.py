"""The schema files of the package are schemas, refer to nothing outside, and are what validates."""

from __future__ import annotations

import json
import re
from typing import Any

import jsonschema_rs
import pytest
from jsonschema import Draft202012Validator

from planning.workflow import schema_text
from planning.workflow.wire import schemas


@pytest.mark.parametrize("version", schemas.VERSIONS)
def test_a_schema_file_is_a_schema_of_the_draft_that_it_names(version: int) -> None:
    parsed = json.loads(schema_text(version))
    assert parsed["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    Draft202012Validator.check_schema(parsed)
    assert schemas.schema(version) == parsed


@pytest.mark.parametrize("version", schemas.VERSIONS)
def test_a_schema_refers_to_itself_alone(version: int) -> None:
    assert all(
        each.startswith("#/$defs/") for each in re.findall(r'"\$ref": "([^"]*)"', schema_text(version))
    )


@pytest.mark.parametrize("version", [0, 3])
def test_there_are_no_other_versions(version: int) -> None:
    with pytest.raises(ValueError, match=f"^schema version must be 1 or 2, got {version}$"):
        schema_text(version)


def test_what_a_schema_would_refer_to_outside_is_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    outside: Any = {"$ref": "https://example.org/step.json"}
    monkeypatch.setattr(schemas, "schema", lambda version: outside)
    schemas.validator.cache_clear()
    try:
        with pytest.raises(jsonschema_rs.ValidationError, match=r"step\.json, outside of itself"):
            schemas.validator(2)
    finally:
        schemas.validator.cache_clear()
