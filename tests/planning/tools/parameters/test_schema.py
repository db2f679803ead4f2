"""Parameter schemas: what a model reads is stored whole, and holds what the tools accept."""

from __future__ import annotations

import json

import jsonschema
from syrupy.assertion import SnapshotAssertion

from planning import Plan, PlanningToolsSection, Toolbox
from session import Session, select_latest


def test_the_six_schemas_are_stored(section: PlanningToolsSection, snapshot: SnapshotAssertion) -> None:
    schemas = {tool.name: [tool.description, tool.parameters_schema()] for tool in section.tools()}
    assert json.dumps(schemas, indent=2) == snapshot


def test_the_schemas_are_valid_and_closed(section: PlanningToolsSection) -> None:
    for tool in section.tools():
        schema = tool.parameters_schema()
        jsonschema.Draft202012Validator.check_schema(schema)
        for node in (schema, *(each.get("items", {}) for each in schema["properties"].values())):
            assert node == {} or node["additionalProperties"] is False


def test_the_examples_are_a_run_that_gives_just_these_messages(session: Session) -> None:
    tools = PlanningToolsSection(session=session).tools()
    toolbox = Toolbox(tools, session=session)
    for tool in tools:
        (example,) = tool.examples
        jsonschema.validate(dict(example.arguments), tool.parameters_schema())
        assert toolbox.call(tool.name, json.dumps(dict(example.arguments))).message == example.message
    assert select_latest(session, Plan) == Plan("Fix the login bug", "abandoned", ())
