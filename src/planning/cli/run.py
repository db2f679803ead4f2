"""``planning run``: the options of a run, and their checks."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, Final, NoReturn

import typer

from planning.cli.arguments import Agents, Finished, Handlers, McpServers, Tools, WorkflowFile, session_ids
from planning.cli.capabilities import capabilities_of, mention_colon, tools_of_servers
from planning.cli.opening import begun_session, opened_store
from planning.cli.running import Asked, Running, opened_run
from planning.cli.source import read_bytes, refuse_other, without_password
from planning.cli.usage import DEFAULT_STORE, LAST, TOOLS_HELP, bad_option
from planning.cli.validate import print_report
from planning.errors import show
from planning.tools.contract import check_timeout
from planning.tools.tool import Tool
from planning.workflow.capabilities import Capabilities
from planning.workflow.executors import open_executor
from planning.workflow.model import Workflow
from planning.workflow.validate import validate_workflow
from session.address import hide_secrets

# \b keeps a paragraph as it is written.
RUN_HELP: Final = f"""\b
Examples:
  planning run report.json --tools my_app.tools:registry
  planning run report.json --tools my_app:tools --var year=2022
  planning run report.json --tools my_app:tools --executor processes
  planning run report.json --tools my_app:tools --json > result.json
  planning run report.json --mcp "npx some-mcp-server"
  planning run report.json --tools my_app:tools --view
  planning run report.json --tools my_app:tools --resume
  planning run report.json nightly --tools app:tools --store plans.db

{TOOLS_HELP}
\b
Values:
  --var year=2022 stores 2022 in the memory as "year", where a
  done_check and the tools find it. A value that is JSON (a number,
  true, null, a list, an object, a string in quotes) is read as JSON,
  any other as text. --var user_prompt=TEXT is the same as
  --prompt TEXT.

\b
Stopping and resuming:
  Ctrl-C waits for running steps; a second Ctrl-C stops at once. Every
  step is recorded as it ends, so that a run that was stopped, killed or
  failed can be resumed: run the same command with --resume. Completed
  steps do not run again, failed ones do. You may edit the workflow
  first; only completed steps must stay the same.

\b
Where runs are kept:
  In the file {DEFAULT_STORE}, or that of --store, in a session with
  the name of the workflow's file: report for report.json. These read it:
    planning sessions
    planning show report
    planning history report
    planning view report
    planning watch --last
