"""SQLite: its errors explained, and where it answers wrongly without one."""

from __future__ import annotations

from planning.agent.databases.base import Names, Probe, Tables
from planning.agent.sql.aggregates import arbitrary_column
from planning.agent.sql.diagnosis import diagnose
from planning.agent.sql.traps import trap

__all__ = ["explain", "wrong_answer"]

_NAME = "sqlite"


def explain(text: str, sql: str, names: Names, probe: Probe) -> str:
    """Why a statement failed; see ``Engine.explain``."""
    return diagnose(text, sql, _NAME, names, probe)


def wrong_answer(sql: str, tables: Tables) -> str | None:
    """Why an answer is not what was asked; see ``Engine.wrong_answer``."""
    return trap(sql, _NAME) or arbitrary_column(sql, tables)
