"""What ``offer="possible"`` defines for one request: the tools that the plan takes, with its ids."""

from __future__ import annotations

from typing import Any

import pytest

from planning import Plan, PlanningToolsSection, PlanPolicy, Toolbox, tool_definitions
from planning.prompt.definitions import schemas_of
from planning.tools.errors import ContextInvalid
from session import Session
from session.stores import MemoryStore

SETUP = ("planning_setup_plan", {"objective": "Open the shop", "initial_steps": [{"title": "Rent a room"}]})
ADD = ("planning_add_step", {"steps": [{"title": "Buy shelves"}]})
DONE = ("planning_mark_step", {"step_id": "S001", "status": "done"})
BLOCKED = ("planning_mark_step", {"step_id": "S001", "status": "blocked"})
CLEAR: tuple[str, dict[str, Any]] = ("planning_clear_plan", {})
VALID: dict[str, dict[str, Any]] = {
    "setup": SETUP[1],
    "add": ADD[1],
    "update": {"title": "Rent two rooms"},
    "mark": {"status": "in_progress"},
    "clear": {},
    "read": {},
    "remove": {},
    "move": {"index": 0},
}
"""Arguments of each tool without its step id."""


def section_of(session: Any, **policy: Any) -> PlanningToolsSection:
    return PlanningToolsSection(session=session, policy=PlanPolicy(offer="possible", **policy))


def offered(section: PlanningToolsSection, *, strict: bool = False) -> dict[str, Any]:
    """The schemas of a request by the short names of its tools."""
    defined = tool_definitions("json-schema", tools=section, strict=strict)
    return {name.split("_")[1]: schema for name, schema in defined.items()}


@pytest.mark.parametrize(
    ("policy", "calls", "names"),
    [
        ({}, [], "setup"),
        ({}, [("planning_setup_plan", {"objective": "Open the shop"})], "setup add clear read"),
        ({}, [SETUP], "setup add update mark clear read"),
        ({"agent_edits": True}, [SETUP], "setup add update mark clear read remove move"),
        ({}, [SETUP, DONE], "setup mark clear read"),
        ({"agent_edits": True}, [SETUP, DONE], "setup mark clear read remove move"),
        ({}, [SETUP, CLEAR], "setup read"),
        ({"replace": "refuse_unfinished"}, [SETUP], "add update mark clear read"),
        ({"replace": "refuse_unfinished"}, [SETUP, BLOCKED], "add update mark clear read"),
        ({"replace": "refuse_unfinished"}, [SETUP, DONE], "setup mark clear read"),
        ({"replace": "refuse_unfinished"}, [SETUP, CLEAR], "setup read"),
        ({"tools": ("mark", "read")}, [], ""),
        ({"tools": ("setup", "mark")}, [SETUP], "setup mark"),
    ],
)
def test_exactly_what_the_plan_takes_is_offered(policy: dict[str, Any], calls: list[Any], names: str) -> None:
    session = Session()
    section = section_of(session, **policy)
    whole = Toolbox(PlanningToolsSection(session=session).tools())
    for call in calls:
        assert whole.call(*call).success
    schemas = offered(section)
    assert " ".join(schemas) == names
    plan = session.select_latest(Plan)
    ids = [] if plan is None else [step.step_id for step in plan.steps]
    for tool in section.tools():
        short = tool.name.split("_")[1]
        named = [{"step_id": each} for each in ids] if short in {"update", "mark", "remove", "move"} else [{}]
        if short in schemas and "step_id" in schemas[short]["properties"]:
            assert schemas[short]["properties"]["step_id"]["enum"] == ids
        # Each call is made, or refused, in a session of its own.
        results = [
            Toolbox(section_of(copy, **policy).tools()).call(tool.name, {**VALID[short], **step})
            for step in named
            for copy in [session.fork()]
        ]
        assert {each.success for each in results} <= {short in schemas}


def test_marks_and_strict_schemas_name_the_ids_too_and_only_possible_examples_stay() -> None:
    session = Session()
    section = section_of(session, batch_marks=True, agent_edits=True)
    box = Toolbox(section.tools())
    for call in (SETUP, ADD, ("planning_remove_step", {"step_id": "S001"})):
        assert box.call(*call).success
    step_id = {"type": "string", "description": "S### id", "enum": ["S002"]}
    plain, strict = offered(section)["mark"], offered(section, strict=True)["mark"]
    assert plain["properties"]["step_id"] == plain["properties"]["marks"]["items"]["properties"]["step_id"]
    assert plain["properties"]["step_id"] == step_id
    assert "examples" not in plain
    optional = {"anyOf": [{"type": "string", "enum": ["S002"]}, {"type": "null"}], "description": "S### id"}
    assert strict["properties"]["step_id"] == optional
    (marks, _) = strict["properties"]["marks"]["anyOf"]
    assert marks["items"]["properties"]["step_id"] == step_id
    assert offered(section)["update"]["examples"] == [{"step_id": "S002", "title": "Write a failing test"}]


def test_a_plan_with_more_than_250_steps_has_its_tools_without_ids() -> None:
    section = section_of(Session())

    def marking(count: int) -> Any:
        steps = [{"title": f"Step {number}"} for number in range(count)]
        assert Toolbox(section.tools()).call(SETUP[0], {"objective": "Count", "initial_steps": steps}).success
        return offered(section)["mark"]

    assert len(marking(250)["properties"]["step_id"]["enum"]) == 250
    assert marking(251) == offered(PlanningToolsSection(session=Session()))["mark"]


def test_what_another_section_demands_is_not_offered_and_its_own_offer_is_whole() -> None:
    session = Session()
    section = section_of(session)
    other = PlanningToolsSection(session=session, policy=PlanPolicy(replace="refuse_unfinished"))
    assert Toolbox(section.tools()).call(*SETUP).success
    assert [*offered(section)] == ["add", "update", "mark", "clear", "read"]
    assert [*offered(other)] == ["setup", "add", "update", "mark", "clear", "read"]


def test_a_session_that_was_just_opened_is_read_with_its_plan() -> None:
    store = MemoryStore()
    assert Toolbox(section_of(Session(session_id="s", store=store)).tools()).call(*SETUP).success
    again = Session(session_id="s", store=store)
    assert len(schemas_of(section_of(lambda: again).tools(), again)) == 6


def test_definitions_are_those_of_the_session_of_the_current_call() -> None:
    sessions = [Session(), Session(), None]
    section = section_of(lambda: sessions[0])
    assert Toolbox(section.tools()).call(*SETUP).success
    assert len(offered(section)) == 6
    sessions.pop(0)
    assert [*offered(section)] == ["setup"]
    sessions.pop(0)
    with pytest.raises(ContextInvalid) as caught:
        offered(section)
    assert caught.value.message == "no session for this call"
