"""The entry points as a table, and the words in which one list of promises is tested through each of them.

A new framework is a row of ``TABLE`` and a module with its driver: see ``Driver``. What it cannot do is in
its row by the name of the promise, with the sentence that its page has about it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any, Protocol

import attrs
import pytest

from planning import Plan, PlanningToolsSection, PlanPolicy, Toolbox, plan_text
from planning.plan.facts import PlanFacts
from planning.tools import Tool
from session import Rewound, RolledBack, Session, SessionError, select_latest

Call = tuple[str, Any]
"""A tool's name and the arguments; text is sent as it is."""
Turns = Sequence[Sequence[Call]]
READ: Call = ("planning_read_plan", {})
OWN = "You run a shop."
"""The instructions of the host for each framework's agent."""
READING = ("look",)
"""The tools of the agents' own that change nothing."""


def setup(objective: str, *titles: str) -> Call:
    steps = [{"title": each} for each in titles]
    return "planning_setup_plan", {"objective": objective, "initial_steps": steps}


def mark(step_id: str, status: str = "done") -> Call:
    return "planning_mark_step", {"step_id": step_id, "status": status}


def proved(step_id: str, *evidence: str) -> Call:
    return "planning_mark_step", {"step_id": step_id, "status": "done", "evidence": list(evidence)}


SHOP = setup("Open the shop", "Rent a room", "Buy shelves")
OPEN = "Open the shop (active, 0 of 2 done)\nS001 pending: Rent a room\nS002 pending: Buy shelves"
HALF = "Open the shop (active, 1 of 2 done)\nS001 done: Rent a room\nS002 pending: Buy shelves"
OTHER = "Open the shop (active, 1 of 2 done)\nS001 pending: Rent a room\nS002 done: Buy shelves"


def text_of(session: Any) -> str:
    """The plan of a session, or of what a framework gives in its place."""
    plan = select_latest(session, Plan)
    return "" if plan is None else plan_text(plan)


def added_to(message: str) -> str:
    """What a request adds to a message whose own text is one paragraph."""
    return message.partition("\n\n")[2]


def is_success(text: str) -> bool:
    """Whether a text answers a call that was made, where nothing else says so."""
    failures = ("Refused, ", " was not called: ", " could not write: ", " cannot reach ")
    return not any(each in text for each in failures)


def plans_of(*sessions: Any) -> list[tuple[int, int] | None]:
    plans = [session.select_latest(Plan) for session in sessions]
    return [None if plan is None else plan.progress for plan in plans]


def facts_of(session: Any) -> PlanFacts:
    """What a policy knows of the plan of a session."""
    facts: PlanFacts | None = session.select_latest(PlanFacts)
    assert facts is not None
    return facts


def toolbox(session: Any, tools: Iterable[Tool]) -> Toolbox:
    return Toolbox([*PlanningToolsSection(session=session).tools(), *tools], session=session)


def planned() -> PlanningToolsSection:
    section = PlanningToolsSection(session=Session())
    toolbox(section.session, ()).call(*SHOP)
    return section


def plan_after(calls: Iterable[tuple[str, Any]]) -> str:
    """The plan that calls make, in a session of its own."""
    session = Session()
    box = toolbox(session, ())
    for name, arguments in calls:
        box.call(name, arguments)
    return text_of(session)


def refusals(*makes: Callable[[], object]) -> str:
    """What a person reads who does each of these."""
    lines = []
    for make in makes:
        with pytest.raises((TypeError, ValueError, SessionError)) as caught:
            make()
        lines.append(f"{caught.type.__name__}: {caught.value}\n")
    return "".join(lines)


MADE = {
    "langchain": "langchain:PlanningMiddleware",
    "pydantic_ai": "pydantic_ai:Planning",
    "agents": "openai_agents:planning_tools",
    "google.adk": "google_adk:PlanningToolset",
}


def maker(needs: str) -> Any:
    """What gives agents of a framework their plan, by the module that it needs."""
    pytest.importorskip(needs)
    module, _, name = MADE[needs].partition(":")
    return getattr(import_module(f"planning.integrations.{module}"), name)


