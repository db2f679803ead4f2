"""A plan in a session: the section for the prompt, one call as a provider hands it over, the plan."""

from planning import Plan, PlanningToolsSection, Toolbox
from planning.prompt import Prompt
from session import Session, select_latest

session = Session()
section = PlanningToolsSection(session=session)
prompt = Prompt(ns="agents/background", key="triage", sections=[section]).render()
toolbox = Toolbox(prompt.tools)

print(prompt.text)
arguments = '{"objective": "Triage open bug reports", "initial_steps": ["Read them", "Reproduce the crash"]}'
result = toolbox.call("planning_setup_plan", arguments)
print(result.message)
print(select_latest(session, Plan))
