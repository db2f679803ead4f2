"""``planning ask``: a question to a database, answered with SQL."""

from __future__ import annotations

import csv
import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from io import StringIO
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Column, Table
from rich.text import Text

from planning.agent.chat import OpenAIChat
from planning.agent.databases.files import SqlDatabase
from planning.cli.faces import face_of
from planning.cli.progress import Progress
from planning.cli.source import name_of, read_text
from planning.cli.terminal import HEADING, Line, as_json, columns, count, is_terminal, lines_of
from planning.cli.usage import Refused, bad_option
from planning.errors import LONGEST_MESSAGE, ToolError, line_of, one_line, printable
from planning.plan.model import Plan
from session import Session
from session.address import is_address

MOST_ROWS: Final = 50
_WIDEST: Final = 120  # columns of a cell if nothing else bounds it
_NARROW: Final = 10  # columns below which text says little: a date has ten
_LONGEST: Final = 1_000  # characters of text that are read
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")
_NUMBER: Final = re.compile(r"[+-]?(inf|nan|\d+(\.\d*)?(e[+-]?\d+)?|\.\d+)", re.IGNORECASE)
_NO_END: Final = 1_000_000  # columns


def laid_out(names: Sequence[str], rows: Sequence[Sequence[Any]], width: int | None) -> tuple[list[str], int]:
    """Lay out rows as a table. NULL is not text: text that reads so is in quotes."""
    rows, wide = rows[:MOST_ROWS], _NO_END if width is None else width
    shown = names[: max(1, wide // _NARROW)]
    columns = list[Column]()
    for place, name in enumerate(shown):
        is_number = all(isinstance(row[place], (int, float, type(None))) for row in rows)  # never cut
        column = Column(_line_text(one_line(name)), no_wrap=is_number, max_width=_WIDEST)
        column.justify = "right" if is_number and rows else "left"
        columns.append(column)
    table = Table(*columns, box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for row in rows:
        table.add_row(*(_line_text(_cell(value, _LONGEST)) for value in row[: len(shown)]))
    lines = Console(width=wide, color_system=None).render_lines(table, pad=False)
    return ["".join(part.text for part in line).rstrip() for line in lines], len(shown)


def tab_lines(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Rows as lines with tabs between the values, the names first. NULL is written as in a table."""
    yield "\t".join(map(one_line, names)) + "\n"
    for row in rows:
        yield "\t".join(map(_cell, row)) + "\n"


def csv_lines(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> Iterator[str]:
    """Rows as CSV, the names first: strings whole, NULL as nothing.

    Text that a spreadsheet would run as a formula is data: it begins with an apostrophe.
    """
    buffer = StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\r\n")  # before Python 3.13 only these are quoted in a string
    for row in chain([names], rows):
        texts = ("" if value is None else _text_of(value) for value in row)
        writer.writerow(
            f"'{text}" if text.startswith(_FORMULA) and not _NUMBER.fullmatch(text) else text
            for text in texts
        )
        yield buffer.getvalue()[:-2] + "\n"
        buffer.seek(0)
        buffer.truncate()


def _line_text(text: str) -> Text:
    """A printable line as the text of a cell, cut with an ellipsis if it has no room."""
    return Text(text, no_wrap=True, overflow="ellipsis")


def _cell(value: object, limit: int | None = None) -> str:
    """A value on one line; of a long one, so many characters or bytes."""
    if value is None:
        return "NULL"
    if isinstance(value, (bytes, bytearray, memoryview)):
        return _text_of(bytes(value)[:limit])
    text = one_line(_text_of(value)[:limit])
    return "'" + text.replace("'", "''") + "'" if text.strip("'") == "NULL" else text


def _text_of(value: object) -> str:
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"x'{bytes(value).hex()}'"
    is_json = isinstance(value, (bool, list, dict))
    return json.dumps(value, ensure_ascii=False, default=str) if is_json else str(value)


# \b keeps a paragraph as it is written.
ASK_HELP: Final = """\b
Examples:
  planning ask "Who spent the most?" --db shop.db --model gpt-4.1
  planning ask "Who spent the most?" --db shop.db --model qwen3 \\
      --base-url http://127.0.0.1:8000/v1
  planning ask --db shop.db --sql-from query.sql --csv > spent.csv
  planning ask --db shop.db --sql-from query.sql --json > result.json

\b
What it prints:
  In a terminal, the steps, the SQL and the rows as a table. Elsewhere
  only the rows, with tabs between the values and the names of the
  columns first; the steps, the SQL and why there is no answer are on
  standard error. --csv prints the rows as CSV, in a terminal too;
  text that a spreadsheet would run as a formula gets an apostrophe.

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
_MODEL_TIMEOUT: Final = 60.0
_LINE_BETWEEN: Final = re.compile(r"^[ \t]*---[ \t]*\r?$", re.MULTILINE)
_SQL_ALONE: Final = "What does this SQL return?"


def ask(
    question: Annotated[
        str | None,
        typer.Argument(metavar="QUESTION", help="What you want to know; may be omitted with --sql-from."),
    ] = None,
    *,
    db: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="The SQLite or DuckDB file, or postgresql://USER@HOST/DATABASE."),
    ] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="The model that writes the SQL.")] = None,
    base_url: Annotated[str | None, typer.Option(metavar="URL", help="Where the model's server is.")] = None,
    sql_from: Annotated[
        str | None, typer.Option(metavar="FILE", help="The SQL, instead of a model; - for standard input.")
    ] = None,
    as_csv: Annotated[
        bool, typer.Option("--csv", help="Print the rows as CSV; all else is on standard error.")
    ] = False,
    as_json_: Annotated[
        bool, typer.Option("--json", help="Print the final state as JSON, nothing else.")
    ] = False,
    max_rows: Annotated[int, typer.Option(min=1, metavar="N", help="Read at most N rows.")] = _MOST_ROWS,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long a statement may run.")
    ] = _TIMEOUT,
    model_timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long to wait for the model; it is asked twice.")
    ] = _MODEL_TIMEOUT,
    prompt_limit: Annotated[
        int,
        typer.Option(min=4_000, max=LONGEST_MESSAGE, metavar="N", help="The most characters of a prompt."),
    ] = LONGEST_MESSAGE,
    no_samples: Annotated[
        bool, typer.Option("--no-samples", help="Keep the values in the database out of the schema.")
    ] = False,
) -> None:
    """Ask a database a question: see the SQL, and the rows it returns.

    A statement that is wrong, or that returns nothing, goes back with the reason, and another one is
    written.
    """
    if as_csv and as_json_:
        raise bad_option("--csv", "give one of --csv and --json")
    path = _check(question, db=db, model=model, base_url=base_url, sql_from=sql_from)
    statements = () if sql_from is None else _read_statements(sql_from)
    try:
        from planning.agent.graph import build_text_to_sql_graph
    except ImportError as error:
        raise Refused(str(error)) from None

    session = Session()
    with ExitStack() as stack:
        try:
            database = stack.enter_context(
                SqlDatabase(path, timeout=timeout, max_rows=max_rows, samples=0 if no_samples else _SAMPLES)
            )
            generate: Callable[..., Any] = partial(_next, statements)
            if model is not None:
                chat = OpenAIChat(
                    model,
                    base_url,
                    timeout=model_timeout,
                    dialect=database.dialect,
                    prompt_limit=prompt_limit,
                )
                generate = stack.enter_context(chat)
            database.get_schema()  # a wrong file is an error of its own, and not of the question
        except (ToolError, ValueError, ImportError) as error:
            raise Refused(line_of(error)) from None
        graph = build_text_to_sql_graph(database, generate, session=session)
        asked = question or _SQL_ALONE
        states = graph.stream({"resolved_query": asked}, stream_mode="values")
        is_answered = _shown(asked, states, session, is_csv=as_csv, is_json=as_json_)
    if not is_answered:
        raise typer.Exit(1)


