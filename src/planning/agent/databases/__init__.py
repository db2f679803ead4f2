"""Databases that the agent can ask: the ``Database`` protocol, and files of SQLite and DuckDB behind it."""
