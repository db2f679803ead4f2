"""What every contestant shows: one way to mark one step of a plan, and the characters of a whole plan."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

__all__ = [
    "COMPLETED",
    "DONE",
    "OBJECTIVE",
    "TITLES",
    "Conversation",
    "Door",
    "Prepared",
    "compact",
    "middle",
    "title",
]

DONE: tuple[Literal["done"], Literal["in_progress"]] = ("done", "in_progress")
"""Marks set these in turn: each is a change, and every other one finishes the step."""
COMPLETED = ("completed", "in_progress")
"""The same two for peers that call a finished step completed."""
OBJECTIVE = "Move the billing service to the new invoice schema without losing a payment"
TITLES = (
    "Read the current invoice schema and list its consumers",
    "Write down the fields that the new schema drops",
    "Agree on the mapping of legacy tax codes with finance",
    "Add the new invoice tables behind a feature flag",
    "Generate typed models from the new invoice schema",
    "Port the invoice repository to the generated models",
    "Write every new invoice to both schemas at once",
    "Compare both copies of an invoice in a nightly job",
    "Backfill paid invoices from the last two years",
    "Backfill open invoices in batches of one thousand",
    "Reconcile backfilled totals against the ledger",
    "Switch the customer portal to read the new tables",
    "Switch the payment webhook to read the new tables",
    "Switch the monthly finance export to the new tables",
    "Run the full regression suite against staging",
    "Rehearse the rollback on a copy of production data",
    "Turn the feature flag on for one percent of accounts",
    "Turn the feature flag on for all remaining accounts",
    "Stop writing to the old tables and archive them",
    "Publish the migration notes and close the project",
)
"""The steps of the plan that is taken to its end, the same words for every peer."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A plan in memory, ready to be marked.

    Attributes:
        mark: Performs the n-th mark on the middle step; a coroutine function where the door is async.
        statuses: Reads the status of every step back the way a user of the peer reads it.
    """

    mark: Callable[[int], object]
    statuses: Callable[[], Sequence[str] | Awaitable[Sequence[str]]]


@dataclass(frozen=True, slots=True)
class Door:
    """One public way into one planning tool.

    Attributes:
        name: The name in the tables.
        description: What one mark runs through, from the first call to the state read back.
        prepare: Builds a fresh plan of so many steps, all pending; may be a coroutine function.
        words: The statuses that its marks set in turn.
        is_async: Whether ``mark`` must be awaited.
    """

    name: str
    description: str
    prepare: Callable[[int], Prepared | Awaitable[Prepared]]
    words: tuple[str, str] = DONE
    is_async: bool = False


def middle(steps: int) -> int:
    """The index of the marked step: the middle, so that a scan from either end costs its mean."""
    return steps // 2


def title(index: int) -> str:
    """The title of a step; the same text for every peer."""
    return f"Carry out part {index + 1} of the migration"


@dataclass(slots=True)
class Conversation:
    """The characters of a plan that pass through the model, from the prompt to the last result.

    Attributes:
        prompt: Of what the tools add to the system prompt.
        schemas: Of the tool definitions as a chat-completions provider gets them, as compact JSON.
        calls: Of what the model writes: names and arguments.
        results: Of the answers that the model reads.
    """

    prompt: int
    schemas: int
    calls: int = 0
    results: int = 0

    def add(self, name: str, arguments: Mapping[str, object], result: str) -> None:
        """Count a call and its result."""
        self.calls += len(name) + len(compact(arguments))
        self.results += len(result)

    @property
    def total(self) -> int:
        """Everything once, as it is in the history at the end."""
        return self.prompt + self.schemas + self.calls + self.results


def compact(value: object) -> str:
    """JSON without spaces: what a provider is sent, and the least that a model could write."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