def _check(
    question: str | None, *, db: str | None, model: str | None, base_url: str | None, sql_from: str | None
) -> str:
    """Refuse options that do not go together; returns the path of the database."""
    if db is None:
        raise bad_option("--db", "name the database to ask: --db FILE")
    if (model is None) == (sql_from is None):
        raise bad_option("--model", "say where the SQL comes from: either --model NAME or --sql-from FILE")
    if base_url is not None and model is None:
        raise bad_option("--base-url", "it needs --model, the name of a model there")
    if sql_from is None and not (question and question.strip()):
        raise bad_option("QUESTION", "say what you want to know")
    if not is_address(db) and not Path(db).exists():
        raise Refused(f"there is no database at {printable(db)}; check the path")
    return db


def _read_statements(path: str) -> tuple[str, ...]:
    """The statements of a file, which lines of three dashes separate."""
    parts = _LINE_BETWEEN.split(read_text(path, "--sql-from"))
    statements = tuple(each.strip() for each in parts if each.strip())
    if not statements:
        raise Refused(f"{name_of(path)} holds no SQL; write a SELECT")
    return statements


def _next(statements: Sequence[str], attempts: Sequence[Any]) -> str:
    """The statement for an attempt: its own, or the last."""
    return statements[min(len(attempts), len(statements) - 1)]


