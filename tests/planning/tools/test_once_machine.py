"""Calls with idempotency keys among rewinds and forks, in any order."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from repeat_calls import by, counting

from planning import Toolbox
from session import Session


class CallsWithKeys(RuleBasedStateMachine):
    """Random calls, rewinds and forks, against lists of the calls that a version has."""

    def __init__(self) -> None:
        super().__init__()
        self.sessions = [Session()]
        self.models: list[list[dict[str, tuple[str, str]]]] = [[{}]]
        self.tool, self.made = counting()

    @rule(which=st.integers(0, 3), key=st.sampled_from("12"), to=st.sampled_from(["Ann", "Bob"]))
    def call(self, which: int, key: str, to: str) -> None:
        session, versions = self._pick(which)
        count, known = len(self.made), versions[-1]
        toolbox = Toolbox([self.tool], session=session)
        said = toolbox.call("send", {"to": to}, context=by(key)).message
        if key not in known:
            assert said == f"Sent {count + 1} to {to}"
            versions.append({**known, key: (to, said)})
            return
        first, answer = known[key]
        refusal = (
            "send was not called: it was sent as a repeat of an earlier call with other arguments. Send it "
            "as a new call."
        )
        assert (said, len(self.made)) == (answer if first == to else refusal, count)
        if first != to:
            versions.append(known)

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

    def _pick(self, which: int) -> tuple[Session, list[dict[str, tuple[str, str]]]]:
        return self.sessions[which % len(self.sessions)], self.models[which % len(self.sessions)]


TestCallsWithKeys = CallsWithKeys.TestCase
