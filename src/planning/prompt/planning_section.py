"""The planning section: its text, the six tools, and their reducers."""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from enum import Enum, auto
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from attrs import evolve

from planning.errors import unknown_option
from planning.plan.facts import EvidenceCall, PlanFacts
from planning.plan.model import STEP_STATUSES, Plan, format_id
from planning.plan.render import plan_text
from planning.plan.text import NOTE, OBJECTIVE, TITLE
from planning.policy.gates import Finish, is_stale, open_steps, unfinished
from planning.policy.reducers import AskToFinish, TakeNotice
from planning.prompt.section import Enabled, Section
from planning.suite.events import sign
from planning.suite.kept import demands_on, facts_in
from planning.suite.tools import planning_tools, register_plan
from planning.tools.context import SessionOfCall, SessionSource
from planning.tools.tool import Tool
from session import Session

if TYPE_CHECKING:
    from planning.policy.policy import PlanPolicy


class PlanningStrategy(Enum):
    """A way of working that the planning section asks of a model.

    Each is also found by its name in lower case with hyphens: ``PlanningStrategy("plan-act-reflect")``.
    """

    REACT = auto()
    PLAN_ACT_REFLECT = auto()
    GOAL_DECOMPOSE_ROUTE_SYNTHESISE = auto()

    @classmethod
    def _missing_(cls, value: object) -> PlanningStrategy | None:
        if not isinstance(value, str):
            return None
        name = _SHORT_NAMES.get(value.lower(), value).upper().replace("-", "_")
        return cls.__members__.get(name)


def strategy_of(value: object) -> PlanningStrategy:
    """A strategy, or the one with a name.

    Raises:
        TypeError: It is neither.
        ValueError: No strategy has the name; the message lists the names.
    """
    if not isinstance(value, (PlanningStrategy, str)):
        raise TypeError(f"strategy must be a PlanningStrategy or its name, got {value!r}")
    try:
        return PlanningStrategy(value)
    except ValueError:
        names = [each.name.lower().replace("_", "-") for each in PlanningStrategy]
        raise ValueError(f"strategy: {unknown_option(value, names)}") from None


_SHORT_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {"par": "plan-act-reflect", "gdrs": "goal-decompose-route-synthesise"}
)


_MINDSETS: Final[Mapping[PlanningStrategy, str]] = MappingProxyType({
    PlanningStrategy.REACT: (
        "Work in short rounds: reason, act, observe, repeat. Record what you observe as step notes."
    ),
    PlanningStrategy.PLAN_ACT_REFLECT: (
        "Outline the whole plan first, then act on it step by step. After each tool call or finished step,"
        " reflect in one sentence and append it as a step note."
    ),
    PlanningStrategy.GOAL_DECOMPOSE_ROUTE_SYNTHESISE: (
        "Restate the goal in your own words. Break it into concrete sub-problems, one step each, then choose"
        " the tools for each. At the end, synthesise the results into one coherent answer."
    ),
})  # fmt: skip

_TOOL: Final = re.compile(r"planning_\w+")
_FIRST: Final = "planning_setup_plan"
_WHEN: Final = "Plan work of several steps; answer simple requests directly."
_STATUSES: Final = ", ".join(f"`{status}`" for status in STEP_STATUSES)
_GUIDANCE: Final = (
    f"Start with `planning_setup_plan`: an objective (max {OBJECTIVE.limit} characters) and ordered steps"
    f" (titles max {TITLE.limit}). It replaces any plan.",
    "Append steps with `planning_add_step`; refine one with `planning_update_step`.",
    f"Give the `step_id` when updating or marking: `S###`, such as `{format_id(1)}`, from the tools.",
    f"Track status with `planning_mark_step`: {_STATUSES}. Notes: max {NOTE.limit}.",
    "Recall the plan with `planning_read_plan`.",
    "`planning_clear_plan` discards the plan: only when the goal is dropped.",
    "Be brief. ASCII only.",
)
_EDITS: Final = "Drop a step with `planning_remove_step`; reorder with `planning_move_step`."


def section_body(
    strategy: PlanningStrategy, policy: PlanPolicy | None = None, mindset: str | None = None
) -> str:
    """The section's text below its heading."""
    how = _MINDSETS[strategy] if mindset is None else mindset
    if policy is None:
        return _body([_WHEN, how], _GUIDANCE)
    tools = policy.names
    lines = [kept for line in _GUIDANCE if (kept := _about(line, tools))]
    end = lines.pop() if policy.text == "ascii" else lines.pop().partition(" ASCII")[0]
    first = [_WHEN, how] if _FIRST in tools else [] if mindset is None else [mindset]
    return _body(first, [*lines, *_demands(policy), end])