def _shown(
    question: str, states: Iterable[Mapping[str, Any]], session: Session, *, is_csv: bool, is_json: bool
) -> bool:
    """Show the states of a question as they come, and the answer; returns whether there is one."""
    progress = Progress(title=question)
    state: Mapping[str, Any] = {}
    is_table = is_terminal(sys.stdout) and not is_csv
    log = sys.stdout if is_table else sys.stderr
    with face_of(log, progress, is_json=is_json) as face:
        for each in states:
            state = each
            plan = session.select_latest(Plan)
            if plan is not progress.plan:
                face.show(progress.take_plan(plan))
        face.end((), answer_lines(state, columns(log), is_table=is_table))
    is_answered = state.get("success") is True
    if is_json:
        typer.echo(as_json(state))
    elif is_answered and not is_table:
        _print_rows(state.get("execution_result") or {}, is_csv=is_csv)
    return is_answered


def _print_rows(result: Mapping[str, Any], *, is_csv: bool) -> None:
    """Print the rows for a program: all of them, and nothing else."""
    write = csv_lines if is_csv else tab_lines
    is_shown = is_terminal(sys.stdout)
    for line in write(result.get("columns") or (), result.get("data") or ()):
        sys.stdout.write(printable(line, frozenset("\n")) if is_shown else line)


def answer_lines(state: Mapping[str, Any], width: int | None = None, *, is_table: bool = True) -> list[Line]:
    """The answer to a question: the SQL, and the rows, or why there are none."""
    lines: list[Line] = []
    if state.get("sql_query") is not None:
        lines += [("SQL", HEADING), *((line, "cyan") for line in lines_of(state["sql_query"]))]
    if state.get("success") is True:
        result = state.get("execution_result") or {}
        if is_table:
            return [*lines, ("Rows", HEADING), *_row_lines(result, width)]
        return [*lines, ("", ""), (_counted(result), "dim")]
    what = "Question back" if state.get("needs_user_input") else "No answer"
    answer = str(state.get("answer") or "There is no answer.")
    return [*lines, (what, HEADING), *((line, "") for line in lines_of(answer))]


def _row_lines(result: Mapping[str, Any], width: int | None) -> list[Line]:
    """The rows of a result, how many there are, and what is not shown of them."""
    rows = result.get("data") or ()
    columns = [str(name) for name in result.get("columns") or ()]
    (names, *body), shown = laid_out(columns, rows, width)
    lines: list[Line] = [(names, "bold"), *((line, "") for line in body)]
    notes = [f"... {count(len(rows) - MOST_ROWS, 'more row')}"] if len(rows) > MOST_ROWS else []
    notes.append(_counted(result))
    if shown < len(columns):
        notes.append(f"{shown} of {len(columns)} columns had room; --json shows all of them")
    return [*lines, ("", ""), *((note, "dim") for note in notes)]


def _counted(result: Mapping[str, Any]) -> str:
    """The number of rows."""
    number = len(result.get("data") or ())
    if result.get("truncated"):
        return f"the first {count(number, 'row')}; there are more, see --max-rows"
    return count(number, "row") if number else "no rows"
