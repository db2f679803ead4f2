"""``planning run``: the options of a run, and their checks."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

import typer

from planning.cli.kinds import refuse_other
from planning.cli.mcp_tools import tools_of_servers
from planning.cli.source import Finished, WorkflowFile, read_bytes
from planning.cli.usage import EXIT_CODES, TOOLS_HELP, bad_option
from planning.errors import show

if TYPE_CHECKING:
    from planning.tools.tool import Tool
    from planning.workflow.capabilities import Capabilities
    from planning.workflow.model import Workflow
    from session import Session

__all__ = ["RUN_HELP", "run"]

# \b keeps a paragraph as it is written.
RUN_HELP: Final = f"""\b
Examples:
  planning run plan.json --tools my_app.tools:registry
  planning run plan.json --tools my_app:tools --var year=2022
  planning run plan.json --tools my_app:tools --executor processes
  planning run plan.json --tools my_app:tools --json > result.json
  planning run plan.json --mcp "npx some-mcp-server"
  planning run plan.json --tools my_app:tools --resume plan.snapshot.json
  planning run plan.json --tools app:tools --store plans.db --session nightly

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
  Ctrl-C waits for running steps; a second Ctrl-C stops at once. A run
  that was stopped or failed is saved in a snapshot: in the file of
  --save, or that of --resume, or WORKFLOW.snapshot.json in this folder.
  It replaces the snapshot that is there. The last line says how to
  resume: completed steps do not run again, failed ones do. You may
  edit the workflow first; only completed steps must stay the same.

\b
Stores:
  With --store every step is recorded as it ends, so that a run can also
  be resumed after a crash: run the same command again. A session whose
  last run is complete begins another run. 'planning watch' shows a run
  that goes on elsewhere, 'planning show' one that is over.

