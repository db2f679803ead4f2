"""The progress of the plans of a session and of its children, as a tree."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

import attrs

from planning.plan.model import Plan, PlanStatus
from planning.plan.text import as_data
from session import Session, SessionId

_DEEPEST = 20  # levels that are indented: more would make the text of a long chain quadratic


@attrs.frozen
class FamilyProgress:
    """The progress of a session's plan and of those of its children; its text is one line per session.

    Attributes:
        session_id: The session.
        objective: The plan's objective; None without a plan.
        status: The plan's status; None without a plan.
        done: How many steps of the session's own plan are done.
        total: How many steps the session's own plan has.
        totals: ``(done, total)`` of the session and all sessions below it together.
        children: Its open children, oldest first.
    """

    session_id: SessionId
    objective: str | None
    status: PlanStatus | None
    done: int
    total: int
    totals: tuple[int, int]
    children: tuple[FamilyProgress, ...] = attrs.field(repr=lambda children: f"<{len(children)}>")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FamilyProgress) and [*self._rows()] == [*other._rows()]

    def __hash__(self) -> int:
        return hash((self.session_id, self.objective, self.totals))

    def __str__(self) -> str:
        return "\n".join(f"{'  ' * min(depth, _DEEPEST)}{line}" for depth, line in self._rows())

    def _rows(self) -> Iterator[tuple[int, str]]:
        """Each session before its children: its depth and its line; without recursion, as all of this."""
        waiting = [(0, self)]
        while waiting:
            depth, one = waiting.pop()
            plan = f"{one.status}, {one.done} of {one.total} done" if one.status else "no plan"
            below = f" ({one.totals[0]} of {one.totals[1]} with children)" if one.children else ""
            objective = f": {as_data(one.objective)}" if one.objective else ""
            yield depth, f"{one.session_id}: {plan}{below}{objective}"
            waiting.extend((depth + 1, child) for child in reversed(one.children))


def family_progress(session: Session) -> FamilyProgress:
    """The progress of the plans of a session and of its open descendants, in linear time.

    Args:
        session: The session at the top. Each session is read as it is in this process.

    Raises:
        StoreError: A plan in a store cannot be read.
    """
    found = [(session, session.children)]
    for _, children in found:
        found += [(child, child.children) for child in children]
    built = deque[FamilyProgress]()
    for one, children in reversed(found):  # the last session with children finds them first in ``built``
        plan = one.select_latest(Plan)
        objective, status = (plan.objective, plan.status) if plan else (None, None)
        statuses = [step.status for step in plan.steps] if plan else []
        totals = done, total = statuses.count("done"), len(statuses)
        below = tuple([built.popleft() for _ in children][::-1]) if children else ()
        for child in below:
            totals = totals[0] + child.totals[0], totals[1] + child.totals[1]
        built.append(FamilyProgress(one.session_id, objective, status, done, total, totals, below))
    return built.pop()
