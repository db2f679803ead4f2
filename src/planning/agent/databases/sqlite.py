"""SQLite: its errors explained, and where it answers wrongly without one."""

from __future__ import annotations

from planning.agent.databases.base import Probe, Tables
from planning.agent.sql.answers import wrong_answer as find_wrong
from planning.agent.sql.diagnosis import diagnose

__all__ = ["explain", "wrong_answer"]

_NAME = "sqlite"


def explain(text: str, sql: str, tables: Tables, probe: Probe) -> str:
    """Why a statement failed; see ``Engine.explain``."""
    return diagnose(text, sql, _NAME, tables, probe)


def wrong_answer(sql: str, tables: Tables) -> str | None:
    """Why an answer is not what was asked; see ``Engine.wrong_answer``."""
    return find_wrong(sql, _NAME, tables)
