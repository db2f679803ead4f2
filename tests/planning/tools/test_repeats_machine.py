"""Calls with ids among rewinds and forks, in any order."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from repeat_calls import by, counting

from planning import Toolbox
from planning.tools.ledger import ToolCall
from session import Session


class CallsWithIds(RuleBasedStateMachine):
    """Random calls, rewinds and forks, against lists of the calls that a version has."""

    def __init__(self) -> None:
        super().__init__()
        self.sessions = [Session()]
        self.models: list[list[dict[tuple[str, str], str]]] = [[{}]]
        self.tool, self.made = counting()

    @rule(which=st.integers(0, 3), call_id=st.sampled_from("12"), to=st.sampled_from(["Ann", "Bob"]))
    def call(self, which: int, call_id: str, to: str) -> None:
        session, versions = self._pick(which)
        count, known = len(self.made), versions[-1]
        toolbox = Toolbox([self.tool], session=session)
        said = toolbox.call("send", {"to": to}, context=by(call_id)).message
        if (call_id, to) in known:
            assert (said, len(self.made)) == (known[call_id, to], count)
            return
        assert said == f"Sent {count + 1} to {to}"
        is_reused = any(each == call_id for each, _ in known)
        assert session.select_all(ToolCall)[-1].is_id_reused is is_reused
        versions.append({**known, (call_id, to): said})

    @rule(which=st.integers(0, 3), back=st.integers(0, 4))
    def rewind(self, which: int, back: int) -> None:
        session, versions = self._pick(which)
        version = max(session.version - back, 0)
        session.rewind(version)
        versions.append(versions[version])

    @precondition(lambda self: len(self.sessions) < 4)
    @rule(which=st.integers(0, 3), back=st.integers(0, 4))
    def fork(self, which: int, back: int) -> None:
        session, versions = self._pick(which)
        version = max(session.version - back, 0)
        self.sessions.append(session.fork(version))
        self.models.append(versions[: version + 1])

    def _pick(self, which: int) -> tuple[Session, list[dict[tuple[str, str], str]]]:
        return self.sessions[which % len(self.sessions)], self.models[which % len(self.sessions)]


TestCallsWithIds = CallsWithIds.TestCase
