"""The plan of a Pydantic AI agent, in a store."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("pydantic_ai", reason="needs pydantic-ai: pip install 'session-planning[pydantic-ai]'")

from frameworks import SHOP, mark, text_of
from test_pydantic_ai import TestMessageHistory, Way, agent_of, run_async, run_iter, run_sync

from planning import register_plan
from planning.integrations.pydantic_ai import Planning
from session import Session, VersionError
from session.stores import SqliteStore

TURNS = TestMessageHistory.TURNS
del TestMessageHistory  # its tests run where they are written


@pytest.fixture(params=[run_sync, run_async, run_iter])
def run(request: pytest.FixtureRequest) -> Way:
    way: Way = request.param
    return way


class TestInAStore:
    """The session is in a file, and the process ends."""

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        return tmp_path / "plans.db"

    def opened(self, path: Path) -> Session:
        session = Session(session_id="shop", store=SqliteStore(path))
        register_plan(session)
        return session

    def test_another_process_goes_on_with_the_plan_of_the_history(self, run: Way, path: Path) -> None:
        first = self.opened(path)
        planning = Planning(first)
        agent, _ = agent_of(planning, *TURNS)
        messages = run(agent)
        assert planning.plan_of(messages[:3]) == planning.plan_of(messages[:3], first)
        assert first.store is not None
        first.store.close()
        second = self.opened(path)
        agent, _ = agent_of(
            Planning(second, follow_history=True), [mark("S003")], "Done.", [mark("S002")], "Done."
        )
        run(agent, "Go on", message_history=messages)
        assert text_of(second).startswith("Open the shop (completed, 3 of 3 done)")
        run(agent, "Go on", message_history=messages[:3])
        assert text_of(second).splitlines()[1:] == ["S001 in_progress: Rent a room", "S002 done: Buy shelves"]
        assert second.store is not None
        second.store.close()

    def test_the_history_of_another_session_is_an_error(self, run: Way, path: Path) -> None:
        session = self.opened(path)
        agent, _ = agent_of(Planning(session), [SHOP], "Done.")
        messages = run(agent)
        assert session.store is not None
        session.store.close()
        agent, _ = agent_of(Planning(Session(session_id="other")), "Done.")
        with pytest.raises(VersionError) as caught:
            run(agent, "Go on", message_history=messages)
        assert str(caught.value) == (
            "the agent's state is of session shop, and the session of this call is other: "
            "let each thread keep its session"
        )
