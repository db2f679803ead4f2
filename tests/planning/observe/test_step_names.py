"""A step of a workflow has its own id in each version of a session, and a step of another plan has not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from page_data import a_workflow, call, kept, of_memory, of_store, run_of

from planning.observe.names import names_in
from planning.workflow import Capabilities, run_workflow


def names_of(data: Any) -> dict[int, Any]:
    """The names of the steps at each version, as the page has them."""
    names, found = data["names"], {data["from"]: data["names"]}
    for change in data["changes"]:
        names = found[change["v"]] = change.get("names", names)
    return found


def test_the_names_of_each_version_are_those_of_the_plan_and_the_run_there(tmp_path: Path) -> None:
    session, toolbox = kept(tmp_path / "plans.db")
    call(toolbox, "setup_plan", objective="Mine", initial_steps=["One", "Two"])
    call(toolbox, "clear_plan")
    run_of(session)
    call(toolbox, "add_step", steps=["Tell the team"])
    last = session.version
    session.rewind(1)
    session.rewind(last)
    edited = {"load": [], "S001": ["load"]}
    tools = {"load": lambda: "loaded", "S001": lambda: "done"}
    run_workflow(a_workflow(edited), Capabilities(tools=tools), session=session)
    call(toolbox, "setup_plan", objective="Else", initial_steps=["Look"])
    session.reset()
    wanted = {version: dict(names_in(session.at(version))) for version in range(session.version + 1)}
    assert names_of(of_store(tmp_path / "plans.db")) == names_of(of_memory(session)) == wanted
    fetch = {"S001": "fetch", "S002": "parse", "S003": "bad", "S004": "use", "S005": "say"}
    runs = [names for version, names in wanted.items() if version in {1, 2, last, last + 1, last + 2}]
    assert runs == [{}, {}, fetch, {}, fetch]
    assert {"S001": "load", "S002": "S001"} in wanted.values()
    assert wanted[session.version - 1] == wanted[session.version] == {}
