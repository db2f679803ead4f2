"""A database that can only be read: its schema, its answers, and whether these are any good."""

from planning.agent.sql.database import SqlDatabase

__all__ = ["SqlDatabase"]
