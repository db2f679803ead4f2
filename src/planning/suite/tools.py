"""The planning tools of a session: the one joint of plan, policy, tools and session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

import attrs

from planning.errors import Problem, ToolError, ToolValidationError
from planning.plan import handlers
from planning.plan.commands import (
    AddStep,
    ClearPlan,
    Command,
    MarkStep,
    MarkSteps,
    MoveStep,
    ReadPlan,
    RemoveStep,
    SetupPlan,
    UpdateStep,
)
from planning.plan.facts import PlanFacts
from planning.plan.model import Plan
from planning.plan.reducers import REDUCERS, changes_nothing, check_command
from planning.plan.render import reply
from planning.plan.text import ASCII, TextRules, rules_for
from planning.suite.events import announce_plan, sign
from planning.suite.kept import Policies, demands_on, hold_back, register_facts
from planning.tools.context import SessionOfCall, SessionSource, ToolContext
from planning.tools.contract import ToolExample
from planning.tools.errors import ContextInvalid
from planning.tools.once import RepeatedIds, find_repeat, fingerprint_of
from planning.tools.pipeline import PATIENCE
from planning.tools.result import ToolResult
from planning.tools.tool import Tool
from session import Session, StoreError, ToolInvoked, TransactionError, replace_latest
from session.errors import StoreBusy
from session.transaction import Transaction

if TYPE_CHECKING:
    from planning.policy.evidence import Accepted
    from planning.policy.policy import PlanPolicy
    from planning.suite.policy_calls import PolicyCalls

Handler = Callable[..., Any]
"""A handler of a command, given the plan and the rules for strings; ASCII when omitted."""


class _Registered:
    """True if a session has the plan's reducers."""

    is_done = False


def register_plan(session: Session, policy: PlanPolicy | None = None) -> None:
    """Register the plan's reducers and events with a session; repeating it changes nothing.

    Args:
        session: The session.
        policy: What a host demands of the plan, when it does.
    """
    registered = session.local_object(_Registered)
    if not registered.is_done:
        session.register_like(_with_plan(is_stored=session.store is not None))
        hold_back(session)
        registered.is_done = True
    if policy is not None:
        from planning.suite.policy_calls import register_policy  # noqa: PLC0415 - many classes, and few have a policy

        register_policy(session, policy)


@cache
def _with_plan(*, is_stored: bool) -> Session:
    """A session with nothing but the plan's reducers and events."""
    store = None
    if is_stored:
        from session.stores import MemoryStore  # noqa: PLC0415 - most sessions are in memory

        store = MemoryStore()
    session = Session(store=store)
    session.register_reducer(Plan, replace_latest)
    for command, reducer in REDUCERS.items():
        session.register_reducer(command, reducer, Plan, check=check_command)
    session.register_types(ReadPlan, ToolResult, RepeatedIds)
    announce_plan(session)
    register_facts(session, always=is_stored)
    return session


@attrs.frozen
class _Definition:
    """A planning tool: its command, the command's handler, and what a model reads of it."""

    name: str
    command: type[Any]
    handler: Handler
    description: str
    arguments: Mapping[str, Any]
    message: str


_DEFINITIONS: tuple[_Definition, ...] = (
    _Definition(
        "planning_setup_plan", SetupPlan, handlers.setup_plan, "Create or replace the plan.",
        {"objective": "Fix the login bug", "initial_steps": [{"title": "Reproduce it"}]},
        "Plan set: S001. Next: S001 Reproduce it",
    ),
    _Definition(
        "planning_add_step", AddStep, handlers.add_step, "Append steps to the active plan.",
        {"steps": [{"title": "Write a test"}]}, "Added S002.",
    ),
    _Definition(
        "planning_update_step", UpdateStep, handlers.update_step, "Change a step's title or details.",
        {"step_id": "S002", "title": "Write a failing test"}, "S002 updated.",
    ),
    _Definition(
        "planning_mark_step", MarkStep, handlers.mark_step, "Set a step's status.",
        {"step_id": "S001", "status": "done", "note": "Fails on empty names"},
        "S001 done. Next: S002 Write a failing test",
    ),
    _Definition(
        "planning_clear_plan", ClearPlan, handlers.clear_plan, "Abandon the plan and discard its steps.",
        {}, "Plan abandoned.",
    ),
    _Definition(
        "planning_read_plan", ReadPlan, handlers.read_plan, "Read the plan.",
        {}, "Fix the login bug (abandoned, 0 of 0 done)",
    ),
)  # fmt: skip
_EDITS = (
    _Definition(
        "planning_remove_step", RemoveStep, handlers.remove_step, "Remove a step.",
        {"step_id": "S002"}, "S002 removed.",
    ),
    _Definition(
        "planning_move_step", MoveStep, handlers.move_step, "Move a step to another place.",
        {"step_id": "S003", "index": 0}, "S003 moved. Order: S003, S001 to S002.",
    ),
)  # fmt: skip


