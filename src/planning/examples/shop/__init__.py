"""A small shop to ask questions of: its database, and recorded answers, so that no model is needed.

``create_database`` makes the database, ``recorded_sql`` writes the SQL for the questions in ``QUESTIONS``.
"""

from planning.examples.shop.data import create_database
from planning.examples.shop.recorded import DEFAULT_QUESTION, QUESTIONS, recorded_sql

__all__ = ["DEFAULT_QUESTION", "QUESTIONS", "create_database", "recorded_sql"]
