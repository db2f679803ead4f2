"""What an agent's state holds of a plan: who can read it, and who cannot write it."""

from __future__ import annotations

import sqlite3
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain.agents", reason="needs langchain: pip install 'session-planning[langchain]'")

from frameworks import HALF, OPEN, OTHER, SHOP, mark, text_of
from langchain_core.messages import AIMessage, BaseMessage
from langchain_models import said, turn
from test_langchain import ASKED, agent_of, thread

from planning.integrations.langchain import PlanningMiddleware
from session import Session, SnapshotError


class TestSessionOf:
    @pytest.mark.parametrize("kind", ["none", "memory", "store"])
    def test_each_result_keeps_its_plan_whatever_is_read_and_done_later(
        self, kind: str, stored: Session
    ) -> None:
        session = {"none": None, "memory": Session(), "store": stored}[kind]
        script = [turn(SHOP, prefix="a"), said(), turn(mark("S001"), prefix="b"), said()]
        agent, model = agent_of(script, session)
        planning = PlanningMiddleware(session)
        first = agent.invoke(ASKED, thread("A"))
        assert text_of(planning.session_of(first)) == OPEN
        more = {*first["planning"]} - {"session_id", "since", "version"}
        assert more == (set() if kind == "store" else {"plan", "slices", "changed", "step"})
        old = agent.get_state(thread("A")).config
        second = agent.invoke(ASKED, thread("A"))
        assert [text_of(planning.session_of(each)) for each in (second, first, second)] == [HALF, OPEN, HALF]

        model.script = [turn(mark("S002"), prefix="c"), said()]
        agent.invoke(ASKED, old)
        fork = agent.get_state(thread("A")).values
        read = [text_of(planning.session_of(each)) for each in (fork, second, first, fork)]
        assert read == [OTHER, HALF, OPEN, OTHER]


class TestInput:
    def test_it_is_no_input_of_the_agent(self) -> None:
        session = Session()
        agent, model = agent_of([turn(SHOP, prefix="a"), said()], session)
        assert "planning" not in agent.get_input_jsonschema()["properties"]
        first = agent.invoke(ASKED, thread("A"))
        model.script = [turn(mark("S001"), prefix="b"), said(), said()]
        agent.invoke(ASKED, thread("A"))
        for sent in (first["planning"], {"plan": ["Mine", "active", []]}, 7, None):
            model.script = [said()]
            result = agent.invoke({**ASKED, "planning": sent}, thread("A"))
            assert result["planning"]["version"] == session.version
            assert text_of(session) == HALF

    def test_a_plan_that_a_client_sends_is_not_taken(self) -> None:
        agent, _ = agent_of([turn(SHOP, prefix="a"), said()])
        first = agent.invoke(ASKED, thread("A"))
        agent, model = agent_of([said()])
        result = agent.invoke({**ASKED, "planning": first["planning"]}, thread("A"))
        assert text_of(PlanningMiddleware().session_of(result)) == ""
        assert len(model.requests[0]) == 2

    @pytest.mark.parametrize(
        "value", [7, "x", [], {}, {"session_id": "a"}, {"session_id": "a", "since": "", "version": True}]
    )
    def test_what_is_not_a_position_is_refused(self, value: Any) -> None:
        agent, _ = agent_of([said()])
        shown = repr(value) if isinstance(value, str) else f"a value of type {type(value).__name__}"
        message = (
            f"planning in the agent's state is not a position of a session, but {shown}: "
            "remove it, or go back to an earlier checkpoint"
        )
        with pytest.raises(SnapshotError) as caught:
            PlanningMiddleware().session_of({"planning": value})
        assert str(caught.value) == message
        agent.update_state(thread("A"), {"planning": value}, as_node="model")
        with pytest.raises(SnapshotError) as caught:
            agent.invoke(ASKED, thread("A"))
        assert str(caught.value).splitlines()[0] == message
        agent, _ = agent_of([turn(SHOP), said()])
        agent.invoke(ASKED, thread("B"))
        with pytest.raises(SnapshotError) as caught:
            agent.update_state(thread("B"), {"planning": value}, as_node="model")
        assert str(caught.value) == message

    def test_the_position_of_a_stored_session_needs_that_session(self, stored: Session) -> None:
        agent, _ = agent_of([turn(SHOP), said()], stored)
        result = agent.invoke(ASKED, thread("A"))
        with pytest.raises(SnapshotError) as caught:
            PlanningMiddleware().session_of(result)
        assert str(caught.value) == (
            "the agent's state is of session 'shop', which is in a store: give that session to the "
            "integration"
        )


class TestStore:
    def test_a_store_that_is_busy_when_the_run_begins_is_gone_back_to_later(
        self, stored: Session, path: Path
    ) -> None:
        agent, model = agent_of([turn(SHOP, prefix="a"), said()], stored)
        agent.invoke(ASKED, thread("A"))
        old = agent.get_state(thread("A")).config
        model.script = [turn(mark("S001"), prefix="b"), said()]
        agent.invoke(ASKED, thread("A"))

        with ExitStack() as busy:
            other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
            busy.enter_context(closing(other)).execute("BEGIN IMMEDIATE")
            script = [turn(mark("S002"), prefix="c"), said()]

            def play(_: list[BaseMessage]) -> AIMessage:
                busy.close()
                return script.pop(0)

            model.script = play
            model.requests.clear()
            agent.invoke(ASKED, old)
        assert str(model.requests[0][-1].content).startswith("The plan cannot be read now: ")
        assert text_of(stored) == OTHER
