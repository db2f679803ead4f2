"""``planning ask``: a question to a database, answered with SQL."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from planning.cli.source import name_of, read_text
from planning.cli.terminal import HEADING, Line, as_json, columns, count, lines_of
from planning.cli.usage import Refused, bad_option
from planning.errors import printable

if TYPE_CHECKING:
    from planning.agent.databases.files import SqlDatabase
    from session import Session

__all__ = ["ASK_HELP", "answer_lines", "ask"]

# \b keeps a paragraph as it is written.
ASK_HELP: Final = """\b
Examples:
  planning ask "Who spent the most?" --db shop.db --model gpt-4.1
  planning ask "Who spent the most?" --db shop.db --model qwen3 \\
      --base-url http://127.0.0.1:8000/v1
  planning ask --db shop.db --sql-from query.sql --json > result.json

\b
Who writes the SQL:
  With --model, a model on any server of the chat-completions protocol
  does. The key is read from OPENAI_API_KEY; a server that --base-url
  names may need none. With --sql-from, the SQL is in a file: one
  statement, or one for each attempt, with lines of three dashes
  between them.

\b
What is safe:
  The database is only read, whatever the SQL says. A model is sent the
  schema, with a few values of each column unless --no-samples is
  given; and after a mistake, the message about it.
"""
_SAMPLES: Final = 3
_MOST_ROWS: Final = 1_000
_TIMEOUT: Final = 5.0
_LINE_BETWEEN: Final = re.compile(r"^[ \t]*---[ \t]*\r?$", re.MULTILINE)
_SQL_ALONE: Final = "What does this SQL return?"


def ask(
    question: Annotated[
        str | None,
        typer.Argument(metavar="QUESTION", help="What you want to know; may be omitted with --sql-from."),
    ] = None,
    *,
    db: Annotated[str | None, typer.Option(metavar="FILE", help="The database, SQLite or DuckDB.")] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="The model that writes the SQL.")] = None,
    base_url: Annotated[str | None, typer.Option(metavar="URL", help="Where the model's server is.")] = None,
    sql_from: Annotated[
        str | None, typer.Option(metavar="FILE", help="The SQL, instead of a model; - for standard input.")
    ] = None,
    as_json_: Annotated[
        bool, typer.Option("--json", help="Print the final state as JSON, nothing else.")
    ] = False,
    max_rows: Annotated[int, typer.Option(min=1, metavar="N", help="Read at most N rows.")] = _MOST_ROWS,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long a statement may run.")
    ] = _TIMEOUT,
    no_samples: Annotated[
        bool, typer.Option("--no-samples", help="Keep the values in the database out of the schema.")
    ] = False,
) -> None:
    """Ask a database a question: see the SQL, and the rows it returns.

    A statement that is wrong, or that returns nothing, goes back with the reason, and another one is
    written.
    """
    path = _check(question, db=db, model=model, base_url=base_url, sql_from=sql_from)
    statements = () if sql_from is None else _read_statements(sql_from)
    try:
        from planning.agent.databases.files import SqlDatabase
        from planning.agent.graph import build_text_to_sql_graph
    except ImportError as error:
        raise Refused(str(error)) from None
    from planning.errors import ToolError
    from session import Session

    session = Session()
    with ExitStack() as stack:
        try:
            database = stack.enter_context(
                SqlDatabase(path, timeout=timeout, max_rows=max_rows, samples=0 if no_samples else _SAMPLES)
            )
            generate = _generator(model, base_url, statements, database, stack)
            database.get_schema()  # a wrong file is an error of its own, and not of the question
        except (ToolError, ValueError, ImportError) as error:
            raise Refused(printable(" ".join(str(error).split()))) from None
        graph = build_text_to_sql_graph(database, generate, session=session)
        asked = question or _SQL_ALONE
        states = graph.stream({"resolved_query": asked}, stream_mode="values")
        is_answered = _shown(asked, states, session, is_json=as_json_)
    if not is_answered:
        raise typer.Exit(1)


def _check(
    question: str | None, *, db: str | None, model: str | None, base_url: str | None, sql_from: str | None
) -> str:
    """Refuse options that do not go together.

    Returns:
        The path of the database.

    Raises:
        BadParameter: They do not.
    """
    if db is None:
        raise bad_option("--db", "name the database to ask: --db FILE")
    if (model is None) == (sql_from is None):
        raise bad_option("--model", "say where the SQL comes from: either --model NAME or --sql-from FILE")
    if base_url is not None and model is None:
        raise bad_option("--base-url", "it needs --model, the name of a model there")
    if sql_from is None and not (question and question.strip()):
        raise bad_option("QUESTION", "say what you want to know")
    if "://" not in db and not Path(db).exists():
        raise Refused(f"there is no database at {printable(db)}; check the path")
    return db


def _read_statements(path: str) -> tuple[str, ...]:
    """The statements of a file, which lines of three dashes separate."""
    parts = _LINE_BETWEEN.split(read_text(path, "--sql-from"))
    statements = tuple(each.strip() for each in parts if each.strip())
    if not statements:
        raise Refused(f"{name_of(path)} holds no SQL; write a SELECT")
    return statements


def _generator(
    model: str | None,
    base_url: str | None,
    statements: Sequence[str],
    database: SqlDatabase,
    stack: ExitStack,
) -> Callable[..., Any]:
    """What writes the SQL: the file, one statement at each attempt, or a model."""
    if model is None:
        return lambda attempts: statements[min(len(attempts), len(statements) - 1)]
    from planning.agent.chat import OpenAIChat

    return stack.enter_context(OpenAIChat(model, base_url, dialect=database.dialect))


def _shown(question: str, states: Iterable[Mapping[str, Any]], session: Session, *, is_json: bool) -> bool:
    """Show the states of a question as they come, and the answer; returns whether there is one."""
    from planning.cli.faces import face_of
    from planning.cli.progress import Progress
    from planning.model import Plan

    progress = Progress(question)
    state: Mapping[str, Any] = {}
    with face_of(sys.stdout, progress, is_json=is_json) as face:
        for each in states:
            state = each
            plan = session.select_latest(Plan)
            if plan is not progress.plan:
                face.show(progress.take_plan(plan))
        face.end((), answer_lines(state, columns(sys.stdout)))
    if is_json:
        typer.echo(as_json(state))
    return state.get("success") is True


def answer_lines(state: Mapping[str, Any], width: int | None = None) -> list[Line]:
    """The answer to a question: the SQL, and the rows, or why there are none.

    Args:
        state: The final state of the graph.
        width: The columns of the terminal; None where nothing is cut.
    """
    lines: list[Line] = []
    if state.get("sql_query") is not None:
        lines += [("SQL", HEADING), *((line, "cyan") for line in lines_of(state["sql_query"]))]
    if state.get("success") is True:
        return [*lines, ("Rows", HEADING), *_row_lines(state.get("execution_result") or {}, width)]
    what = "Question back" if state.get("needs_user_input") else "No answer"
    answer = str(state.get("answer") or "There is no answer.")
    return [*lines, (what, HEADING), *((line, "") for line in lines_of(answer))]


def _row_lines(result: Mapping[str, Any], width: int | None) -> list[Line]:
    """The rows of a result, how many there are, and what is not shown of them."""
    from planning.cli.table import MOST_ROWS, laid_out

    rows = result.get("data") or ()
    columns = [str(name) for name in result.get("columns") or ()]
    (names, *body), shown = laid_out(columns, rows, width)
    lines: list[Line] = [(names, "bold"), *((line, "") for line in body)]
    notes = [f"... {count(len(rows) - MOST_ROWS, 'more row')}"] if len(rows) > MOST_ROWS else []
    if result.get("truncated"):
        notes.append(f"the first {count(len(rows), 'row')}; there are more, see --max-rows")
    else:
        notes.append(count(len(rows), "row") if rows else "no rows")
    if shown < len(columns):
        notes.append(f"{shown} of {len(columns)} columns had room; --json shows all of them")
    return [*lines, ("", ""), *((note, "dim") for note in notes)]