def rewinds(session: Session) -> int:
    return sum(
        isinstance(each, (Rewound, RolledBack)) for change in session.history() for each in change.events
    )


# A conversation


@attrs.frozen
class Answer:
    """What a model reads of a call."""

    call_id: str
    success: bool
    text: str


@attrs.frozen
class Request:
    """What a model is sent."""

    system: str
    messages: list[str]  # as they are kept, but for the last one
    last: str  # what the last message has behind the text that is kept
    tools: dict[str, tuple[str, Any]]  # the description and the schema of each
    roles: list[str]  # who says each message: user, assistant or tool


class Script:
    """What a model says turn by turn, with ids of its calls; after the last turn it ends the run."""

    def __init__(self, turns: Turns, ids: Iterator[str]) -> None:
        self.left = [[(next(ids), call) for call in turn] for turn in turns]
        self.requests: list[Request] = []
        self.number = 0

    def next(self, request: Request) -> list[tuple[str, Call]]:
        self.requests.append(request)
        self.number += 1
        return self.left.pop(0) if self.left else []


playing: ContextVar[Script] = ContextVar("playing")
"""The script of the running conversation: several conversations with one agent may run at once."""


@attrs.frozen
class Talk:
    """What came of a run; ``after`` continues the conversation from here, see ``Driver.run``."""

    answers: list[Answer]
    requests: list[Request]
    after: Any

    @property
    def texts(self) -> list[str]:
        return [each.text for each in self.answers]


class Driver(Protocol):
    """An agent named ``clerk`` of a framework with our integration, and a model that plays ``playing``."""

    def __init__(
        self,
        session: Any,
        tools: Iterable[Tool] | Toolbox = (),
        policy: PlanPolicy | None = None,
        others: Iterable[Callable[..., Any]] = (),
    ) -> None:
        """Make the agent with a session, or a function that returns one, further tools and a policy.

        A framework's agent has ``others`` as tools of its own, of which ``look`` is named as one that reads.
        """

    async def run(self, before: Any = None) -> tuple[list[Answer], Any]:
        """Run the agent to its end, with a user who says ``Go``.

        Args:
            before: What an earlier run returned as the second value, also of another driver of the class:
                the conversation continues from there. A new conversation if None.

        Returns:
            The answers to the calls of this run, and what continues the conversation.
        """


@attrs.frozen
class EntryPoint:
    """A row of the table.

    Attributes:
        name: Its name.
        driver: The module of the driver, behind ``driver_``, and the class.
        needs: The module of the framework; the tests are skipped without it.
        cannot: The promises that it does not keep, each with what the page says about it.
    """

    name: str
    driver: str
    needs: str
    cannot: Mapping[str, str] = {}

    @property
    def page(self) -> str:
        """Its page in ``docs/frameworks``."""
        module = self.driver.partition(":")[0]
        return f"{(self.name.split('_')[0] if module == 'clients' else module).replace('_', '-')}.md"

    @property
    def keeps_position(self) -> bool:
        """Whether the framework's own state says which session and version it is of."""
        return self.needs in {"langchain", "pydantic_ai", "google.adk"}

    def agent(
        self,
        session: Any,
        tools: Iterable[Tool] | Toolbox = (),
        policy: PlanPolicy | None = None,
        **others: Iterable[Callable[..., Any]],
    ) -> Driver:
        """An agent; skips the test where the framework is not installed."""
        pytest.importorskip(self.needs, reason=f"{self.name} needs {self.needs}")
        module, _, name = self.driver.partition(":")
        made: Driver = getattr(import_module(f"driver_{module}"), name)(session, tools, policy, **others)
        return made

    def play(self, session: Any, turns: Turns, tools: Iterable[Tool] | Toolbox = ()) -> Talk:
        """A new agent, and a conversation with it."""
        return play(self.agent(session, tools), turns)


def play(agent: Driver, turns: Turns, before: Any = None, ids: Iterator[str] | None = None) -> Talk:
    """Play turns with an agent; the ids of the calls are ``call_1`` and so on in each run."""
    return asyncio.run(aplay(agent, turns, before, ids))


