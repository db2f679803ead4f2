"""Recorded answers of a model to questions about the shop, with the mistakes that models make."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

__all__ = ["DEFAULT_QUESTION", "QUESTIONS", "recorded_sql"]

DEFAULT_QUESTION: Final = "Which customers spent the most?"
"""The question that shows most: its first statement is wrong."""

_SPENT: Final = """\
SELECT customers.{name}, sum(order_totals.total) AS spent
FROM customers
JOIN order_totals ON order_totals.customer_id = customers.id
GROUP BY customers.id
ORDER BY spent DESC
LIMIT 3"""
_OPEN: Final = """\
SELECT orders.id, customers.name, orders.ordered_on
FROM orders
JOIN customers ON customers.id = orders.customer_id
WHERE orders.status = '{status}'
ORDER BY orders.ordered_on"""

_RECORDED: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType({
    # A column that is not there, and then the one that is.
    DEFAULT_QUESTION: (_SPENT.format(name="nmae"), _SPENT.format(name="name")),
    "How many customers are there?": ("SELECT count(*) AS customers FROM customers",),
    # No row has this status; the schema's sample values show how it is written.
    "Which orders are still open?": (_OPEN.format(status="Open"), _OPEN.format(status="open")),
    "Which products were never ordered?": (
        """\
SELECT name
FROM products
WHERE id NOT IN (SELECT product_id FROM order_items)""",
    ),
    "What does each product cost?": (
        """\
SELECT name, "unit price"
FROM products
ORDER BY "unit price" DESC, name""",
    ),
    "How much was sold in each month?": (
        """\
SELECT substr(ordered_on, 1, 7) AS month, count(*) AS orders, sum(total) AS sold
FROM orders
JOIN order_totals ON order_totals.order_id = orders.id
GROUP BY month
ORDER BY month""",
    ),
    "Which customers have no email address?": (
        """\
SELECT customers.name, email, cities.name AS city
FROM customers
JOIN cities ON cities.id = customers.city_id
WHERE email IS NULL
ORDER BY customers.name""",
    ),
    # There are none, and that is the answer.
    "Which customers live in Oslo?": (
        """\
SELECT customers.name
FROM customers
JOIN cities ON cities.id = customers.city_id
WHERE cities.name = 'Oslo'""",
    ),
})  # fmt: skip

QUESTIONS: Final = tuple(_RECORDED)
"""The questions that are recorded."""

_WORD: Final = re.compile(r"\w+")


def _words(question: str) -> str:
    return " ".join(_WORD.findall(question.lower()))


_BY_WORDS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {_words(question): statements for question, statements in _RECORDED.items()}
)


def recorded_sql(
    question: str,
    schema: str,  # noqa: ARG001 - what any generator is given
    attempts: Sequence[Mapping[str, Any]] = (),
) -> str | dict[str, Any]:
    """Write the SQL for a recorded question: a generator without a model.

    Args:
        question: One of ``QUESTIONS``; upper and lower case, blanks and punctuation are the same.
        schema: Passed over.
        attempts: What was tried and did not do.

    Returns:
        The statement that was recorded for this attempt, or else the last one. For any other question, the
        question which one of these it is.
    """
    statements = _BY_WORDS.get(_words(question))
    if statements is None:
        listed = "\n".join(f"- {each}" for each in QUESTIONS)
        asked = f"No model is asked here; the recorded questions are:\n{listed}\nWhich of them is it?"
        return {"needs_user_input": True, "input_request": asked}
    return statements[min(len(attempts), len(statements) - 1)]
