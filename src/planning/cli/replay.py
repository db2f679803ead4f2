"""The replay of a transcript's planning calls: what became of each, as values."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import attrs

from planning.cli.messages import Call
from planning.commands import Command
from planning.model import Plan
from planning.prompt import PlanningToolsSection
from planning.tools import Toolbox
from session import select_latest

__all__ = ["Changed", "PassedOver", "Read", "Record", "Refused", "Tally", "replay"]

_PREFIX = "planning_"


@attrs.frozen
class Changed:
    """A call that was carried out.

    Attributes:
        command: What was carried out, normalised.
        before: The plan before; None when there was none.
        plan: The plan after.
    """

    command: Command
    before: Plan | None
    plan: Plan


@attrs.frozen
class Read:
    """A call that read the plan.

    Attributes:
        plan: What was read.
    """

    plan: Plan


@attrs.frozen
class Refused:
    """A call that was refused; nothing changed.

    Attributes:
        name: The tool that was called.
        reason: Why, and what to send instead.
    """

    name: str
    reason: str


@attrs.frozen
class PassedOver:
    """A call to a tool that is none of planning's.

    Attributes:
        name: The tool that was called.
    """

    name: str


Record = Changed | Read | Refused | PassedOver


@attrs.frozen
class Tally:
    """How many calls there were of each kind.

    Attributes:
        carried_out: Calls that changed the plan or read it.
        refused: Calls that were refused.
        passed_over: Calls to other tools.
    """

    carried_out: int = 0
    refused: int = 0
    passed_over: int = 0

    def after(self, record: Record) -> Tally:
        """The tally with one record more."""
        match record:
            case Refused():
                return attrs.evolve(self, refused=self.refused + 1)
            case PassedOver():
                return attrs.evolve(self, passed_over=self.passed_over + 1)
            case _:
                return attrs.evolve(self, carried_out=self.carried_out + 1)

    def __str__(self) -> str:
        calls = self.carried_out + self.refused
        line = f"{_count(calls, 'planning call')}: {self.carried_out} carried out, {self.refused} refused."
        if self.passed_over:
            line += f" Passed over {_count(self.passed_over, 'call')} to other tools."
        return line


def replay(calls: Iterable[Call], section: PlanningToolsSection) -> Iterator[Record]:
    """Carry out calls one by one, each when its record is asked for.

    Args:
        calls: The calls of a transcript.
        section: Whose tools to call; the plan is in its session.
    """
    session = section.session
    toolbox = Toolbox(section.tools(), session=session)
    for call in calls:
        if not call.name.startswith(_PREFIX):
            yield PassedOver(call.name)
            continue
        before = select_latest(session, Plan)
        result = toolbox.call(call.name, call.arguments)
        plan = select_latest(session, Plan)
        if not result.success or plan is None:
            yield Refused(call.name, result.error or result.message)
        elif isinstance(result.value, Plan):
            yield Read(result.value)
        else:
            yield Changed(result.value, before, plan)


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"
