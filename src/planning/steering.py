"""A policy on the line of a planning call: what it adds between a handler and the reducers.

A call stays the seed's command, checked by its handler. The policy's checks run in the same transaction, and
what they entail are commands of its own, dispatched after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import attrs

from planning import handlers
from planning.checks import (
    dependencies_of,
    evidence_for,
    number_of_call,
    refuse_order,
    refuse_replacement,
    refuse_waiting,
    waits,
)
from planning.commands import (
    AddStep,
    MarkStep,
    MarkSteps,
    NewPlanStep,
    RenumberSteps,
    SetupPlan,
    UpdateStep,
)
from planning.diff import diff_plans
from planning.errors import ToolError, ToolValidationError
from planning.facts import (
    FACT_REDUCERS,
    EvidenceCall,
    PlanFacts,
    RequestApproval,
    SetDependencies,
    count_call,
    evidence_call,
)
from planning.model import Plan, PlanStep, index_of
from planning.policy import PlanPolicy
from planning.reducers import renumber_steps
from planning.render import reply
from planning.step_ids import format_id, highest_number
from planning.text import TextRules, rules_for
from planning.tools.background import await_within, run_in_thread
from planning.tools.context import Gate, ToolContext
from planning.tools.errors import ToolTimeout
from planning.tools.parameters.signature import read_signature
from session import Session, ToolFailed, ToolInvoked
from session.reducers import append_part

__all__ = [
    "NOTHING_ASKED",
    "Accepted",
    "News",
    "Steering",
    "register_facts",
    "register_policy",
    "register_readers",
    "rules_of",
]

Question = tuple[PlanStep, str]
NO_FACTS = PlanFacts()
_EVIDENCE = append_part(evidence_call)


@attrs.define
class Policies:
    """The policy of a session in this process; the engine's mirror reads its alphabet there."""

    policy: PlanPolicy | None = None


@attrs.define
class News:
    """The plan as each agent last saw it, to say once what others have changed since."""

    seen: dict[str | None, Plan] = attrs.field(factory=dict)

    def take(self, actor: str | None, plan: Plan | None) -> str:
        """What changed since the agent last looked; empty when nothing did, or it never looked."""
        known = self.seen.get(actor)
        return (
            ""
            if known is None or known is plan or known == plan
            else f"Since you last looked: {diff_plans(known, plan)}"
        )

    def saw(self, actor: str | None, plan: Plan | None) -> None:
        """The agent has seen the plan."""
        self.seen.pop(actor, None)
        if plan is not None:
            self.seen[actor] = plan
        if len(self.seen) > _MOST_ACTORS:
            del self.seen[next(iter(self.seen))]


_MOST_ACTORS = 100


def register_facts(session: Session) -> None:
    """Register what a policy keeps beside the plan, also for those who only read it; again is no change."""
    for command, reducer in FACT_REDUCERS.items():
        session.register_reducer(command, reducer, PlanFacts)
    for event in (ToolInvoked, ToolFailed):
        session.register_reducer(event, count_call, PlanFacts)


def register_readers(session: Session) -> None:
    """Register all that any policy keeps, where a session is read or approved and its policy is not known."""
    register_facts(session)
    for event in (ToolInvoked, ToolFailed):
        session.register_reducer(event, _EVIDENCE, EvidenceCall)


def register_policy(session: Session, policy: PlanPolicy) -> None:
    """Register what a policy needs with a session; again is no change."""
    register_facts(session)
    if policy.evidence is not None:
        for event in (ToolInvoked, ToolFailed):
            session.register_reducer(event, _EVIDENCE, EvidenceCall)
    if policy.dependencies or policy.most_in_progress is not None:
        for command in (MarkStep, MarkSteps):
            session.register_guard(command, _Order(policy))
    session.companion(Policies).policy = policy
    if policy.approval:
        session.companion(Gate).refusal = _refusal


def rules_of(session: Session) -> TextRules:
    """The rules for the texts of a session's plan, by its policy in this process; ASCII without one."""
    policy = session.companion(Policies).policy
    return rules_for("ascii" if policy is None else policy.text)


def _refusal(session: Session, tool: str) -> str | None:
    refusal = waits(session.select_latest(PlanFacts), tool)
    if refusal is not None and session.store is not None:
        session.refresh()  # another process may have approved the plan
        refusal = waits(session.select_latest(PlanFacts), tool)
    return refusal


@attrs.frozen
class _Order:
    """The guard of every mark: prerequisites, and how many steps are in progress."""

    policy: PlanPolicy

    def __call__(self, command: Any, select: Callable[[type[Any]], Any]) -> None:
        plan, marks = select(Plan), _marks(command)
        if plan is not None:
            refuse_order(self.policy, marks, plan, select(PlanFacts) or NO_FACTS)