{EXIT_CODES}"""
_OBJECT: Final = "MODULE:OBJECT"
_MOST_PARALLEL: Final = 16
_PROMPT: Final = "user_prompt"
_NOT_REPEATED: Final = ("plan", "prompt", "var", "session", "resume")


def run(
    context: typer.Context,
    plan: WorkflowFile = None,
    *,
    tools: Annotated[
        list[str] | None,
        typer.Option(
            metavar=_OBJECT,
            help="The tools, see below: an object in a Python module, which is imported. May be repeated.",
            show_default=False,
        ),
    ] = None,
    handlers: Annotated[
        list[str] | None,
        typer.Option(metavar=_OBJECT, help="The handlers, in the same way.", show_default=False),
    ] = None,
    agents: Annotated[
        list[str] | None,
        typer.Option(metavar=_OBJECT, help="The agents, in the same way.", show_default=False),
    ] = None,
    mcp: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COMMAND",
            help="Start an MCP server with this command, and take its tools. May be repeated.",
            show_default=False,
        ),
    ] = None,
    prompt: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="The value of ${user_prompt}.", show_default=False),
    ] = None,
    var: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="A value for the memory, see below. May be repeated.",
            show_default=False,
        ),
    ] = None,
    executor: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Where tools run: threads, processes or dask://HOST:PORT. Without it, in this process: async"
            " tools in one thread, others in threads of their own.",
            show_default=False,
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
            show_default=False,
        ),
    ] = None,
    store: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Keep the run in a session of this store, see below. A new file is created.",
            show_default=False,
        ),
    ] = None,
    session: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="The session in the store; its unfinished run is resumed, else a run begins.",
            show_default=False,
        ),
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(
            metavar="SNAPSHOT|NAME",
            help="Resume the run in this file; with --store, in this session.",
            show_default=False,
        ),
    ] = None,
    save: Annotated[
        str | None,
        typer.Option(
            metavar="SNAPSHOT",
            help="Save the run in this file, also when it is completed. An existing file is replaced.",
            show_default=False,
        ),
    ] = None,
    finished: Finished = False,
    view: Annotated[
        bool,
        typer.Option("--view", help="Show the run in a browser while it goes on: print a link on stderr."),
    ] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show the whole output of every step.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON, nothing else.")] = False,
) -> None:
    """Run a workflow: call its tools, several at a time, and print the answer.

    The answer is the output of the last steps, those that no other step depends on. The workflow is checked
    first, as by 'planning validate'; one with errors does not run.
    """
    from planning.tools.contract import check_timeout
    from planning.workflow.executors import open_executor

    user_prompt, inputs = _given(prompt, var or ())
    _check_store(store, session, resume, save)
    try:
        opened = None if executor is None else open_executor(executor, max_parallel)
    except ValueError as error:
        raise bad_option("--executor", error) from None
    try:
        check_timeout(timeout)
    except ValueError as error:
        raise bad_option("--timeout", error) from None
    with tools_of_servers(mcp or ()) as served:
        workflow, capabilities = _checked(plan, tools, handlers, agents, served, is_finished=finished)
        from planning.cli.running import Running

        with _stored(store, session, resume) as stored:
            code = Running(
                workflow=workflow,
                capabilities=capabilities,
                user_prompt=user_prompt,
                inputs=inputs,
                file=plan if plan != "-" else None,
                executor=opened,
                max_parallel=max_parallel,
                timeout=timeout,
                stored=stored,
                resume=resume,
                save=save,
                is_viewed=view,
                is_verbose=verbose,
                is_json=as_json,
                line=_command_line(context, plan or "-"),
            ).run()
    if code:
        raise typer.Exit(code)


def _check_store(store: str | None, session: str | None, resume: str | None, save: str | None) -> None:
    """Refuse options that do not go together."""
    if store is None and session is not None:
        raise bad_option("--session", "it names a session of a store; add --store FILE")
    if store is not None and session is None and resume is None:
        raise bad_option("--store", "it holds many sessions; name one with --session NAME")
    if session is not None and resume is not None:
        raise bad_option("--resume", "--session resumes, too; keep one of them")
    if store is not None and save is not None:
        raise bad_option("--save", "with --store the run is kept in the store; omit --save")


@contextmanager
def _stored(store: str | None, session: str | None, resume: str | None) -> Iterator[Session | None]:
    """The session of a run in its store; None where no store is named."""
    from planning.cli.stores import known_session, opened_store
    from planning.view.stores import open_session
    from session.events import session_id_of

    if store is None:
        yield None
        return
    with opened_store(store, begins=session is not None) as opened:
        if session is None:
            yield open_session(opened, known_session(opened, resume or ""))
        else:
            try:
                identity = session_id_of(session)
            except ValueError as error:
                raise bad_option("--session", error) from None
            yield open_session(opened, identity)


def _checked(
    plan: str | None,
    tools: list[str] | None,
    handlers: list[str] | None,
    agents: list[str] | None,
    served: Mapping[str, Tool],
    *,
    is_finished: bool,
) -> tuple[Workflow, Capabilities]:
    """The workflow and what it calls; its warnings are printed, and with errors the command ends here."""
    source = read_bytes(plan, "WORKFLOW")
    from planning.cli.capabilities import capabilities_of, mention_colon, with_tools
    from planning.cli.validate import print_report
    from planning.workflow.capabilities import Capabilities
    from planning.workflow.validate import validate_workflow

    capabilities = capabilities_of(tools=tools, handlers=handlers, agents=agents)
    if served:
        capabilities = with_tools(capabilities, served)
    report = validate_workflow(source, capabilities, finished=is_finished)
    if not report.ok:
        refuse_other(source, plan, "a workflow", "workflow")
    if report.errors or report.warnings:
        print_report(report, plan, err=True)
    mention_colon(report, tools=tools, handlers=handlers, agents=agents)
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
    """A text as JSON; the text itself where it is not JSON."""
    try:
        value = json.loads(text, parse_constant=_refuse)
        json.dumps(value, allow_nan=False)  # 1e999 reads as infinity
    except (ValueError, RecursionError):
        return text
    return value


def _refuse(name: str) -> NoReturn:
    raise ValueError(name)


def _command_line(context: typer.Context, file: str) -> str:
    """The command with the options that were given, quoted for a shell; a snapshot knows the others."""
    words = ["planning", "run", file]
    for option in context.command.params:
        value = context.params.get(option.name or "")
        if option.name in _NOT_REPEATED or value is None or value == option.default:
            continue
        name = option.opts[0]
        for each in value if isinstance(value, (list, tuple)) else [value]:
            words += [name] if each is True else [name, f"{each}"]
    return shlex.join(words)
