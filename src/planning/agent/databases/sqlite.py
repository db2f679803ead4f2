"""SQLite: what it refuses, how it explains itself, and where it answers wrongly without an error."""

from __future__ import annotations

from planning.agent.databases.base import Names, Probe, Tables
from planning.agent.sql import guard
from planning.agent.sql.aggregates import arbitrary_column
from planning.agent.sql.diagnosis import diagnose
from planning.agent.sql.traps import trap

__all__ = ["check", "explain", "wrong_answer"]

_NAME = "sqlite"


def check(sql: object) -> str:
    """The one statement in a text; see ``Engine.check``."""
    return guard.check(sql, _NAME)


def explain(text: str, sql: str, names: Names, probe: Probe) -> str:
    """Why a statement failed; see ``Engine.explain``."""
    return diagnose(text, sql, _NAME, names, probe)


def wrong_answer(sql: str, tables: Tables) -> str | None:
    """Why an answer is not what was asked; see ``Engine.wrong_answer``."""
    return trap(sql, _NAME) or arbitrary_column(sql, tables)