"""
_MOST_PARALLEL: Final = 16
_PROMPT: Final = "user_prompt"
_LONGEST_NAME: Final = 100  # characters


def run(
    context: typer.Context,
    file: WorkflowFile = None,
    session: Annotated[
        str | None,
        typer.Argument(
            metavar="SESSION",
            help="The session that keeps the run; named after the file if omitted. With --resume, also the"
            f" beginning of its id, or {LAST} for the one that was changed last.",
            autocompletion=session_ids,
        ),
    ] = None,
    *,
    tools: Tools = None,
    handlers: Handlers = None,
    agents: Agents = None,
    mcp: McpServers = None,
    prompt: Annotated[str | None, typer.Option(metavar="TEXT", help="The value of ${user_prompt}.")] = None,
    var: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=VALUE", help="A value for the memory, see below. May be repeated."),
    ] = None,
    executor: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Where tools run: threads, processes or dask://HOST:PORT. Without it, in this process: async"
            " tools in one thread, others in threads of their own.",
        ),
    ] = None,
    max_parallel: Annotated[
        int, typer.Option(min=1, metavar="N", help="Run at most N steps at the same time.")
    ] = _MOST_PARALLEL,
    timeout: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="The time limit of an attempt, where neither the step nor its tool sets one; without it,"
            " there is none.",
        ),
    ] = None,
    store: Annotated[
        str,
        typer.Option(
            metavar="STORE",
            help="The store that the run is kept in: a SQLite file, which is created, or"
            " postgresql://HOST/DATABASE.",
        ),
    ] = DEFAULT_STORE,
    resume: Annotated[bool, typer.Option("--resume", help="Resume the last run of this workflow.")] = False,
    finished: Finished = False,
    view: Annotated[
        bool, typer.Option("--view", help="Show the run as a page in the browser, until you press Ctrl-C.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON, nothing else.")] = False,
) -> None:
    """Run a workflow: call its tools, several at a time, and print the answer.

    The answer is the output of the last steps, those that no other step depends on. The workflow is checked
    first, as by 'planning validate'; one with errors does not run.
    """
    user_prompt, inputs = _given(prompt, var or ())
    try:
        opened = None if executor is None else open_executor(executor, max_parallel)
    except ValueError as error:
        raise bad_option("--executor", error) from None
    try:
        check_timeout(timeout)
    except ValueError as error:
        raise bad_option("--timeout", error) from None

    with tools_of_servers(mcp or ()) as served:
        data = read_bytes(file, "WORKFLOW")
        named = {"tools": tools, "handlers": handlers, "agents": agents}
        workflow, capabilities = _checked(data, file, named, served, is_finished=finished)

        words = [hide_secrets(word.replace(store, without_password(store))) for word in context.obj]
        words = [word for word in words if word not in {"--resume", LAST}]
        name = session or _name_of(file, data)
        if session == LAST or (session is not None and resume):
            with opened_store(store) as found:
                name = str(begun_session(found, session) or session)
            words += [name] if session == LAST else []
        line = shlex.join(["planning", "run", *words, "--resume"])
        asked = Asked(
            workflow=workflow,
            capabilities=capabilities,
            user_prompt=user_prompt,
            inputs=inputs,
            store=store,
            session=name,
            resume=resume,
            executor=opened,
            max_parallel=max_parallel,
            timeout=timeout,
            is_viewed=view,
            is_json=as_json,
            line=line,
        )
        with opened_run(asked) as (kept, last):
            code = Running(asked, kept, last).run()
    if code:
        raise typer.Exit(code)


def _name_of(file: str | None, data: bytes) -> str:
    """The session of a workflow, by the name of its file: ``report`` for ``report.json``."""
    if file in {None, "-"}:
        return f"stdin-{sha256(data).hexdigest()[:8]}"
    name = re.sub(r"[^\w.:-]+", "-", Path(file).stem, flags=re.ASCII)[:_LONGEST_NAME].strip("-")
    return name if name.strip(".") else "workflow"


def _checked(
    data: bytes,
    file: str | None,
    named: Mapping[str, list[str] | None],
    served: Mapping[str, Tool],
    *,
    is_finished: bool,
) -> tuple[Workflow, Capabilities]:
    """The workflow and what it calls; its warnings are printed, and with errors the command ends here."""
    capabilities = capabilities_of(served, **named)
    report = validate_workflow(data, capabilities, finished=is_finished)
    if not report.ok:
        refuse_other(data, file, "a workflow", "workflow")
    if report.errors or report.warnings:
        print_report(report, file, err=True)
    mention_colon(report, **named)
    if not report.ok:
        raise typer.Exit(1)
    return report.workflow, capabilities or Capabilities(tools=None, handlers=None, agents=None)


def _given(prompt: str | None, pairs: Iterable[str]) -> tuple[str | None, dict[str, Any]]:
    """The prompt, and the values of the ``NAME=VALUE`` pairs."""
    inputs: dict[str, Any] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise bad_option("--var", f"{show(pair)} is not NAME=VALUE; write --var year=2022")
        if name == _PROMPT:
            if prompt is not None:
                raise bad_option(
                    "--var", "the prompt is given twice; keep one of --prompt and --var user_prompt=..."
                )
            prompt = value
        elif name in inputs:
            raise bad_option("--var", f"{show(name)} is given twice; keep one")
        else:
            inputs[name] = _value(value)
    return prompt, inputs


def _value(text: str) -> Any:
    """The JSON value of a string; the string itself if it is not JSON."""
    try:
        value = json.loads(text, parse_constant=_refuse)
        json.dumps(value, allow_nan=False)  # 1e999 reads as infinity
    except (ValueError, RecursionError):
        return text
    return value


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)
