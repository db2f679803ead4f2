"""The planning section: its text, the six tools, and their reducers."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from planning.plan.facts import EvidenceCall, PlanFacts
from planning.plan.model import Plan
from planning.plan.render import plan_text
from planning.policy.gates import Finish, is_stale, open_steps, unfinished
from planning.policy.reducers import AskToFinish, TakeNotice
from planning.prompt.section import Enabled, Section
from planning.prompt.strategies import PlanningStrategy, section_body
from planning.suite.events import sign
from planning.suite.kept import demands_on, facts_in
from planning.suite.tools import planning_tools, register_plan
from planning.tools.context import SessionOfCall, SessionSource
from planning.tools.tool import Tool
from session import Session

if TYPE_CHECKING:
    from planning.policy.policy import PlanPolicy


class PlanningToolsSection(Section[None]):
    """Gives an agent a plan: put it into a prompt, and its tools into a toolbox.

    Its text never changes while the agent runs, so that a provider can cache the prompt;
    ``reminder()`` is the live plan, for the end of each request.
    """

    def __init__(
        self,
        *,
        session: SessionSource,
        strategy: PlanningStrategy = PlanningStrategy.REACT,
        policy: PlanPolicy | None = None,
        enabled: Enabled = True,
    ) -> None:
        """Register the plan's reducers with a session, and bind the planning tools to it.

        Args:
            session: The session that holds the plan; or a callable without arguments that returns the
                session of the current call, so that one agent serves many: see ``Toolbox``.
            strategy: The strategy in its text.
            policy: What the host demands of the plan; see ``PlanPolicy``.
            enabled: See ``Section``.

        Raises:
            TypeError: ``session``, ``strategy`` or ``policy`` is of another type.
        """
        if not isinstance(strategy, PlanningStrategy):
            raise TypeError(f"strategy must be a PlanningStrategy, got {strategy!r}")
        if policy is not None:
            from planning.policy.policy import PlanPolicy  # noqa: PLC0415 - few have one

            if not isinstance(policy, PlanPolicy):
                raise TypeError(f"policy must be a PlanPolicy, got {policy!r}")
        super().__init__(title="Planning", enabled=enabled)
        self.strategy = strategy
        self.policy = policy
        self._found = SessionOfCall(session, partial(register_plan, policy=policy))
        if self._found.fixed is not None:
            self._found.prepare(self._found.fixed)
        self._tools = planning_tools(session, policy)

    @property
    def session(self) -> Session:
        """The session of the plan; if a function was passed, that of the current call.

        Raises:
            ContextInvalid: The function returns none.
        """
        return self._found.find()

    def body(self, params: None = None) -> str:
        """The text for the strategy."""
        del params  # it takes none
        return section_body(self.strategy, self.policy)

    def tools(self) -> tuple[Tool, ...]:
        """The planning tools; none while the section is disabled."""
        return self._tools if self.is_enabled() else ()

    def reminder(self, session: Session | None = None) -> str:
        """The live plan as text, or an empty string when no plan is active.

        Args:
            session: Whose plan; the section's session, or that of the current call, when omitted.

        Raises:
            ContextInvalid: The section finds no session.
        """
        if session is None:
            session = self.session
        elif session.store is not None:  # what a store has of a plan is read by the plan's reducers
            self._found.prepare(session)
        plan = session.select_latest(Plan)
        if plan is None or plan.status != "active":
            return ""
        facts = session.select_latest(PlanFacts)
        if demands_on(session, self.policy) is None and (facts is None or facts.approval == "none"):
            return plan_text(plan)
        facts = facts or PlanFacts()
        return "\n".join([plan_text(plan, facts), *self._remarks(plan, facts, session)])

    def _remarks(self, plan: Plan, facts: PlanFacts, session: Session) -> Iterator[str]:
        """What the policy has to say below the plan."""
        policy, current = demands_on(session, self.policy), plan.next_step
        if self.policy is not None and self.policy.evidence is not None and current is not None:
            from planning.policy.evidence import latest_calls  # noqa: PLC0415 - few policies demand it

            calls = latest_calls(facts.began.get(current.step_id, -1), session.select_all(EvidenceCall))
            if calls:
                yield f"Evidence for {current.step_id}: {calls}"
        if facts.approval == "waiting":
            yield "The plan waits for the user's approval."
        if facts.approval == "rejected":
            yield f"The user rejected the plan: {facts.reason}"
        if policy is not None and is_stale(policy, plan, facts):
            count = facts.calls - facts.changed
            yield f"The plan has not changed for {count} tool calls. Mark what is done, or change it."

    def take_notice(self, session: Session | None = None) -> None:
        """Record that the agent has read the reminder, so that it does not repeat that the plan is stale.

        Args:
            session: As for ``reminder``.

        Raises:
            ContextInvalid: The section finds no session.
            StoreError: The session's store does not take it.
        """
        session = self.session if session is None else session
        plan, facts = session.select_latest(Plan), session.select_latest(PlanFacts)
        policy = demands_on(session, self.policy)
        if policy is None or plan is None or facts is None:
            return
        if is_stale(policy, plan, facts):
            with session.transaction() as transaction:
                transaction.dispatch(TakeNotice())
                sign(transaction)

    def may_finish(self, session: Session | None = None, *, is_new_turn: bool = False) -> Finish:
        """Whether an agent may finish; call it before the user gets the last answer.

        Without ``finish_gate`` it always may. With it, the answer is no while steps are open, and yes after
        that many refusals without a change of the plan; the history records that. Steps that wait for
        approval do not count: the agent has to end its turn so that the user can approve them.

        Args:
            session: As for ``reminder``.
            is_new_turn: Whether there was a new message from the user since the last call: then the count
                starts over.

        Raises:
            ContextInvalid: The section finds no session.
            StoreError: The session's store does not take it.
        """
        session = self.session if session is None else session
        policy = demands_on(session, self.policy)
        most = None if policy is None else policy.finish_gate
        if most is None:
            return Finish(ok=True)
        with session.transaction() as transaction:
            open_ = open_steps(transaction.latest(Plan))
            if not open_:
                return Finish(ok=True)
            facts = facts_in(transaction)
            open_ = tuple([each for each in open_ if each not in facts.waiting])
            if not open_ or facts.approval in {"waiting", "rejected"}:
                return Finish(ok=True)
            let_go = not is_new_turn and facts.asked >= most
            transaction.dispatch(AskToFinish(open_, let_go, is_new_turn))
            sign(transaction)
        if let_go:
            return Finish(ok=True, open_steps=open_)
        return Finish(ok=False, open_steps=open_, message=unfinished(open_))
