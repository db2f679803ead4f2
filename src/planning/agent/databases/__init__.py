"""Databases that the agent can ask: the ``Database`` protocol, with SQLite, DuckDB and PostgreSQL behind it."""