def planning_tools(session: SessionSource, policy: PlanPolicy | None = None) -> tuple[Tool, ...]:
    """The planning tools of a session, in the order in which a model reads them: six without a policy."""
    source = SessionOfCall(session, partial(register_plan, policy=policy))
    calls: PolicyCalls | None = None
    kinds: Mapping[str, type[Any]] = {}
    rules, definitions = ASCII, _DEFINITIONS
    if policy is not None:
        from planning.policy.policy import parameters_of  # noqa: PLC0415 - as in ``register_plan``
        from planning.suite.policy_calls import PolicyCalls  # noqa: PLC0415 - as in ``register_plan``

        calls, kinds, rules = PolicyCalls(policy), parameters_of(policy), rules_for(policy.text)
        definitions = tuple([each for each in _DEFINITIONS + _EDITS if each.name in policy.names])
    return tuple(
        [
            Tool(
                name=each.name,
                description=each.description,
                parameters=kinds.get(each.name, each.command),
                function=_in_transaction(source, each.name, _handler_of(each, calls), calls),
                examples=(ToolExample(each.arguments, each.message),),
                diagnose=_diagnosis(source, each.name, MarkStep if each in _EDITS else each.command, rules),
                narrow=_narrowing(source, MarkStep if each in _EDITS else each.command, policy),
                publishes="own",
                blocking=policy is not None and policy.verify is not None and each.command is MarkStep,
                session=source,
            )
            for each in definitions
        ]
    )


def _narrowing(
    source: SessionOfCall, command: type[Command], policy: PlanPolicy | None
) -> Callable[[dict[str, Any], Session | None], dict[str, Any] | None] | None:
    """A function that narrows a tool's definition to the plan of a request; None if none is needed."""
    if policy is None or policy.offer == "all":
        return None
    from planning.suite.offer import possible_schema  # noqa: PLC0415 - few policies ask for it

    def narrow(schema: dict[str, Any], session: Session | None) -> dict[str, Any] | None:
        session = session or source.find()
        source.prepare(session)
        demanded = demands_on(session, policy) or policy
        return possible_schema(schema, command, session.select_latest(Plan), demanded)

    return narrow


def _handler_of(definition: _Definition, calls: PolicyCalls | None) -> Handler:
    """The handler of a tool: with a policy, a mark may be several."""
    return handlers.mark if calls is not None and definition.command is MarkStep else definition.handler


def _session_of(source: SessionOfCall, name: str, context: ToolContext) -> Session:
    """The session whose plan a call is about, unless the tools are bound to another."""
    session = context.session
    if source.fixed is None or session is None:
        try:
            if session is None:
                return source.find()
            source.prepare_for_call(session)
        except ContextInvalid as error:
            raise ContextInvalid(f"{name} was not called: {error.message}") from None
    elif session is not source.fixed:
        remedy = "use the tools of this session's PlanningToolsSection"
        raise ToolValidationError(Problem(f"{name} belongs to another session; {remedy}"))
    return session


def _refresh(session: Session) -> Session:
    """A session with what other processes have committed, if its store can be read now."""
    if session.store is not None:
        with suppress(StoreError, TransactionError):  # inside a transaction it has all of it
            session.refresh(PATIENCE)
    return session


def _diagnosis(
    source: SessionOfCall, name: str, command: type[Command], rules: TextRules
) -> Callable[[Mapping[str, Any], ToolContext], list[Problem]]:
    """The plan's problems with arguments that cannot be decoded; not for another session's call."""

    def diagnose(arguments: Mapping[str, Any], context: ToolContext) -> list[Problem]:
        try:
            session = _session_of(source, name, context)
        except ToolValidationError as refusal:
            return list(refusal.problems)
        return handlers.diagnose(command, arguments, _refresh(session).select_latest(Plan), rules)

    return diagnose


