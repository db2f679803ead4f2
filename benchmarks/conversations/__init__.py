"""The same twenty steps, taken to their end with the tools of each peer."""

from benchmarks.characters import Conversation
from benchmarks.conversations.with_langchain import converse as langchain
from benchmarks.conversations.with_ours import converse as ours
from benchmarks.conversations.with_pydantic_ai import converse as pydantic_ai
from benchmarks.conversations.with_weakincentives import converse as weakincentives

__all__ = ["hold_conversations"]


def hold_conversations() -> list[Conversation]:
    """Hold every conversation: ours first, then the peers', each in its thrifty and its chatty way."""
    return [
        ours(start_steps=False),
        ours(start_steps=True),
        weakincentives(start_steps=False),
        weakincentives(start_steps=True),
        pydantic_ai(start_steps=False),
        pydantic_ai(start_steps=True),
        langchain(),
    ]
