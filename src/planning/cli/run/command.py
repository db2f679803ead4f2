"""The command that runs a workflow and shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from planning.cli.reports import print_report
from planning.cli.source import Finished, PlanFile, nothing_done, read_capabilities, read_plan

if TYPE_CHECKING:
    from planning.workflow.capabilities import Capabilities
    from planning.workflow.model import Workflow

__all__ = ["RUN_HELP", "run"]

# \b keeps a paragraph as it is written.
RUN_HELP: Final = """\b
Examples:
  planning run plan.json --tools my_app.tools:registry
  planning run plan.json --tools my_app:tools --var year=2022
  planning run plan.json --tools my_app:tools --executor processes
  planning run plan.json --tools my_app:tools --json > result.json
  planning run plan.json --tools my_app:tools --resume plan.snapshot.json

\b
Values:
  --var year=2022 puts 2022 into the memory as "year", where a
  done_check and the tools find it. What is JSON is taken as JSON (a
  number, true, null, a list, an object, a text in quotes), everything
  else as text. --var user_prompt=TEXT is the same as --prompt TEXT.

\b
Stopping and going on:
  Ctrl-C waits for running steps; a second Ctrl-C stops at once. A run
  that was stopped, or that failed, is kept in a snapshot: in the file
  of --save, or the one of --resume, or PLAN.snapshot.json in this
  folder. It replaces the snapshot that is there. The last line says
  how to resume: completed steps do not run again, failed ones do. Edit
  the plan first if you like; only completed steps must stay the same.

\b
Exit codes:
  0    the workflow is completed
  1    a step failed, or the plan has errors, or an output cannot be
       written
  2    nothing was run: wrong usage, or a file, an object that was
       named, a snapshot or the executor cannot be used
  130  stopped by Ctrl-C
  143  stopped by a termination signal
"""
_OBJECT: Final = "MODULE:OBJECT"
_MOST_PARALLEL: Final = 16


def run(
    plan: PlanFile = None,
    *,
    tools: Annotated[
        list[str] | None,
        typer.Option(
            metavar=_OBJECT,
            help="The tools: an object in a Python module, which is a registry, a toolbox, a mapping or a"
            " list, or a function that makes one. May be given more than once.",
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
    prompt: Annotated[
        str | None,
        typer.Option(metavar="TEXT", help="What ${user_prompt} stands for.", show_default=False),
    ] = None,
    var: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="A value for the memory, see below. May be given more than once.",
            show_default=False,
        ),
    ] = None,
    executor: Annotated[
        str | None,
        typer.Option(
            metavar="threads|processes|dask://HOST:PORT",
            help="Where tools run; left out, in this process: async tools in one thread, others in"
            " threads of their own.",
            show_default=False,
        ),
    ] = None,
    max_parallel: Annotated[
        int, typer.Option(min=1, metavar="N", help="How many steps run at the same time at most.")
    ] = _MOST_PARALLEL,
    timeout: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            help="After how long an attempt of a step is given up, where neither the step nor its tool"
            " says; left out, never.",
            show_default=False,
        ),
    ] = None,
    resume: Annotated[
        str | None,
        typer.Option(metavar="SNAPSHOT", help="Resume the run in this file.", show_default=False),
    ] = None,
    save: Annotated[
        str | None,
        typer.Option(
            metavar="SNAPSHOT",
            help="Keep the run in this file, also when it is completed. An existing file is replaced.",
            show_default=False,
        ),
    ] = None,
    finished: Finished = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON, nothing else.")] = False,
) -> None:
    """Run a plan: call its tools, several at a time, and show how far it is.

    The plan is checked first, as 'planning validate' does it; one with errors is not run.
    """
    from planning.cli.run import executors, options
    from planning.cli.run.keep import KeepError
    from planning.cli.run.session import NothingRun, Order, run_order
    from planning.tools.contract import check_timeout

    try:
        given = options.given(prompt, var or ())
    except options.OptionError as error:
        raise typer.BadParameter(str(error), param_hint="'--var'") from None
    try:
        executors.check_executor_name(executor)
    except options.OptionError as error:
        raise typer.BadParameter(str(error), param_hint="'--executor'") from None
    try:
        check_timeout(timeout)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="'--timeout'") from None
    workflow, capabilities = _checked(plan, tools, handlers, agents, is_finished=finished)
    line = options.command_line(
        plan or "-",
        [
            ("--tools", tools),
            ("--handlers", handlers),
            ("--agents", agents),
            ("--executor", executor),
            ("--max-parallel", None if max_parallel == _MOST_PARALLEL else max_parallel),
            ("--timeout", timeout),
            ("--save", save),
            ("--finished", finished),
            ("--json", as_json),
        ],
    )
    order = Order(
        workflow=workflow,
        capabilities=capabilities,
        given=given,
        file=plan if plan != "-" else None,
        executor=executor,
        max_parallel=max_parallel,
        timeout=timeout,
        resume=resume,
        save=save,
        is_json=as_json,
        line=line,
    )
    try:
        code = run_order(order)
    except (NothingRun, KeepError, executors.ExecutorError) as error:
        raise nothing_done(error) from None
    if code:
        raise typer.Exit(code)


def _checked(
    plan: str | None,
    tools: list[str] | None,
    handlers: list[str] | None,
    agents: list[str] | None,
    *,
    is_finished: bool,
) -> tuple[Workflow, Capabilities]:
    """The workflow and what it calls; its warnings are told, and with errors it ends here."""
    from planning.workflow.capabilities import Capabilities
    from planning.workflow.validate import validate_workflow

    source = read_plan(plan)
    capabilities = read_capabilities(tools=tools, handlers=handlers, agents=agents)
    report = validate_workflow(source, capabilities, finished=is_finished)
    if report.errors or report.warnings:
        print_report(report, None if plan in (None, "-") else plan, err=True)
    if not report.ok:
        raise typer.Exit(1)
    return report.workflow, capabilities or Capabilities(tools=None, handlers=None, agents=None)