def carry_out(transaction: Transaction, name: str, command: Command | MarkSteps, before: Plan | None) -> Plan:
    """Carry a command out, within an open transaction, that fits the plan and is normal.

    One that changes nothing is not dispatched: it is not a change of what is kept beside the plan, either.
    """
    if before is not None and changes_nothing(command, before):
        return before
    transaction.dispatch(command)
    plan = transaction.latest(Plan)
    # Reducers build a new plan for every other command that fits it: the old one here means that it did not,
    # or that another reducer replaced ours, and nothing was applied.
    if plan is None or plan is before:
        raise ToolError(f"{name} was not applied: the session's reducers did not take it")
    return plan


def _calls_of(session: Session, transaction: Transaction) -> PolicyCalls | None:
    """The policy of a section without one: what others demand here, or a plan that was submitted."""
    facts = transaction.latest(PlanFacts) if PlanFacts in transaction.slices else None
    if session.local_object(Policies).policy is None and (facts is None or facts.approval == "none"):
        return None
    from planning.suite.policy_calls import WITHOUT_POLICY  # noqa: PLC0415 - as in ``register_plan``

    return WITHOUT_POLICY


def _in_transaction(
    source: SessionOfCall, name: str, handler: Handler, calls: PolicyCalls | None = None
) -> Callable[[Any, ToolContext], Any]:
    """A tool function that checks a command and carries it out in one transaction."""
    reads = handler is handlers.read_plan
    patience = PATIENCE if reads else None

    def run(params: Any, context: ToolContext, accepted: Accepted | None = None) -> ToolResult:
        session = source.fixed
        if session is None or context.session is not session:
            session = _session_of(source, name, context)
        started = perf_counter()
        with session.transaction(timeout=patience) as transaction:
            key, fingerprint = context.idempotency_key, None
            if key is not None:
                fingerprint = fingerprint_of(params)
                repeat = find_repeat(session, name, key, fingerprint)
                if repeat is not None and not reads:
                    return repeat
            before = transaction.latest(Plan)
            entailed: Sequence[Any] = ()
            checks = calls or _calls_of(session, transaction)
            if checks is None:
                sent, command = params, handler(params, before)
                plan = carry_out(transaction, name, command, before)
                message = reply(command, plan, before)
            else:
                sent, command, plan, entailed, message = checks.carry_out(
                    transaction,
                    session,
                    context,
                    params,
                    before,
                    handler,
                    lambda checked: carry_out(transaction, name, checked, before),
                    accepted,
                )
            value = plan if reads else command
            result = ToolResult(True, message, value, None, None, perf_counter() - started)
            ids = context.of_events
            if key is not None or context.session is None:
                ids = {**ids, "session_id": session.session_id, "fingerprint": fingerprint}
            reduced = None if plan is before and not reads else command
            transaction.publish(ToolInvoked(name, sent, result, reduced, **ids))
            for each in entailed:
                transaction.dispatch(each)
            sign(transaction)
        return result

    def read(params: Command, context: ToolContext) -> ToolResult:
        """Read the plan; also where the store does not record that, because it is busy or cannot be written.

        If the store cannot even be read, because another file was written over it, the call fails.
        """
        try:
            return run(params, context)
        except StoreError:
            session = _session_of(source, name, context)
            started = perf_counter()
            with suppress(StoreBusy):
                session.refresh(PATIENCE)
            plan: Any = session.select_latest(Plan)
            command = handler(params, plan)  # refuses if there is none
            message = reply(command, plan, facts=session.select_latest(PlanFacts))
            return ToolResult(True, message, plan, None, None, perf_counter() - started)

    if reads:
        return read
    if handler is handlers.mark and calls is not None and calls.policy.verify is not None:
        return _asking(source, name, calls, run)
    return run


def _asking(
    source: SessionOfCall,
    name: str,
    calls: PolicyCalls,
    run: Callable[[Any, ToolContext, Accepted], ToolResult],
) -> Callable[[Any, ToolContext], Any]:
    """A tool function that marks steps after the host's ``verify`` was asked, outside of any transaction."""

    def ask(params: Any, context: ToolContext) -> ToolResult:
        session = _session_of(source, name, context)
        return run(params, context, calls.verified(calls.questions(params, _refresh(session))))

    async def ask_async(params: Any, context: ToolContext) -> ToolResult:
        session = _session_of(source, name, context)
        questions = await session.run_in_worker(lambda: calls.questions(params, _refresh(session)))
        accepted = await calls.averified(questions)
        return await session.run_in_worker(partial(run, params, context, accepted))

    return ask_async if calls.is_async else ask
