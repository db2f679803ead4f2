"""The policy in a planning call: what it does between a handler and the reducers.

A call stays the seed's command, checked by its handler. The policy's checks run in the same transaction, and
what they entail are commands of its own, dispatched after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import attrs

from planning.errors import ToolError, ToolValidationError
from planning.plan import handlers
from planning.plan.commands import (
    AddStep,
    ClearPlan,
    MarkStep,
    MarkSteps,
    NewPlanStep,
    SetupPlan,
    UpdateStep,
)
from planning.plan.facts import EvidenceCall, PlanFacts
from planning.plan.model import Plan, PlanStep
from planning.plan.reducers import changes_nothing
from planning.plan.render import reply
from planning.plan.text import TextRules, rules_for
from planning.policy.checks import (
    dependencies_of,
    refuse_marks,
    refuse_replacement,
    refuse_waiting,
)
from planning.policy.evidence import (
    NOTHING_ASKED,
    Accepted,
    Question,
    evidence_for,
    is_alias,
    number_of_call,
    refuse_evidence,
)
from planning.policy.policy import PlanPolicy, strictest
from planning.policy.reducers import RecordEvidence, RequestApproval, SetDependencies
from planning.suite.kept import Policies, facts_in
from planning.suite.policy_guards import marks_of
from planning.tools.attempts import background
from planning.tools.context import ToolContext
from planning.tools.errors import ToolTimeout
from planning.tools.parameters.signature import read_signature
from session import Session, Transaction

NO_FACTS = PlanFacts()
_NOTHING: Sequence[Any] = ()


@attrs.define
class News:
    """The plan as each agent last saw it, to say once what others have changed since.

    An agent is a connection, a run or a toolbox. One that has not looked yet resumes what the last agent of
    its name saw: the client that connects again, the next run. It is kept, so that no other has its address.
    """

    seen: dict[object, tuple[Plan, object]] = attrs.field(factory=dict)

    def take(self, context: ToolContext, plan: Plan | None) -> str:
        """What changed since the agent last looked; empty when nothing did, or it never looked."""
        seen = self.seen.get(_key_of(context)) or self.seen.get(context.actor)
        known = None if seen is None else seen[0]
        if known is None or known is plan or known == plan:
            return ""
        from planning.plan.diff import diff_plans  # noqa: PLC0415 - few plans are changed by others

        return f"Since you last looked: {diff_plans(known, plan)}"

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


Steered = tuple[Any, Any, Plan, Sequence[Any], str]
"""A call that was carried out: the command as it was sent, and as its handler left it; the plan; what is
dispatched after it; the reply."""


@attrs.frozen
class Steering:
    """A policy, for the planning tools of one section."""

    policy: PlanPolicy

    @property
    def rules(self) -> TextRules:
        """The rules for the texts that its tools take."""
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
    ) -> Steered:
        """Check a call by its handler and by the policy, and dispatch its command.

        An agent that acts on a plan which others have changed since it last looked reads what has changed,
        once: with the reply, or with the refusal.

        Args:
            transaction: The session's, open.
            session: The session.
            context: The context of the call.
            params: The arguments.
            before: The plan.
            handler: The command's handler.
            dispatch: Dispatches the command; returns the resulting plan.
            accepted: What ``verify`` said, where it was asked.

        Raises:
            ToolValidationError: The call is refused; nothing has changed.
        """
        news, accepted = session.companion(News), accepted or NOTHING_ASKED
        changed, entailed = news.take(context, before), _NOTHING
        try:
            sent = self.seed(params)
            command = handler(sent, before, self.rules)
            if before is not None and changes_nothing(command, before) and not _has_evidence(params):
                facts, plan = transaction.latest(PlanFacts), dispatch(command)
            else:
                facts = facts_in(transaction)
                demands = session.companion(Policies).policy or self.policy
                marks = marks_of(command)
                if isinstance(command, SetupPlan):
                    refuse_replacement(strictest(self.policy, demands), before)
                elif facts.waiting:
                    refuse_waiting(marks, facts)
                plan = dispatch(command)
                if marks:
                    entailed = self._proved(demands, marks, params, plan, transaction, accepted)
                else:
                    entailed = _entailed(demands, command, params, before, plan, facts)
        except ToolValidationError as refusal:
            news.saw(context, before)
            raise _with_news(refusal, changed) from None
        news.saw(context, plan)
        message = reply(command, plan, before, facts, asks=_asks(entailed))
        return sent, command, plan, entailed, f"{changed} {message}" if changed else message

    def seed(self, params: Any) -> Any:
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
                return SetupPlan(params.objective, _plain_steps(params.initial_steps))
            case AddStep():
                return AddStep(_plain_steps(params.steps))
            case UpdateStep():
                return UpdateStep(params.step_id, params.title, params.details)
        return params

    def _proved(
        self,
        demands: PlanPolicy,
        marks: Sequence[MarkStep],
        params: Any,
        plan: Plan,
        transaction: Transaction,
        accepted: Accepted,
    ) -> Sequence[Any]:
        """What shows that the steps are done which were marked so just now."""
        if demands.evidence is None:
            return _NOTHING
        proved: dict[str, RecordEvidence] = {}
        begun: set[str] = set()
        facts, calls = transaction.latest(PlanFacts) or NO_FACTS, transaction.select_all(EvidenceCall)
        for mark, given in _paired(marks, params):
            step_id = mark.step_id
            if mark.status != "done":
                proved.pop(step_id, None)
                begun.add(step_id)
                continue
            if step_id in begun:
                raise ToolValidationError(
                    f"{step_id} cannot begin and end in one call; mark it in_progress, do its work, and "
                    "then mark it done"
                )
            if self.policy.evidence is None:
                raise ToolValidationError(
                    f"{step_id} needs evidence, which this tool does not take; leave this mark to an agent "
                    "whose tool takes it"
                )
            evidence = getattr(given, "evidence", ())
            if len(evidence) > 1:  # one text alone was checked before ``verify``, or is refused
                refuse_evidence(step_id, evidence, self.rules.note)
            texts = accepted.texts_of(step_id, plan) if accepted.steps else ()
            found = evidence_for(demands, step_id, evidence, facts, calls, texts)
            proved[step_id] = found
            if demands.evidence == "unique":
                facts = replace(facts, proofs={**facts.proofs, step_id: found.proof})
        return tuple(proved.values())

    # What the host is asked

    @property
    def is_async(self) -> bool:
        """Whether ``verify`` is a coroutine function."""
        verify = self.policy.verify
        return verify is not None and read_signature(verify).is_async

    def questions(self, params: Any, session: Session) -> list[Question]:
        """What ``verify`` is to be asked about a call: steps to be done, each with a text that is not a call.

        Raises:
            ToolValidationError: The call is refused anyway.
        """
        plan = session.select_latest(Plan)
        demands = session.companion(Policies).policy or self.policy
        if demands.verify is None or not isinstance(params, MarkStep) or plan is None:
            return []
        marks = marks_of(handlers.mark(self.seed(params), plan, self.rules))
        calls, asked = session.select_all(EvidenceCall), list[Question]()
        steps = {step.step_id: step for step in plan.steps}
        for mark, given in _paired(marks, params):
            if mark.status == "done":
                evidence = getattr(given, "evidence", ())
                refuse_evidence(mark.step_id, evidence, self.rules.note)
                texts = [
                    each for each in evidence if number_of_call(each, calls) is None and not is_alias(each)
                ]
                asked += [(steps[mark.step_id], text) for text in texts]
        return asked

    def verified(self, questions: list[Question]) -> Accepted:
        """Ask ``verify``, a plain function.

        Raises:
            ToolError: It failed, or took too long.
        """
        verify: Any = self.policy.verify
        answers = []
        for step, text in questions:
            with _checking(step):
                asked = partial(verify, step, text)
                answer = background().run_in_thread(asked, "verify", self.policy.verify_timeout)
                answers.append(_as_answer(answer))
        return Accepted.of(questions, answers)

    async def averified(self, questions: list[Question]) -> Accepted:
        """The same where it is a coroutine function."""
        verify: Any = self.policy.verify
        answers = []
        for step, text in questions:
            with _checking(step):
                asked = verify(step, text)
                answer = await background().await_within(asked, "verify", self.policy.verify_timeout)
                answers.append(_as_answer(answer))
        return Accepted.of(questions, answers)


WITHOUT_POLICY = Steering(PlanPolicy())
"""For the tools of a section without a policy, where other sections of the session have one."""


def _as_answer(answer: object) -> bool:
    """The answer of ``verify``; a coroutine that it returned, or any other value, is not an answer."""
    if not isinstance(answer, bool):
        raise TypeError(f"verify returned {type(answer).__name__}, not a bool")
    return answer


def _has_evidence(params: Any) -> bool:
    """Whether a call brings evidence, which is kept also for a step that is done."""
    return any(getattr(each, "evidence", ()) for each in (params, *getattr(params, "marks", ())))


def _asks(entailed: Iterable[Any]) -> bool:
    """Whether what follows from a command is that the user is asked."""
    return any(isinstance(each, RequestApproval) for each in entailed)


def _entailed(
    demands: PlanPolicy, command: Any, params: Any, before: Plan | None, plan: Plan, facts: PlanFacts
) -> Sequence[Any]:
    """The commands that follow from one that changes more than marks."""
    field = {SetupPlan: "initial_steps", AddStep: "steps"}.get(type(command))
    entailed: list[Any] = [] if field is None else _depending(field, params, plan)
    if not demands.approval and facts.approval == "none":
        return entailed
    said = {(step.step_id, step.title): step.details for step in before.steps} if before else {}
    says = {(step.step_id, step.title): step.details for step in plan.steps}
    waiting = tuple([key[0] for key in says if key not in said])
    is_other = says != said or isinstance(command, ClearPlan)  # a move changes nothing that a step says
    if isinstance(command, SetupPlan) or (facts.approval == "rejected" and is_other):
        entailed.append(RequestApproval())
    elif waiting:
        entailed.append(RequestApproval(waiting))
    return entailed


def _depending(field: str, params: Any, plan: Plan) -> list[SetDependencies]:
    """What new steps, which are the last of a plan, depend on."""
    needed = [getattr(step, "depends_on", ()) for step in getattr(params, field)]
    found = dependencies_of(needed, plan.steps, field) if any(needed) else {}
    return [SetDependencies(found)] if found else []


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


def _paired(marks: Sequence[MarkStep], params: Any) -> Iterable[tuple[MarkStep, Any]]:
    """Each mark with the arguments that it was made of."""
    several = getattr(params, "marks", ())
    return zip(marks, several, strict=True) if several else ((marks[0], params),)


def _plain_steps(steps: Any) -> Any:
    """New steps without the additions of a policy; the handler refuses anything that is not a step."""
    if not isinstance(steps, (tuple, list)):
        return steps
    return tuple(
        [NewPlanStep(each.title, each.details) if isinstance(each, NewPlanStep) else each for each in steps]
    )
