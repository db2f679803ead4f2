"""The contestants: one module per peer, each with its ``DOORS``."""

from benchmarks.door import Door
from benchmarks.peers import (
    floor,
    ours,
    peer_agentscope,
    peer_langchain,
    peer_pydantic_ai,
    peer_weakincentives,
)

__all__ = ["ALL_DOORS"]

ALL_DOORS: tuple[Door, ...] = (
    *floor.DOORS,
    *ours.DOORS,
    *peer_weakincentives.DOORS,
    *peer_agentscope.DOORS,
    *peer_langchain.DOORS,
    *peer_pydantic_ai.DOORS,
)