def _marks(command: Any) -> tuple[MarkStep, ...]:
    if isinstance(command, MarkSteps):
        return command.marks
    return (command,) if isinstance(command, MarkStep) else ()


@attrs.frozen
class Accepted:
    """What ``verify`` said, before the transaction: the steps as it saw them, and the texts it accepted."""

    steps: Mapping[str, PlanStep] = attrs.field(factory=dict)
    texts: frozenset[tuple[str, str]] = frozenset()

    @classmethod
    def of(cls, questions: list[Question], answers: list[Any]) -> Accepted:
        """What was asked, and the answers."""
        held = [
            (step.step_id, text) for (step, text), answer in zip(questions, answers, strict=True) if answer
        ]
        return cls({step.step_id: step for step, _ in questions}, frozenset(held))

    def texts_of(self, step_id: str, plan: Plan) -> set[str]:
        """The texts that prove a step.

        Raises:
            ToolValidationError: The step is another by now.
        """
        asked, index = self.steps.get(step_id), index_of(plan.steps, step_id)
        step = None if index is None else plan.steps[index]
        if (
            asked is not None
            and step is not None
            and (step.title, step.details) != (asked.title, asked.details)
        ):
            raise ToolValidationError(
                f"{step_id} changed while its evidence was checked; read the plan, and mark it again"
            )
        return {text for known, text in self.texts if known == step_id}


NOTHING_ASKED = Accepted()


