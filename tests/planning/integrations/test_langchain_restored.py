"""A LangChain agent without a session: its plan lives in the checkpoints alone."""

from __future__ import annotations

import pytest

pytest.importorskip("langchain.agents", reason="needs langchain: pip install 'session-planning[langchain]'")

from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import ToolMessage
from langchain_models import ScriptedModel, mark, said, turn
from langgraph.checkpoint.memory import InMemorySaver
from test_langchain_rewind import ASKED, A, agent_of, plan_after, play, reminder_in, text_of

from planning.integrations.langchain import PlanningMiddleware


class TestWithoutASession:
    """The plan lives in the checkpoints alone."""

    def test_each_thread_has_a_plan_which_another_process_restores(self) -> None:
        saver = InMemorySaver()
        agent, _ = agent_of(None, saver=saver)
        result = agent.invoke(ASKED, A)
        plan = plan_after(result["messages"])
        middleware = PlanningMiddleware()
        session = middleware.session_of(result)
        assert session is not None and text_of(session) == plan

        script = [turn(("planning_read_plan", {}), prefix="r"), turn(mark("S003"), prefix="s"), said()]
        again, model = agent_of(None, script, saver)
        result = again.invoke(ASKED, A)
        assert [each.content for each in result["messages"][-4:-1:2]] == [plan, "S003 done. Plan completed."]
        assert (
            again.invoke(ASKED, {"configurable": {"thread_id": "B"}}) if model.script.append(said()) else True
        )

    def test_each_checkpoint_has_its_plan_in_another_process(self) -> None:
        saver = InMemorySaver()
        agent, _ = agent_of(None, saver=saver)
        agent.invoke(ASKED, A)
        for checkpoint in list(agent.get_state_history(A)):
            again, model = agent_of(None, saver=saver)
            again.invoke(None, checkpoint.config)
            for request in model.requests:
                assert reminder_in(request) == plan_after(request)

    def test_an_agent_without_checkpoints_keeps_its_plan_for_the_run(self) -> None:
        model = ScriptedModel(script=play)
        agent: Any = create_agent(model, middleware=[PlanningMiddleware()])
        result = agent.invoke(ASKED)
        assert reminder_in(model.requests[-1]) == plan_after(result["messages"])
        assert [each.content for each in result["messages"] if isinstance(each, ToolMessage)][-1] == (
            "S002 done. Next: S003 Paint it"
        )
