"""How many characters a model pays to take a plan of twenty steps to its end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import accumulate

__all__ = ["OBJECTIVE", "TITLES", "Conversation", "Exchange", "compact"]

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
"""The twenty steps, the same words for every peer."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One tool call of the model, and what it got back."""

    name: str
    arguments: str
    result: str

    @property
    def characters(self) -> int:
        """What the exchange adds to the history."""
        return len(self.name) + len(self.arguments) + len(self.result)


@dataclass(slots=True)
class Conversation:
    """Everything about a plan that passes through the model, from the prompt to the last result.

    Attributes:
        name: Whose tools were used, and how.
        package: The distribution that they come from.
        prompt: What the tools add to the system prompt.
        tools: The tool definitions as a chat-completions provider gets them, as compact JSON.
        exchanges: The calls with their results, in order.
    """

    name: str
    package: str
    prompt: str
    tools: str
    exchanges: list[Exchange] = field(default_factory=list)

    def add(self, name: str, arguments: Mapping[str, object], result: str) -> None:
        """Append a call, its arguments as compact JSON, and its result."""
        self.exchanges.append(Exchange(name, compact(arguments), result))

    @property
    def fixed(self) -> int:
        """The characters that every request starts with."""
        return len(self.prompt) + len(self.tools)

    @property
    def calls(self) -> int:
        """The characters that the model writes: names and arguments."""
        return sum(len(exchange.name) + len(exchange.arguments) for exchange in self.exchanges)

    @property
    def results(self) -> int:
        """The characters that the model is told in answer."""
        return sum(len(exchange.result) for exchange in self.exchanges)

    @property
    def total(self) -> int:
        """Everything once, as it stands in the history at the end."""
        return self.fixed + self.calls + self.results

    @property
    def billed(self) -> int:
        """The input of all requests added up: one before each call and one after the last result.

        Each request carries the prompt, the tools and all exchanges before it, as it does without a
        provider's prompt cache.
        """
        history = accumulate((exchange.characters for exchange in self.exchanges), initial=0)
        return sum(self.fixed + before for before in history)


def compact(value: object) -> str:
    """JSON without spaces: what a provider is sent, and the least that a model could write."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