def _body(paragraphs: Sequence[str], lines: Sequence[str]) -> str:
    guidance = "\n".join([f"{number}. {line}" for number, line in enumerate(lines, start=1)])
    return "\n\n".join([*paragraphs, guidance])


def _demands(policy: PlanPolicy) -> Iterator[str]:
    """The demands of a policy on the agent, as far as it has the tools for them."""
    tools = policy.names
    marks, adds = "planning_mark_step" in tools, not tools.isdisjoint({_FIRST, "planning_add_step"})
    if policy.agent_edits:
        yield from filter(None, [_about(_EDITS, tools)])
    if policy.batch_marks and marks:
        yield "Mark several steps in one call with `marks`."
    if policy.dependencies and adds:
        yield "Where a step must wait for others, name them in `depends_on`."
    if policy.most_in_progress is not None and marks:
        steps = "one step" if policy.most_in_progress == 1 else f"{policy.most_in_progress} steps"
        yield f"Have at most {steps} in progress."
    if policy.evidence is not None and marks:
        texts = ", or text that shows it" if policy.verify is not None else ""
        each = "; one call proves one step" if policy.evidence == "unique" else ""
        yield f"To mark a step done, give `evidence`: calls made since it began, such as `C12`{texts}{each}."
    if policy.approval and adds:
        yield "Work begins when the user has approved the plan. Steps that you add or retitle later wait too."
    if policy.replace is not None and _FIRST in tools:
        yield "Finish a plan before you set up another."


def _own_text(what: str, given: object) -> str:
    if not isinstance(given, str):
        raise TypeError(f"{what} must be a string, got {type(given).__name__}")
    if not given.strip():
        raise ValueError(f"{what} is blank: fill it in, or omit it")
    return given.strip()


def _describe(tools: tuple[Tool, ...], descriptions: Mapping[str, str]) -> tuple[Tool, ...]:
    """The tools, some with a description of the host."""
    names = [tool.name for tool in tools]
    texts = {name: _own_text(f"descriptions[{name!r}]", text) for name, text in descriptions.items()}
    if unknown := [name for name in texts if name not in names]:
        raise ValueError(f"descriptions: {unknown_option(unknown[0], names)}")
    return tuple(
        [evolve(tool, description=texts[tool.name]) if tool.name in texts else tool for tool in tools]
    )


def _about(line: str, tools: Container[str]) -> str:
    """A line without its clauses about other tools; empty when none is left."""
    clauses = [clause for clause in line.split("; ") if all(name in tools for name in _TOOL.findall(clause))]
    kept = "; ".join(clauses)
    return kept and kept[0].upper() + kept[1:].removesuffix(".") + "."


class PlanningToolsSection(Section[None]):
    """Gives an agent a plan: put it into a prompt, and its tools into a toolbox.

    Its text never changes while the agent runs, so that a provider can cache the prompt;
    ``reminder()`` is the live plan, for the end of each request.
    """

    def __init__(
        self,
        *,
        session: SessionSource,
        strategy: PlanningStrategy | str = PlanningStrategy.REACT,
        mindset: str | None = None,
        descriptions: Mapping[str, str] | None = None,
        policy: PlanPolicy | None = None,
        enabled: Enabled = True,
    ) -> None:
        """Register the plan's reducers with a session, and bind the planning tools to it.

        Args:
            session: The session that holds the plan; or a callable without arguments that returns the
                session of the current call, so that one agent serves many: see ``Toolbox``.
            strategy: The strategy in its text, also by its name, such as ``"react"``.
            mindset: Text in place of the strategy's own; the guidance on the tools stays.
            descriptions: Other descriptions of planning tools, by the tools' names.
            policy: What the host demands of the plan; see ``PlanPolicy``.
            enabled: See ``Section``.

        Raises:
            TypeError: ``session``, ``strategy``, ``policy`` or a string has the wrong type.
            ValueError: No strategy or tool has a name; or a string is blank. The message says which.
        """
        if policy is not None:
            from planning.policy.policy import PlanPolicy  # noqa: PLC0415 - few have one

            if not isinstance(policy, PlanPolicy):
                raise TypeError(f"policy must be a PlanPolicy, got {policy!r}")
        super().__init__(title="Planning", enabled=enabled)
        self.strategy = strategy_of(strategy)
        self.mindset = None if mindset is None else _own_text("mindset", mindset)
        self.policy = policy
        self._found = SessionOfCall(session, partial(register_plan, policy=policy))
        if self._found.fixed is not None:
            self._found.prepare(self._found.fixed)
        self._tools = _describe(planning_tools(session, policy), descriptions or {})

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
        return section_body(self.strategy, self.policy, self.mindset)

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
        """The lines of the policy below the plan."""
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
        """Decide whether an agent may finish; call it before the user gets the last answer.

        Without ``finish_gate`` it always may. With it, it may not while steps are open, but may after
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
