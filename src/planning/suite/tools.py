"""The plan of a session: its tools.

This is the only joint of core, tools and session.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

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
from planning.plan.reducers import REDUCERS, changes_nothing, check_command, check_mark
from planning.plan.render import reply
from planning.plan.text import ASCII, TextRules, rules_for
from planning.suite.events import announce_plan, framework, sign
from planning.suite.kept import Policies, hold_back, register_facts
from planning.tools.context import SessionOfCall, SessionSource, ToolContext
from planning.tools.contract import ToolExample
from planning.tools.errors import ContextInvalid
from planning.tools.once import RepeatedIds, find_repeat, fingerprint_of
from planning.tools.pipeline import PATIENCE
from planning.tools.result import ToolResult
from planning.tools.tool import Tool
from session import Session, StoreError, ToolInvoked, replace_latest
from session.errors import StoreBusy
from session.transaction import Transaction

if TYPE_CHECKING:
    from planning.policy.evidence import Accepted
    from planning.policy.policy import PlanPolicy
    from planning.suite.steering import Steering

Handler = Callable[..., Any]
"""A handler of a command, given the plan and the rules for texts; ASCII when omitted."""
_EDITS = (handlers.remove_step, handlers.move_step)


class _Registered:
    """Whether a session has the plan's reducers."""

    is_done = False


def register_plan(session: Session, policy: PlanPolicy | None = None) -> None:
    """Register the plan's reducers and events with a session; repeating it changes nothing.

    Args:
        session: The session.
        policy: What a host demands of the plan, when it does.
    """
    registered = session.companion(_Registered)
    if not registered.is_done:
        session.register_like(_with_plan(is_stored=session.store is not None))
        hold_back(session)
        registered.is_done = True
    if policy is not None:
        from planning.suite.steering import register_policy  # noqa: PLC0415 - many classes, and few have a policy

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
        check = check_mark if command is MarkStep else check_command
        session.register_reducer(command, reducer, Plan, check=check)
    session.register_types(ReadPlan, ToolResult, RepeatedIds)
    announce_plan(session)
    register_facts(session, always=is_stored)
    return session


def planning_tools(session: SessionSource, policy: PlanPolicy | None = None) -> tuple[Tool, ...]:
    """The planning tools of a session, in the order in which a model reads them: six without a policy.

    Args:
        session: The session; or a callable without arguments that returns that of the current call.
        policy: What the host demands; see ``PlanPolicy``.

    Raises:
        TypeError: It is neither.
    """
    found = SessionOfCall(session, partial(register_plan, policy=policy))
    steering: Steering | None = None
    kinds: Mapping[str, type[Any]] = {}
    rules = ASCII
    if policy is not None:
        from planning.policy.parameters import parameters_of  # noqa: PLC0415 - as in ``register_plan``
        from planning.suite.steering import Steering  # noqa: PLC0415 - as in ``register_plan``

        steering, kinds, rules = Steering(policy), parameters_of(policy), rules_for(policy.text)

    def bind(
        name: str,
        parameters: type[Any],
        handler: Handler,
        description: str,
        arguments: dict[str, Any],
        message: str,
    ) -> Tool:
        return Tool(
            name=name,
            description=description,
            parameters=kinds.get(name, parameters),
            function=_in_transaction(found, name, handler, steering),
            examples=(ToolExample(arguments, message),),
            diagnose=_diagnosis(found, name, MarkStep if handler in _EDITS else parameters, rules),
            publishes="own",
            blocking=policy is not None and policy.verify is not None and parameters is MarkStep,
            session=found,
        )

    tools: tuple[Tool, ...] = (
        bind(
            "planning_setup_plan",
            SetupPlan,
            handlers.setup_plan,
            "Create or replace the plan.",
            {"objective": "Fix the login bug", "initial_steps": [{"title": "Reproduce it"}]},
            "Plan set: S001. Next: S001 Reproduce it",
        ),
        bind(
            "planning_add_step",
            AddStep,
            handlers.add_step,
            "Append steps to the active plan.",
            {"steps": [{"title": "Write a test"}]},
            "Added S002.",
        ),
        bind(
            "planning_update_step",
            UpdateStep,
            handlers.update_step,
            "Change a step's title or details.",
            {"step_id": "S002", "title": "Write a failing test"},
            "S002 updated.",
        ),
        bind(
            "planning_mark_step",
            MarkStep,
            handlers.mark if policy is not None else handlers.mark_step,
            "Set a step's status.",
            {"step_id": "S001", "status": "done", "note": "Fails on empty names"},
            "S001 done. Next: S002 Write a failing test",
        ),
        bind(
            "planning_clear_plan",
            ClearPlan,
            handlers.clear_plan,
            "Abandon the plan and discard its steps.",
            {},
            "Plan abandoned.",
        ),
        bind(
            "planning_read_plan",
            ReadPlan,
            handlers.read_plan,
            "Read the plan.",
            {},
            "Fix the login bug (abandoned, 0 of 0 done)",
        ),
    )
    if policy is None:
        return tools
    if policy.agent_edits:
        tools += (
            bind(
                "planning_remove_step",
                RemoveStep,
                handlers.remove_step,
                "Remove a step.",
                {"step_id": "S002"},
                "S002 removed.",
            ),
            bind(
                "planning_move_step",
                MoveStep,
                handlers.move_step,
                "Move a step to another place.",
                {"step_id": "S003", "index": 0},
                "S003 moved. Order: S003, S001, S002.",
            ),
        )
    return tuple([tool for tool in tools if tool.name in policy.names])