async def aplay(agent: Driver, turns: Turns, before: Any = None, ids: Iterator[str] | None = None) -> Talk:
    """The same from async code; conversations at once are tasks of their own."""
    script = Script(turns, ids or (f"call_{number}" for number in count(1)))
    token = playing.set(script)
    try:
        answers, after = await agent.run(before)
    finally:
        playing.reset(token)
    return Talk(answers, script.requests, after)


# The table

COMPARED = (Path(__file__).parents[3] / "docs" / "frameworks" / "compare.md").read_text("utf-8")
PROMISES = re.findall(r"^- \*\*(.+)\*\*: .", COMPARED, re.MULTILINE)
"""What holds through each entry point, by the names that the page has; so has ``test_promises`` the tests."""

BY_HAND = (
    "Dropping or editing messages does not change the plan. To rewind both, keep `session.version` with each "
    "turn, and call `session.rewind(version)`."
)
AS_WITH_OPENAI = (
    "The plan is kept and rewound in the same way as [with the openai client](openai.md#where-the-plan-is)."
)
BY_PYDANTIC_AI = {
    "same id in a turn": "Pydantic AI ends a run when a model gives two calls of one turn the same id."
}
BY_OPENAI_AGENTS = {
    "unknown tool": "and the SDK answers `Tool 'finish' not found.`",
    "rewind": "The plan is not rewound with the conversation",
    "repeated ids": "In one run the SDK expects a different id for each call",
    "same id in a turn": "In one run the SDK expects a different id for each call",
}
NO_CONVERSATION = "A server does not see the conversation, so the plan is not rewound with it"
BY_MCP = {
    "reminder": "Its requests do not end with a reminder",
    "roles": "Its requests do not end with a reminder",
    "not JSON": "if they are not JSON, the call does not reach the server.",
    "rewind": NO_CONVERSATION,
    "truncated": NO_CONVERSATION,
    "foreign": NO_CONVERSATION,
}

BY_ADK = {"not JSON": "ADK's model class reads the arguments"}

BY_HISTORY = {"rewind": "With your own session nothing is rewound, whatever the history", **BY_PYDANTIC_AI}
TABLE = [
    EntryPoint("openai", "clients:Completions", "planning", {"rewind": BY_HAND}),
    EntryPoint("openai_responses", "clients:Responses", "planning", {"rewind": BY_HAND}),
    EntryPoint("anthropic", "clients:Messages", "planning", {"rewind": AS_WITH_OPENAI}),
    EntryPoint("langchain", "langchain:Invoked", "langchain"),
    EntryPoint("langchain_async", "langchain:Awaited", "langchain"),
    EntryPoint("langchain_stream", "langchain:Streamed", "langchain"),
    EntryPoint("pydantic_ai", "pydantic_ai:Run", "pydantic_ai", BY_HISTORY),
    EntryPoint("pydantic_ai_follow_history", "pydantic_ai:Followed", "pydantic_ai", BY_PYDANTIC_AI),
    EntryPoint("openai_agents", "openai_agents:Run", "agents", BY_OPENAI_AGENTS),
    EntryPoint("openai_agents_stream", "openai_agents:Streamed", "agents", BY_OPENAI_AGENTS),
    EntryPoint("google_adk", "google_adk:Run", "google.adk", BY_ADK),
    EntryPoint("google_adk_stream", "google_adk:Streamed", "google.adk", BY_ADK),
    EntryPoint("google_adk_sync", "google_adk:Sync", "google.adk", BY_ADK),
    EntryPoint("mcp", "mcp:Auto", "mcp", BY_MCP),
    EntryPoint("mcp_legacy", "mcp:Legacy", "mcp", BY_MCP),
]


def promise(name: str) -> Callable[[Any], Any]:
    """Test a promise through each entry point that keeps it."""
    if name not in PROMISES:
        raise KeyError(name)
    keeps = [each for each in TABLE if name not in each.cannot]
    through = pytest.mark.parametrize("entry", keeps, ids=[each.name for each in keeps])

    def marked(test: Any) -> Any:
        test.promise = name
        return through(test)

    return marked
