"""Databases that the agent can ask: the ``Database`` protocol; SQLite, DuckDB and PostgreSQL behind it."""
