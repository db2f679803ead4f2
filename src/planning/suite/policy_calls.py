"""The policy in a planning call: what it does between a handler and the reducers.

A call stays the seed's command, checked by its handler. The policy's checks run in the same transaction, and
what they entail are commands of its own, dispatched after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import attrs

from planning.errors import ToolError, ToolValidationError
from planning.plan import handlers
from planning.plan.commands import (
    AddStep,
    MarkStep,
    MarkSteps,
    NewPlanStep,
    RenumberSteps,
    SetupPlan,
    UpdateStep,
)
from planning.plan.facts import EvidenceCall, PlanFacts
from planning.plan.model import Plan, PlanStep
from planning.plan.reducers import changes_nothing
from planning.plan.render import reply
from planning.plan.text import TextRules, rules_for
from planning.policy.decide import Extras, decide, marks_of, refuse_marks, refuse_order
from planning.policy.evidence import (
    NOTHING_ASKED,
    Accepted,
    Question,
    is_alias,
    number_of_call,
    refuse_evidence,
)
from planning.policy.policy import PlanPolicy, strictest
from planning.policy.reducers import RequestApproval, evidence_call, reduce_facts
from planning.suite.events import sign
from planning.suite.kept import Policies, facts_in, new_ids, register_facts
from planning.tools.context import BEGAN, Gate, ToolContext
from planning.tools.errors import ToolTimeout
from planning.tools.parameters.signature import read_signature
from planning.tools.pipeline import background
from session import Session, ToolFailed, ToolInvoked, Transaction

_NO_EVIDENCE: Final = Extras()


def register_policy(session: Session, policy: PlanPolicy) -> None:
    """Register what a policy needs with a session; repeating it changes nothing."""
    register_facts(session)
    for setup in (SetupPlan, AddStep):
        session.register_guard(setup, _first_ids)
    if policy.evidence is not None or policy.stale_after is not None:
        for event in (ToolInvoked, ToolFailed):
            session.register_guard(event, _call_made)
        session.local_object(Gate).moment = _moment
    if policy.dependencies or policy.most_in_progress is not None:
        for command in (MarkStep, MarkSteps):
            session.register_guard(command, _Order(policy))
    policies = session.local_object(Policies)
    policies.policy = strictest(policy, policies.policy)


def _moment(session: Session) -> int:
    return (session.select_latest(PlanFacts) or PlanFacts()).next_call


def _first_ids(command: Any, transaction: Transaction) -> Iterable[RenumberSteps]:
    """With a policy, from the first change on."""
    if transaction.latest(PlanFacts) is not None:
        return ()
    facts_in(transaction)
    return new_ids(command, transaction)


def _call_made(event: Any, transaction: Transaction) -> tuple[EvidenceCall, ...]:
    """Keep a call, planning calls excepted, to be found as evidence.

    The change carries where in a framework it was made, as those of the plan do.
    """
    began, facts = BEGAN.get(), transaction.latest(PlanFacts) or PlanFacts()
    call = evidence_call(event, facts.next_call if began is None else began)
    if call is None:
        return ()
    sign(transaction)
    return (call,)


@attrs.frozen
class _Order:
    """The guard of every mark: prerequisites, and how many steps are in progress."""

    policy: PlanPolicy

    def __call__(self, command: Any, transaction: Transaction) -> tuple[()]:
        plan = transaction.latest(Plan)
        if plan is not None and not getattr(command, "is_report", False):
            refuse_order(self.policy, marks_of(command), plan, facts_in(transaction))
        return ()


@attrs.define
class News:
    """The plan as each agent last saw it, to say once what others have changed since.

    An agent is a connection, a run or a toolbox. One that has not looked yet resumes what the last agent of
    its name saw: the client that connects again, the next run. It is kept, so that no other has its address.
    """

    seen: dict[object, tuple[Plan, object]] = attrs.field(factory=dict)

    def take(self, context: ToolContext, plan: Plan | None) -> str:
        """The changes since the agent last looked; empty when there are none, or it never looked."""
        seen = self.seen.get(_key_of(context)) or self.seen.get(context.actor)
        if seen is None or seen[0] == plan:
            return ""
        from planning.plan.diff import diff_plans  # noqa: PLC0415 - few plans are changed by others

        return f"Since you last looked: {diff_plans(seen[0], plan)}"

    def saw(self, context: ToolContext, plan: Plan | None) -> None:
        """The agent has seen the plan."""
        for key in (_key_of(context), context.actor):
            self.seen.pop(key, None)
            if plan is not None:
                self.seen[key] = plan, context.agent
        while len(self.seen) > _MOST_AGENTS:
            del self.seen[next(iter(self.seen))]


def _key_of(context: ToolContext) -> tuple[str | None, object]:
    agent = context.agent
    return context.actor, agent if isinstance(agent, str) else id(agent)


_MOST_AGENTS = 200


@attrs.frozen
class PolicyCalls:
    """A policy, for the planning tools of one section."""

    policy: PlanPolicy

    @property
    def rules(self) -> TextRules:
        """The rules for the strings that its tools take."""
        return rules_for(self.policy.text)

    def carry_out(
        self,
        transaction: Transaction,
        session: Session,
        context: ToolContext,
        params: Any,
        before: Plan | None,
        handler: Callable[[Any, Plan | None, TextRules], Any],
        dispatch: Callable[[Any], Plan],
        accepted: Accepted | None,
    ) -> tuple[Any, Any, Plan, Sequence[Any], str]:
        """Check a call by its handler and by the policy, and dispatch its command.

        An agent that acts on a plan which others have changed since it last looked reads what has changed,
        once: with the reply, or with the refusal.
        """
        news, accepted = session.local_object(News), accepted or NOTHING_ASKED
        changed = news.take(context, before)
        entailed: Sequence[Any] = ()
        try:
            sent = self.seed_command(params)
            command = handler(sent, before, self.rules)
            if before is not None and changes_nothing(command, before) and not _has_evidence(params):
                facts, plan = transaction.latest(PlanFacts), dispatch(command)
            else:
                facts, demands = facts_in(transaction), session.local_object(Policies).policy or self.policy
                extras = self._extras(command, params, accepted)
                calls = () if demands.evidence is None else transaction.select_all(EvidenceCall)
                entailed = decide(demands, facts, before, command, extras, calls)
                plan = dispatch(command)
                if type(command) is SetupPlan:  # its own dependencies decide which step is next
                    facts = _with(facts_in(transaction), entailed)
        except ToolValidationError as refusal:
            news.saw(context, before)
            raise _with_news(refusal, changed) from None
        news.saw(context, plan)
        message = reply(command, plan, before, facts, asks=_asks(entailed))
        return sent, command, plan, entailed, f"{changed} {message}" if changed else message

    def seed_command(self, params: Any) -> Any:
        """The command that the arguments mean, without what the policy added to them."""
        if isinstance(params, MarkStep):
            marks = getattr(params, "marks", ())
            if self.policy.batch_marks:
                refuse_marks(marks, params.step_id)
            if not marks:
                return MarkStep(params.step_id, params.status, params.note)
            several = tuple([MarkStep(each.step_id, each.status, each.note) for each in marks])
            return several[0] if len(several) == 1 else MarkSteps(several)
        match params:
            case SetupPlan():
                return SetupPlan(params.objective, _seed_steps(params.initial_steps))
            case AddStep():
                return AddStep(_seed_steps(params.steps))
            case UpdateStep():
                return UpdateStep(params.step_id, params.title, params.details)
        return params

    def _extras(self, command: Any, params: Any, accepted: Accepted) -> Extras:
        """The values that the agent sent beside a command."""
        marks = marks_of(command)
        if marks:
            if self.policy.evidence is None:
                return _NO_EVIDENCE
            evidence = [getattr(sent, "evidence", ()) for _, sent in _pair(marks, params)]
            return Extras(evidence, (), accepted, self.rules.note)
        steps = getattr(params, "initial_steps", ()) or getattr(params, "steps", ())
        clears = "planning_clear_plan" in self.policy.names
        return Extras(depends_on=[getattr(step, "depends_on", ()) for step in steps], clears=clears)

    # What the host is asked

    @property
    def is_async(self) -> bool:
        """True if ``verify`` is a coroutine function."""
        verify = self.policy.verify
        return verify is not None and read_signature(verify).is_async

    def questions(self, params: Any, session: Session) -> list[Question]:
        """The steps that a call marks done, with each text for ``verify``: evidence that is not a call."""
        plan = session.select_latest(Plan)
        demands = session.local_object(Policies).policy or self.policy
        if demands.verify is None or not isinstance(params, MarkStep) or plan is None:
            return []
        marks = marks_of(handlers.mark(self.seed_command(params), plan, self.rules))
        calls, asked = session.select_all(EvidenceCall), list[Question]()
        steps = {step.step_id: step for step in plan.steps}
        for mark, sent in _pair(marks, params):
            if mark.status == "done":
                evidence = getattr(sent, "evidence", ())
                refuse_evidence(mark.step_id, evidence, self.rules.note)
                texts = [
                    each for each in evidence if number_of_call(each, calls) is None and not is_alias(each)
                ]
                asked += [(steps[mark.step_id], text) for text in texts]
        return asked

    def verified(self, questions: list[Question]) -> Accepted:
        """Ask ``verify``, a plain function."""
        verify: Any = self.policy.verify
        accepted = list[Question]()
        for step, text in questions:
            with _checking(step):
                asked = partial(verify, step, text)
                answer = background().run_in_thread(asked, "verify", self.policy.verify_timeout)
                if _as_answer(answer):
                    accepted.append((step, text))
        return Accepted.of(questions, accepted)

    async def averified(self, questions: list[Question]) -> Accepted:
        """The same where it is a coroutine function."""
        verify: Any = self.policy.verify
        accepted = list[Question]()
        for step, text in questions:
            with _checking(step):
                asked = verify(step, text)
                answer = await background().await_within(asked, "verify", self.policy.verify_timeout)
                if _as_answer(answer):
                    accepted.append((step, text))
        return Accepted.of(questions, accepted)


WITHOUT_POLICY = PolicyCalls(PlanPolicy())
"""For the tools of a section without a policy, where other sections of the session have one."""


def _as_answer(answer: object) -> bool:
    """The answer of ``verify``; a coroutine that it returned, or any other value, is not an answer."""
    if not isinstance(answer, bool):
        raise TypeError(f"verify returned {type(answer).__name__}, not a bool")
    return answer


def _has_evidence(params: Any) -> bool:
    """True if a call brings evidence, which is kept also for a step that is done."""
    return any(getattr(each, "evidence", ()) for each in (params, *getattr(params, "marks", ())))


def _with(facts: PlanFacts, entailed: Iterable[Any]) -> PlanFacts:
    """The facts with the commands that follow from a change."""
    for each in entailed:
        (facts,) = reduce_facts((facts,), each)
    return facts


def _asks(entailed: Iterable[Any]) -> bool:
    """True if what follows from a command is that the user is asked."""
    return any(isinstance(each, RequestApproval) for each in entailed)


def _with_news(refusal: ToolValidationError, changed: str) -> ToolValidationError:
    if not changed:
        return refusal
    *others, last = refusal.problems
    return ToolValidationError([*others, attrs.evolve(last, message=f"{last.message}. {changed}")])


@contextmanager
def _checking(step: PlanStep) -> Iterator[None]:
    try:
        yield
    except ToolTimeout as error:
        raise ToolError(f"the evidence for {step.step_id} was not checked in time; send it again") from error
    except Exception as error:
        raise ToolError(
            f"the evidence for {step.step_id} could not be checked ({type(error).__name__}); send it again, "
            "or send other evidence"
        ) from error


def _pair(marks: Sequence[MarkStep], params: Any) -> Iterable[tuple[MarkStep, Any]]:
    """Each mark with the arguments that it was made of."""
    several = getattr(params, "marks", ()) or (params,)
    return [(mark, several[place]) for place, mark in enumerate(marks)]


def _seed_steps(steps: Any) -> Any:
    """New steps without the additions of a policy; the handler refuses anything that is not a step."""
    if not isinstance(steps, (tuple, list)):
        return steps
    return tuple(
        [NewPlanStep(each.title, each.details) if isinstance(each, NewPlanStep) else each for each in steps]
    )
