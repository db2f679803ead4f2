"""The command that asks a database a question and shows the answer."""

from __future__ import annotations

from typing import Annotated, Final

import typer

from planning.cli.source import NoSourceError, SourceError

__all__ = ["ASK_HELP", "ask"]

# \b keeps a paragraph as it is written.
ASK_HELP: Final = """\b
Examples:
  planning ask "Who spent the most?" --db shop.db --model gpt-4.1
  planning ask "Who spent the most?" --db shop.db --model qwen3 \\
      --base-url http://127.0.0.1:8000/v1
  planning ask --db shop.db --sql-from query.sql --json > result.json

\b
Who writes the SQL:
  A model writes it, with --model, on any server of the
  chat-completions protocol. The key is read from OPENAI_API_KEY; a
  server that is named with --base-url may need none. Or it is in the
  file of --sql-from: one statement, or several with a line of three
  dashes between them, one for each attempt.

\b
What is safe:
  The database is only read, whatever the SQL says. The schema is sent
  to the model, with a few values of each column unless --no-samples
  is given; and with a mistake, the message about it.

\b
Exit codes:
  0    answered, maybe with no rows
  1    not answered, or it asks back; or the output cannot be written
  2    nothing was asked: wrong usage, or the database, a file or an
       extra cannot be used
  130  interrupted
  143  stopped by a termination signal
"""
_SAMPLES: Final = 3
_MOST_ROWS: Final = 1_000
_TIMEOUT: Final = 5.0
_QUESTION_OF_SQL: Final = "What does this SQL return?"


def ask(
    question: Annotated[
        str | None,
        typer.Argument(
            metavar="QUESTION",
            help="What you want to know; may be omitted with --sql-from.",
            show_default=False,
        ),
    ] = None,
    *,
    db: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="The database, SQLite or DuckDB.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The model that writes the SQL.", show_default=False),
    ] = None,
    base_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Where the model's server is.", show_default=False),
    ] = None,
    sql_from: Annotated[
        str | None,
        typer.Option(
            metavar="FILE", help="The SQL, instead of a model; - for standard input.", show_default=False
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the final state as JSON, nothing else.")
    ] = False,
    max_rows: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many rows are read at most.")
    ] = _MOST_ROWS,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long a statement may run.")
    ] = _TIMEOUT,
    no_samples: Annotated[
        bool, typer.Option("--no-samples", help="Keep the values in the database out of the schema.")
    ] = False,
) -> None:
    """Ask a database a question: see the SQL, and the rows it returns.

    A statement that turns out wrong, or returns nothing, goes back with what is wrong with it, and another
    one is written.
    """
    database = _check(question, db=db, model=model, base_url=base_url, sql_from=sql_from)
    try:
        from planning.cli.ask.asking import NothingAsked, Order, ask_order
    except ImportError as error:
        raise _nothing_asked(error) from None
    from planning.cli.ask.statements import read_statements

    try:
        statements = () if sql_from is None else read_statements(sql_from)
    except SourceError as error:
        raise _nothing_asked(error) from None
    except NoSourceError:
        raise typer.BadParameter("give a file, or pipe one in", param_hint="'--sql-from'") from None
    order = Order(
        question=question or _QUESTION_OF_SQL,
        database=database,
        model=model,
        base_url=base_url,
        statements=statements,
        is_json=as_json,
        max_rows=max_rows,
        timeout=timeout,
        samples=0 if no_samples else _SAMPLES,
    )
    try:
        is_answered = ask_order(order)
    except NothingAsked as error:
        raise _nothing_asked(error) from None
    if not is_answered:
        raise typer.Exit(1)


def _check(
    question: str | None, *, db: str | None, model: str | None, base_url: str | None, sql_from: str | None
) -> str:
    """Refuse options that do not go together.

    Returns:
        The database.

    Raises:
        typer.BadParameter: They do not.
    """
    for name, text in (("QUESTION", question), ("--db", db), ("--model", model), ("--base-url", base_url)):
        if text is not None and not text.strip():
            raise typer.BadParameter("it is blank; write something, or leave it out", param_hint=f"'{name}'")
        if text is not None and not _is_text(text) and name != "--db":
            raise typer.BadParameter("it is no UTF-8 text", param_hint=f"'{name}'")
    if model is not None and sql_from is not None:
        raise typer.BadParameter("give one of --model and --sql-from", param_hint="'--sql-from'")
    if base_url is not None and model is None:
        raise typer.BadParameter("it needs --model, the name of a model there", param_hint="'--base-url'")
    if db is None:
        raise typer.BadParameter("name the database to ask: --db FILE", param_hint="'--db'")
    if model is None and sql_from is None:
        raise typer.BadParameter("it needs --model or --sql-from to get its SQL from", param_hint="'--db'")
    if question is None and sql_from is None:
        raise typer.BadParameter("say what you want to know", param_hint="'QUESTION'")
    return db


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _nothing_asked(error: Exception) -> typer.Exit:
    typer.echo(f"planning: {error}", err=True)
    return typer.Exit(2)