@attrs.frozen
class Steered:
    """A call that was carried out under a policy.

    Attributes:
        sent: The command as it was sent.
        command: The command as its handler left it.
        plan: The resulting plan.
        entailed: What is dispatched after it.
        message: The reply.
    """

    sent: Any
    command: Any
    plan: Plan
    entailed: list[Any]
    message: str


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
        session: Session,
        context: ToolContext,
        params: Any,
        before: Plan | None,
        handler: Callable[[Any, Plan | None, TextRules], Any],
        dispatch: Callable[[Any], Plan],
        accepted: Accepted,
    ) -> Steered:
        """Check a call by its handler and by the policy, and dispatch its command.

        An agent that acts on a plan which others have changed since it last looked reads what has changed,
        once: with the reply, or with the refusal.

        Args:
            session: The session, in its transaction.
            context: The call's.
            params: The arguments.
            before: The plan.
            handler: The command's handler.
            dispatch: Dispatches the command; returns the resulting plan.
            accepted: What ``verify`` said.

        Raises:
            ToolValidationError: The call is refused; nothing has changed.
        """
        news = session.companion(News)
        changed = news.take(context.actor, before)
        try:
            sent = self.seed(params)
            command = handler(sent, before, self.rules)
            facts = session.select_latest(PlanFacts) or NO_FACTS
            entailed = self._entailed(command, params, before, facts)
            plan = dispatch(command)
            if self.policy.evidence is not None and isinstance(command, MarkStep | MarkSteps):
                entailed = self._proved(_marks(command), params, plan, session, accepted)
        except ToolValidationError as refusal:
            news.saw(context.actor, before)
            raise _with_news(refusal, changed) from None
        for each in entailed:
            if isinstance(each, RenumberSteps):
                (plan,) = renumber_steps((plan,), each)
        message = self._reply(command, plan, before, session)
        return Steered(sent, command, plan, entailed, f"{changed} {message}" if changed else message)

    def seed(self, params: Any) -> Any:
        """The command that the arguments mean, without what the policy added to them."""
        match params:
            case SetupPlan():
                return SetupPlan(params.objective, _plain_steps(params.initial_steps))
            case AddStep():
                return AddStep(_plain_steps(params.steps))
            case UpdateStep():
                return UpdateStep(params.step_id, params.title, params.details)
            case MarkStep():
                marks = getattr(params, "marks", ())
                if len(marks) > 1:
                    return MarkSteps(
                        tuple([MarkStep(each.step_id, each.status, each.note) for each in marks])
                    )
                one = marks[0] if marks else params
                return MarkStep(one.step_id, one.status, one.note)
        return params

    def _entailed(self, command: Any, params: Any, plan: Plan | None, facts: PlanFacts) -> list[Any]:
        """The commands that follow from a command.

        Args:
            command: The command as its handler returned it.
            params: The arguments that it was made of.
            plan: The plan before it.
            facts: What is known of the plan.

        Raises:
            ToolValidationError: The policy refuses the command.
        """
        match command:
            case MarkStep() | MarkSteps():
                refuse_waiting(_marks(command), facts)
            case SetupPlan():
                refuse_replacement(self.policy, plan)
                entailed = self._depending(params.initial_steps, 0, None)
                return entailed + ([RequestApproval()] if self.policy.approval else [])
            case AddStep():
                return self._added(params, plan, facts)
            case UpdateStep(title=str()) if self.policy.approval:
                return [RequestApproval((command.step_id,))]
        return []

    def _added(self, params: Any, plan: Plan | None, facts: PlanFacts) -> list[Any]:
        steps = () if plan is None else plan.steps
        count, in_plan = len(params.steps), highest_number(step.step_id for step in steps)
        highest = max(facts.highest, in_plan)
        entailed: list[Any] = []
        if highest > in_plan:
            entailed.append(RenumberSteps(count, highest + 1))
        entailed += self._depending(params.steps, highest, plan)
        if self.policy.approval:
            ids = map(format_id, range(highest + 1, highest + 1 + count))
            entailed.append(RequestApproval(tuple(ids)))
        return entailed

    def _depending(self, steps: Iterable[Any], highest: int, plan: Plan | None) -> list[Any]:
        new = list(steps)
        given = [getattr(step, "depends_on", ()) for step in new]
        if not any(given):
            return []
        known = [] if plan is None else [step.step_id for step in plan.steps]
        known += map(format_id, range(highest + 1, highest + 1 + len(new)))
        titles = [self.rules.title.clean(step.title) or "" for step in new]
        found = dependencies_of(given, titles, len(known) - len(new), known, plan)
        return [SetDependencies(found)] if found else []

    def _proved(
        self,
        marks: Sequence[MarkStep],
        params: Any,
        plan: Plan,
        session: Session,
        accepted: Accepted,
    ) -> list[Any]:
        """What shows that the steps are done which were marked so just now."""
        facts, calls = session.select_latest(PlanFacts) or NO_FACTS, session.select_all(EvidenceCall)
        proved: list[Any] = []
        begun: set[str] = set()
        for mark, given in _paired(marks, params):
            if mark.status == "in_progress":
                begun.add(mark.step_id)
            if mark.status != "done":
                continue
            if mark.step_id in begun:
                raise ToolValidationError(
                    f"{mark.step_id} cannot begin and end in one call; mark it in_progress, do its work, and "
                    "then mark it done"
                )
            texts, evidence = accepted.texts_of(mark.step_id, plan), getattr(given, "evidence", ())
            proved.append(evidence_for(self.policy, mark.step_id, evidence, facts, calls, texts))
            if self.policy.evidence == "unique":
                facts = replace(facts, proofs={**facts.proofs, mark.step_id: proved[-1].proof})
        return proved

    def _reply(self, command: Any, plan: Plan, before: Plan | None, session: Session) -> str:
        """What the model reads after a command was carried out."""
        facts = session.select_latest(PlanFacts) or NO_FACTS
        if self.policy.approval and isinstance(command, SetupPlan | AddStep | UpdateStep):
            facts = replace(facts, approval="waiting")
        return reply(command, plan, before, facts)

    def saw(self, session: Session, actor: str | None) -> None:
        """The agent has seen the plan as it is now."""
        session.companion(News).saw(actor, session.select_latest(Plan))

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
        if self.policy.verify is None or not isinstance(params, MarkStep) or plan is None:
            return []
        marks, calls = (
            _marks(handlers.mark(self.seed(params), plan, self.rules)),
            session.select_all(EvidenceCall),
        )
        steps = {step.step_id: step for step in plan.steps}
        return [
            (steps[mark.step_id], text)
            for mark, given in _paired(marks, params)
            if mark.status == "done"
            for text in getattr(given, "evidence", ())
            if number_of_call(text, calls) is None
        ]

    def verified(self, questions: list[Question]) -> Accepted:
        """Ask ``verify``, a plain function.

        Raises:
            ToolError: It failed, or took too long.
        """
        verify: Any = self.policy.verify
        answers = []
        for step, text in questions:
            with _checking(step):
                answers.append(
                    run_in_thread(partial(verify, step, text), "verify", self.policy.verify_timeout)
                )
        return Accepted.of(questions, answers)

    async def averified(self, questions: list[Question]) -> Accepted:
        """The same where it is a coroutine function."""
        verify: Any = self.policy.verify
        answers = []
        for step, text in questions:
            with _checking(step):
                answers.append(await await_within(verify(step, text), "verify", self.policy.verify_timeout))
        return Accepted.of(questions, answers)


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
    return zip(marks, getattr(params, "marks", ()) or (params,), strict=True)


def _plain_steps(steps: Any) -> Any:
    """New steps without what a policy added to them; what is no step is refused by the handler."""
    if not isinstance(steps, (tuple, list)):
        return steps
    return tuple(
        [NewPlanStep(each.title, each.details) if isinstance(each, NewPlanStep) else each for each in steps]
    )
