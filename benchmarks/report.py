"""The figures as text: tables that read the same in a terminal and in a Markdown file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmarks.agent_costs import AWAITED, COLUMNS, EMPTY, INVOKED, ROWS, TABLES, AgentFigures
from benchmarks.agent_costs import BARE as BARE_SQL
from benchmarks.agent_costs import DESCRIPTIONS as AGENT_DESCRIPTIONS
from benchmarks.door import Door, Takes
from benchmarks.figures import OURS, Figures
from benchmarks.framework_costs import ADDED, FrameworkFigures
from benchmarks.marks import MarkFigure
from benchmarks.plan_checks import CYCLE, DOORS, LARGE, SMALL, PlanFigures
from benchmarks.proof.report import proof_section
from benchmarks.store_costs import STORES, StoreFigures
from benchmarks.tables import table
from benchmarks.tool_calls import DESCRIPTIONS, CallFigures
from benchmarks.workflow_runs import BARE, ENGINE, FEW, MANY, PREFECT, SHAPES, WorkflowFigures
from benchmarks.workflow_runs import DESCRIPTIONS as RUN_DESCRIPTIONS
from benchmarks.workflow_runs import OURS as OUR_RUN

__all__ = ["render"]

MARKS = """\
Microseconds for one status change of one step, the middle one of the plan, from the call to the state that
can be read; in parentheses, times ours. Marks finish the step and reopen it in turn. Every round visits all
doors once, each with a fresh plan and a warm-up; a figure is the median of the rounds, a round the mean of
its marks, with the garbage collector off as in timeit. After each round the plan is read back, and the run
stops if the marks did not do what they say. Async doors are awaited in one running loop."""

LOGS = """\
The number of marks matters where a door keeps a log: the log grows with every mark, and a door whose cost
grows with its log looks better the fewer marks it was given."""

CALLS = """\
Microseconds for one call of an async tool that does nothing, from the call to its result. Every round visits
all doors once; a figure is the median of the rounds, a round the mean of its calls, in one running loop."""

PLANS = """\
Milliseconds from a plan's text to the verdict on it. Every round visits all doors once; a figure is the
median of the rounds. The broken plan stands in a fence, with prose around it and a trailing comma in every
step and list; the value that both doors read is compared with the intended one first."""

CHARACTERS = """\
Characters through a model for a plan of 20 steps taken to its end, the same titles everywhere. The total
counts everything once; the last column adds up the input of every request, without a prompt cache."""

LANGCHAIN = """\
LangChain is given its thriftiest way: one rewrite finishes a step and starts the next. With a rewrite for
each change, its calls and results would about double."""

AGENT = """\
Microseconds for a turn of the agent's loop, decide and act: the time of a run by its number of turns. Every
round visits all once, after a run that is not counted; a figure is the median of the rounds, with the garbage
collector off. In parentheses, times the empty nodes. Awaited, the empty nodes are coroutine functions."""

AGENT_SQL = """\
Microseconds for a SELECT of 1,000 rows and five columns, no two statements the same. Bare sqlite3 has one
connection open all the time; ours asks a process of its own, behind the guard:"""

FRAMEWORKS = """\
Microseconds for a turn of a framework's own agent that calls an empty tool, with a model that is a script:
with seven tools of its own, and with ours, which brings the six planning tools, the section, the reminder and
the position in the framework's state. Every round visits all once, after a round that is not counted; a
figure is the median of the rounds."""

WORKFLOWS = """\
Microseconds for each step of a run of independent steps that do nothing: the time of the whole run by the
number of its steps. Every round visits all once, after a run that is not counted; a figure is the median of
the rounds, with the garbage collector off as in timeit. After each run it is checked that every step was
done."""

SETTLING = """\
Prefect runs against a server of its own, a second process on a temporary database. Its flow is over before
the server has recorded it: the clock stops with the flow, and the next run waits for the record."""

WORK = """\
Seconds of eight pieces of work of a quarter of a second each, in pure Python, on worker processes that were
started by a run before. The pool alone shows what the machine allows: another that works on it takes a
processor away."""


def render(figures: Figures) -> str:
    """Write the whole report."""
    lines = ["# Benchmarks", ""]
    lines += _machine(figures)
    lines += ["", "## Targets", "", *_targets(figures)]
    if figures.marks:
        lines += _marks(figures)
    if figures.calls is not None:
        lines += _calls(figures.calls)
    if figures.plans is not None:
        lines += _plans(figures.plans)
    if figures.events or figures.memory or figures.select_latest is not None:
        lines += ["", "## Session", "", *_session(figures)]
    if figures.stores is not None:
        lines += _stores(figures.stores)
    if figures.imports is not None:
        lines += ["", "## Import", "", *_import(figures)]
    if figures.conversations:
        lines += ["", "## Characters", "", *_characters(figures)]
    if figures.agent is not None:
        lines += _agent(figures.agent)
    if figures.frameworks is not None:
        lines += _frameworks(figures.frameworks)
    if figures.workflows is not None:
        lines += _workflows(figures.workflows)
    if figures.proof is not None:
        lines += ["", *proof_section(figures.proof)]
    return "\n".join(lines) + "\n"


def _machine(figures: Figures) -> Iterator[str]:
    machine = figures.machine
    yield (
        f"Measured {machine['date']} with {machine['python']} on {machine['system']}, "
        f"{machine['processors']} processors ({machine['processor']}). Repeat it with `make bench`."
    )
    if figures.quick:
        yield ""
        yield "A quick run: few rounds, so read the figures as rough."
    yield ""
    yield f"Versions: {machine['versions']}."
    yield ""
    yield "Figures move with the machine and what else runs on it; the ratios within one run are what counts."


def _targets(figures: Figures) -> Iterator[str]:
    rows = [[check.target, check.figure, "ok" if check.met else "SHORT"] for check in figures.checks()]
    yield from table(["target", "measured", ""], rows)


def _marks(figures: Figures) -> Iterator[str]:
    sizes = sorted({figure.steps for figure in figures.marks})
    yield from ("", "## One mark", "", MARKS)
    floor = [figure for figure in figures.marks if figure.door.takes is Takes.NONE]
    for takes in (Takes.TYPED, Takes.JSON):
        inside = [figure for figure in figures.marks if figure.door.takes is takes]
        shown = [*inside, *floor] if takes is Takes.TYPED else inside
        ours = {figure.steps: figure for figure in inside if figure.door.name == OURS}
        yield from ("", f"With {takes.value}:", "")
        yield from table(
            ["door", *(f"{steps:,} steps" for steps in sizes)],
            [
                [name, *(_cell(_at(shown, name, steps), ours[steps]) for steps in sizes)]
                for name in dict.fromkeys(figure.door.name for figure in shown)
            ],
        )
    yield from ("", "What each door is, and how many marks one round timed at each size:", "")
    for door in dict.fromkeys(figure.door for figure in figures.marks):
        marks = ", ".join(str(figure.marks) for figure in figures.marks if figure.door == door)
        yield f"- {_label(door)}: {door.description}. Marks: {marks}."
    yield from ("", LOGS)


def _label(door: Door) -> str:
    return door.name if door.package is None else f"{door.name} {door.version}, {door.takes.value}"


def _at(figures: Sequence[MarkFigure], name: str, steps: int) -> MarkFigure:
    return next(figure for figure in figures if figure.door.name == name and figure.steps == steps)


def _cell(figure: MarkFigure, ours: MarkFigure) -> str:
    ratio = figure.microseconds / ours.microseconds
    digits = 0 if ratio >= 100 else 1 if ratio >= 1 else 2
    return f"{figure.microseconds:,.1f} ({ratio:,.{digits}f})"


def _calls(calls: CallFigures) -> Iterator[str]:
    yield from ("", "## One tool call", "", CALLS, "")
    ours = calls.one[OURS]
    yield from table(
        ["door", "microseconds", "times ours"],
        [[name, f"{time:.2f}", f"{time / ours:.2f}"] for name, time in calls.one.items()],
    )
    yield ""
    yield from (f"- {name}: {DESCRIPTIONS[name]}." for name in calls.one)
    yield f"- Among 1,000 calls that run at once, one of ours takes {calls.at_once:.2f} microseconds."
    yield ""
    yield "Microseconds to check ten parameters, each valid:"
    yield ""
    yield from table(
        ["check", "microseconds"], [[name, f"{time:.2f}"] for name, time in calls.checks.items()]
    )
    yield ""
    yield "Microseconds for a function of three parameters as a tool:"
    yield ""
    yield from table(
        ["what is done", "microseconds"], [[name, f"{time:.2f}"] for name, time in calls.declared.items()]
    )


def _frameworks(figures: FrameworkFigures) -> Iterator[str]:
    yield from ("", "## In a framework's agent", "", FRAMEWORKS, "")
    yield from table(
        ["framework", "its own", "with ours"],
        [[name, f"{figures.own[name]:,.0f}", f"{figures.ours[name]:,.0f}"] for name in ADDED],
    )
    yield ""
    yield "A LangGraph agent that takes a plan of 20 steps to its end:"
    yield ""
    yield from table(
        ["middleware", "microseconds", "characters through the model"],
        [[name, f"{time:,.0f}", f"{figures.characters[name]:,}"] for name, time in figures.agent.items()],
    )
    yield ""
    yield (
        f"A plan of 50 steps is restored from the state in {figures.restored:.0f} microseconds, with its "
        f"session in {figures.restored_session:.0f}."
    )


def _plans(plans: PlanFigures) -> Iterator[str]:
    yield from ("", "## One plan", "", PLANS, "")
    rows = [
        [
            name,
            *(_milliseconds(plans.valid.get((name, steps))) for steps in (SMALL, LARGE)),
            _milliseconds(plans.broken.get(name)),
        ]
        for name in DOORS
    ]
    yield from table(
        ["door", f"{SMALL} steps, valid", f"{LARGE:,} steps, valid", f"{SMALL} steps, broken"], rows
    )
    yield ""
    yield from (f"- {name}: {description}." for name, description in DOORS.items())
    yield f"- A circle through {CYCLE:,} steps is reported in {plans.cycle:,.0f} milliseconds."
    yield ""
    yield "Hostile input, once each:"
    yield ""
    yield from table(
        ["input", "milliseconds"], [[what, _milliseconds(time)] for what, time in plans.hostile.items()]
    )


def _milliseconds(time: float | None) -> str:
    return "" if time is None else f"{time:,.2f}" if time < 100 else f"{time:,.0f}"


def _session(figures: Figures) -> Iterator[str]:
    rows = [
        [event.what, f"{event.early:.2f}", f"{event.late:.2f}", f"{event.ratio:.2f}"]
        for event in figures.events
    ]
    if rows:
        yield "Microseconds of a single event in one session, median of 200 around each place:"
        yield ""
        yield from table(["event", "the 100th", "the 100,000th", "ratio"], rows)
        yield ""
    if figures.select_latest is not None:
        yield f"- `select_latest` of a plan of 1,000 steps: {figures.select_latest:.3f} microseconds."
    if figures.memory is not None:
        memory = figures.memory
        yield (
            f"- {memory.plans:,} plans of {memory.steps:,} steps, one kept after each mark of another step: "
            f"{memory.plans_bytes / 1e6:.2f} MB alone, {memory.session_bytes / 1e6:.2f} MB together with the "
            "session and its event log."
        )


def _stores(figures: StoreFigures) -> Iterator[str]:
    yield from ("", "## Stores", "", STORES, "")
    yield from table(["what", "least", "median", "processor"], figures.rows())


def _import(figures: Figures) -> Iterator[str]:
    measured = figures.imports
    if measured is not None:
        loaded = ", ".join(measured.heavy) or "none"
        yield (
            f"`import planning` takes {measured.milliseconds:.1f} ms, the median of {measured.runs} fresh "
            f"interpreters, and loads {measured.modules} modules. Heavy libraries among them: {loaded}."
        )


def _characters(figures: Figures) -> Iterator[str]:
    yield CHARACTERS
    yield ""
    langchain = next(talk.total for talk in figures.conversations if talk.package == "langchain")
    yield from table(
        ["tools", "prompt", "schemas", "calls", "results", "total", "of langchain", "input of all requests"],
        [
            [
                talk.name,
                f"{len(talk.prompt):,}",
                f"{len(talk.tools):,}",
                f"{talk.calls:,}",
                f"{talk.results:,}",
                f"{talk.total:,}",
                f"{talk.total / langchain:.3f}",
                f"{talk.billed:,}",
            ]
            for talk in figures.conversations
        ],
    )
    yield ""
    yield LANGCHAIN


def _agent(agent: AgentFigures) -> Iterator[str]:
    yield from ("", "## The agent", "", AGENT, "")
    ways = (INVOKED, AWAITED)
    yield from table(
        ["contestant", *ways],
        [
            [
                name,
                *(
                    f"{time:,.1f} ({time / agent.turn[EMPTY, way]:.2f})"
                    for way in ways
                    for time in [agent.turn[name, way]]
                ),
            ]
            for name in AGENT_DESCRIPTIONS
        ],
    )
    yield ""
    yield from (f"- {name}: {description}." for name, description in AGENT_DESCRIPTIONS.items())
    yield ""
    yield AGENT_SQL
    yield ""
    yield from table(
        ["run by", "microseconds", "times bare"],
        [[name, f"{time:,.0f}", f"{time / agent.rows[BARE_SQL]:.2f}"] for name, time in agent.rows.items()],
    )
    yield ""
    yield (
        f"- The first `get_schema` of {TABLES} tables of {COLUMNS} columns, with row counts, sample values"
        f" and the start of the process: {agent.schema:.1f} ms; the next one, when nothing has changed:"
        f" {agent.schema_again:.2f} ms."
    )
    yield f"- `validate_results` of {ROWS:,} rows as a call of the tool: {agent.validate:.0f} microseconds."


def _workflows(workflows: WorkflowFigures) -> Iterator[str]:
    yield from ("", "## One workflow", "", WORKFLOWS, "")
    ours = workflows.step[OUR_RUN]
    yield from table(
        ["contestant", "steps", "microseconds a step", "times ours"],
        [
            [
                name,
                f"{workflows.prefect_steps if name in PREFECT else FEW:,}",
                f"{time:,.1f}",
                f"{time / ours:,.2f}",
            ]
            for name, time in workflows.step.items()
        ],
    )
    yield ""
    yield from (f"- {name}: {RUN_DESCRIPTIONS[name]}." for name in workflows.step)
    yield from ("", SETTLING, "")
    yield "Seconds of a run of ours that does nothing, and in parentheses the microseconds of a step:"
    yield ""
    yield from table(
        ["shape", *(f"{size:,} steps" for size in (FEW, MANY))],
        [
            [
                f"a {shape}",
                *(
                    f"{seconds:.3f} ({seconds / size * 1e6:.1f})"
                    for size in (FEW, MANY)
                    for seconds in [workflows.shapes[shape, size]]
                ),
            ]
            for shape in SHAPES
        ],
    )
    yield ""
    yield WORK
    yield ""
    work = workflows.work
    yield from table(
        ["handed out by", "one process", "two processes", "times faster"],
        [
            [what, f"{work[what, 1]:.2f}", f"{work[what, 2]:.2f}", f"{work[what, 1] / work[what, 2]:.2f}"]
            for what in (ENGINE, BARE)
        ],
    )
