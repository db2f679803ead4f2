"""A small shop to ask questions about: its database, and recorded SQL, so that no model is needed.

``create_database`` makes the database; ``recorded_sql`` returns the SQL for the questions in ``QUESTIONS``.
On the command line, from the repository:

    python examples/shop/data.py shop.db
    planning ask "Which customers spent the most?" --db shop.db --sql-from examples/shop/spent_most.sql
"""

from examples.shop.data import create_database
from examples.shop.recorded import DEFAULT_QUESTION, QUESTIONS, recorded_sql

__all__ = ["DEFAULT_QUESTION", "QUESTIONS", "create_database", "recorded_sql"]
