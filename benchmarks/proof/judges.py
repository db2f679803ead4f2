"""Who judges a call: this project's tools, pydantic models and jsonschema, each made from the same schema."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Literal

import jsonschema
from langgraph.prebuilt.tool_node import INVALID_TOOL_NAME_ERROR_TEMPLATE
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from benchmarks.harness import OURS
from benchmarks.proof.broken import Call
from planning import Toolbox
from planning.tools import tool_from_schema

__all__ = ["FINDERS", "JUDGES", "SCHEMA", "Judge"]

SCHEMA = "jsonschema"

Judge = Callable[[Call, str, Mapping[str, Any]], list[str] | None]
"""Takes a call, the tool's name and the arguments; gives the problems, or None if accepted."""

SCALARS: dict[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool}


def judge_ours(call: Call, tool: str, arguments: Mapping[str, Any]) -> list[str] | None:
    """A Toolbox with the tools of the question, called with the model's text."""
    tools = [tool_from_schema(name, "A function.", schema, _accept) for name, schema in call.schemas.items()]
    result = Toolbox(tools).call(tool, json.dumps(arguments))
    return None if result.success else result.message.splitlines()


def _accept(**arguments: Any) -> str:
    del arguments
    return "accepted"


def judge_pydantic(call: Call, tool: str, arguments: Mapping[str, Any]) -> list[str] | None:
    """A model of the schema, as a person would write it; the error's text without its links.

    Extra fields are forbidden, a field that may be omitted may be null, and the model is not strict.
    """
    del tool
    try:
        _model(call.schema).model_validate_json(json.dumps(arguments))
    except ValidationError as error:
        title, *rest = [line for line in str(error).splitlines() if "errors.pydantic.dev" not in line]
        problems = [f"{place}\n{what}" for place, what in zip(rest[::2], rest[1::2], strict=True)]
        return [title, *problems]
    return None


def _model(schema: Mapping[str, Any]) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for number, (name, declared) in enumerate(schema["properties"].items()):
        kind = _annotation(declared)
        # By alias: a parameter may be called as no attribute of a model can be.
        if name in schema["required"]:
            fields[f"field_{number}"] = (kind, Field(alias=name))
        else:
            fields[f"field_{number}"] = (kind | None, Field(None, alias=name))
    return create_model("Arguments", __config__=ConfigDict(extra="forbid"), **fields)


def _annotation(declared: Mapping[str, Any]) -> Any:
    if "enum" in declared:
        return Literal[tuple(declared["enum"])]
    if declared.get("type") == "array":
        return list[_annotation(declared["items"])]  # type: ignore[misc] - made while running
    return SCALARS[declared["type"]]


def judge_schema(call: Call, tool: str, arguments: Mapping[str, Any]) -> list[str] | None:
    """Every error of jsonschema's validator, each with its place."""
    del tool
    validator = jsonschema.Draft202012Validator(call.schema)
    problems = [f"{error.json_path}: {error.message}" for error in validator.iter_errors(arguments)]
    return problems or None


def judge_langgraph(call: Call, tool: str, arguments: Mapping[str, Any]) -> list[str] | None:
    """What LangGraph's tool node answers to a name that it does not know."""
    del arguments
    if tool in call.schemas:
        return None
    available = ", ".join(call.schemas)
    return [INVALID_TOOL_NAME_ERROR_TEMPLATE.format(requested_tool=tool, available_tools=available)]


JUDGES: dict[str, Judge] = {OURS: judge_ours, "pydantic": judge_pydantic, SCHEMA: judge_schema}
"""Those who check arguments."""

FINDERS: dict[str, Judge] = {OURS: judge_ours, "langgraph": judge_langgraph}
"""Those who look a tool up by its name."""
