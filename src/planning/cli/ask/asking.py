"""One question, asked: the database opened, the graph run, and shown meanwhile."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType
from typing import Any, Final, NoReturn

import attrs

from planning.agent.chat import OpenAIChat
from planning.agent.graph import build_text_to_sql_graph
from planning.agent.sql.database import SqlDatabase
from planning.cli.ask.statements import given_in_turn
from planning.cli.ask.views import View, view_of
from planning.cli.printable import printable
from planning.errors import ToolError
from planning.model import Plan
from session import Session

__all__ = ["NothingAsked", "Order", "ask_order"]

_TERMINATED: Final = 143


class NothingAsked(Exception):
    """Nothing could be asked; the text says why, on one line."""


@attrs.frozen(kw_only=True)
class Order:
    """What is asked of whom.

    Attributes:
        question: The question.
        database: The path or URL of the database.
        model: The model that writes the SQL; None with ``statements``.
        base_url: Where its server is; None for the official one.
        statements: The SQL of each attempt, instead of a model.
        is_json: Whether only the final state is printed, as JSON.
        max_rows: How many rows are read at most.
        timeout: Seconds that a statement may take.
        samples: How many values of each column the schema shows.
    """

    question: str
    database: str
    model: str | None
    base_url: str | None
    statements: tuple[str, ...]
    is_json: bool
    max_rows: int
    timeout: float
    samples: int


def ask_order(order: Order) -> bool:
    """Ask, and show what comes of it.

    Returns:
        Whether the question was answered.

    Raises:
        NothingAsked: It could not be asked.
        OSError: The output cannot be written.
    """
    with _writing_to_pipes(), _ending_when_told(), ExitStack() as stack:
        database, generate = _prepared(order, stack)
        view = stack.enter_context(view_of(order.question, is_json=order.is_json))
        return _asked(order, database, generate, view)


def _prepared(order: Order, stack: ExitStack) -> tuple[SqlDatabase, Callable[..., Any]]:
    """The database, which can be read, and what writes the SQL."""
    try:
        database = stack.enter_context(
            SqlDatabase(
                order.database,
                timeout=order.timeout,
                max_rows=order.max_rows,
                samples=order.samples,
            )
        )
        generate = _generator(order, database, stack)
        database.get_schema()  # a wrong file is told of as that, and not as a question without an answer
    except (ToolError, ValueError, ImportError) as error:
        raise NothingAsked(printable(" ".join(str(error).split()))) from None
    return database, generate


def _generator(order: Order, database: SqlDatabase, stack: ExitStack) -> Callable[..., Any]:
    if order.model is None:
        return given_in_turn(order.statements)
    return stack.enter_context(OpenAIChat(order.model, order.base_url, dialect=database.dialect))


def _asked(order: Order, database: SqlDatabase, generate: Callable[..., Any], view: View) -> bool:
    session = Session()
    graph = build_text_to_sql_graph(database, generate, session=session)
    state: dict[str, Any] = {}
    for each in graph.stream({"resolved_query": order.question}, stream_mode="values"):
        state = dict(each)
        view.changed(session.select_latest(Plan), state)
    view.end(state)
    return state.get("success") is True


@contextmanager
def _writing_to_pipes() -> Iterator[None]:
    """Let a write to a closed pipe be an error while there are sockets and worker processes.

    One to standard output ends the process as it does elsewhere, once everything is put away.
    """
    if not hasattr(signal, "SIGPIPE") or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    try:
        yield
    except BrokenPipeError:
        signal.signal(signal.SIGPIPE, before)
        os.kill(os.getpid(), signal.SIGPIPE)
        raise
    finally:
        signal.signal(signal.SIGPIPE, before)


@contextmanager
def _ending_when_told() -> Iterator[None]:
    """Put everything away at a termination signal too."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(_number: int, _frame: FrameType | None) -> NoReturn:
        raise SystemExit(_TERMINATED)

    before = signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
