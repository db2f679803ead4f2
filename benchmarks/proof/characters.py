"""How many characters pass through a model for a plan of twenty steps, taken to its end."""

from __future__ import annotations

from benchmarks.harness import OURS, Section, at_most, table
from benchmarks.peers import ours, with_langchain, with_pydantic_ai, with_weakincentives
from benchmarks.peers.contest import TITLES

__all__ = ["measure"]

LANGCHAIN = "langchain"
MOST = 0.25
CONVERSATIONS = {
    OURS: ours.converse,
    "weakincentives": with_weakincentives.converse,
    "pydantic-ai-harness": with_pydantic_ai.converse,
    LANGCHAIN: with_langchain.converse,
}
METHOD = f"""\
The characters that a model reads and writes to finish a plan of {len(TITLES)} steps. All libraries get the
same titles, and the model marks each step done. The total counts everything once. With LangChain, the model
rewrites the list for each step: one rewrite finishes it and starts the next, which is the least that its
prompt asks for."""


def measure(_rounds: int) -> Section:
    """Hold every conversation."""
    talks = {name: converse() for name, converse in CONVERSATIONS.items()}
    whole = talks[LANGCHAIN].total
    rows = [
        [name, talk.prompt, talk.schemas, talk.calls, talk.results, talk.total, talk.total / whole]
        for name, talk in talks.items()
    ]
    return Section(
        "Characters",
        ("session-planning", "weakincentives", "pydantic-ai-harness", "langchain"),
        [METHOD, table(["tools", "prompt", "schemas", "calls", "results", "total", "of langchain"], rows)],
        [at_most("characters beside langchain", talks[OURS].total / whole, MOST)],
        data={name: talk.total for name, talk in talks.items()},
    )