def _session_of(found: SessionOfCall, name: str, context: ToolContext) -> Session:
    """The session whose plan a call is about, unless the tools are bound to another."""
    session = context.session
    if found.fixed is None or session is None:
        try:
            if session is None:
                return found.find()
            found.prepare_for_call(session)
        except ContextInvalid as error:
            raise ContextInvalid(f"{name} was not called: {error.message}") from None
    elif session is not found.fixed:
        remedy = "use the tools of this session's PlanningToolsSection"
        raise ToolValidationError(Problem(f"{name} belongs to another session; {remedy}"))
    return session


def _diagnosis(
    found: SessionOfCall, name: str, command: type[Command], rules: TextRules
) -> Callable[[Mapping[str, Any], ToolContext], list[Problem]]:
    """The plan's problems with arguments that cannot be decoded; not for another session's call."""

    def diagnose(arguments: Mapping[str, Any], context: ToolContext) -> list[Problem]:
        try:
            session = _session_of(found, name, context)
        except ToolValidationError as refusal:
            return list(refusal.problems)
        return handlers.diagnose(command, arguments, session.select_latest(Plan), rules)

    return diagnose


def carry_out(transaction: Transaction, name: str, command: Command | MarkSteps, before: Plan | None) -> Plan:
    """Carry a command out, within an open transaction, that fits the plan and is normal.

    One that changes nothing is not dispatched: it is not a change of what is kept beside the plan, either.

    Args:
        transaction: The session's.
        name: Who sends it, for the message.
        command: The command, as its handler returned it.
        before: The plan as the transaction has it.

    Returns:
        The resulting plan.

    Raises:
        ToolError: The session's reducers did not take it.
    """
    if before is not None and changes_nothing(command, before):
        return before
    transaction.dispatch(command)
    plan = transaction.latest(Plan)
    # Reducers build a new plan for every other command that fits it: the old one here means that it did not,
    # or that another reducer replaced ours, and nothing was carried out.
    if plan is None or plan is before:
        raise ToolError(f"{name} was not carried out: the session's reducers did not take it")
    return plan


def _steering_of(session: Session, transaction: Transaction) -> Steering | None:
    """What a section without a policy keeps to: what others demand here, or a plan that was submitted."""
    facts = transaction.latest(PlanFacts) if PlanFacts in transaction.slices else None
    if session.companion(Policies).policy is None and (facts is None or facts.approval == "none"):
        return None
    from planning.suite.steering import WITHOUT_POLICY  # noqa: PLC0415 - as in ``register_plan``

    return WITHOUT_POLICY


def _in_transaction(
    found: SessionOfCall, name: str, handler: Handler, steering: Steering | None = None
) -> Callable[[Any, ToolContext], Any]:
    """A tool function that checks a command and carries it out in one transaction."""
    reads = handler is handlers.read_plan
    patience = PATIENCE if reads else None

    def run(params: Any, context: ToolContext, accepted: Accepted | None = None) -> ToolResult:
        session = found.fixed
        if session is None or context.session is not session:
            session = _session_of(found, name, context)
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
            by = steering or _steering_of(session, transaction)
            if by is None:
                sent, command = params, handler(params, before)
                plan = carry_out(transaction, name, command, before)
                message = reply(command, plan, before)
            else:
                sent, command, plan, entailed, message = by.carry_out(
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
            if framework.get() is not None:
                sign(transaction)
        return result

    def read(params: Command, context: ToolContext) -> ToolResult:
        """Read the plan; also where the store does not record that, because it is busy or cannot be written.

        What the store cannot even read, such as a file that another was written over, is no answer.
        """
        try:
            return run(params, context)
        except StoreError:
            session = _session_of(found, name, context)
            started = perf_counter()
            with suppress(StoreBusy):
                session.refresh(PATIENCE)
            plan: Any = session.select_latest(Plan)
            command = handler(params, plan)  # refuses where there is none
            message = reply(command, plan, plan, session.select_latest(PlanFacts))
            return ToolResult(True, message, plan, None, None, perf_counter() - started)

    if reads:
        return read
    if handler is handlers.mark and steering is not None and steering.policy.verify is not None:
        return _asking(found, name, steering, run)
    return run


def _asking(
    found: SessionOfCall,
    name: str,
    steering: Steering,
    run: Callable[[Any, ToolContext, Accepted], ToolResult],
) -> Callable[[Any, ToolContext], Any]:
    """A tool function that marks steps after the host's ``verify`` was asked, outside of any transaction."""

    def ask(params: Any, context: ToolContext) -> ToolResult:
        session = _session_of(found, name, context)
        return run(params, context, steering.verified(steering.questions(params, session)))

    async def ask_async(params: Any, context: ToolContext) -> ToolResult:
        session = _session_of(found, name, context)
        questions = await session.off_loop(partial(steering.questions, params, session))
        accepted = await steering.averified(questions)
        return await session.off_loop(partial(run, params, context, accepted))

    return ask_async if steering.is_async else ask
