"""The proof as a section of the results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from benchmarks.proof.crashes import ADDED, BEFORE, EDITED, KILLS, ROUNDS, WRITERS, Kept
from benchmarks.proof.measure import ProofFigures
from benchmarks.proof.repairs import RepairFigures
from benchmarks.proof.rewinds import CHANGES, PLANS
from benchmarks.proof.threads import ADDS, THREADS
from benchmarks.tables import table

__all__ = ["HEADING", "proof_section"]

HEADING = "## What the planning layer buys"

BREAKING = """\
Each call is then broken by its schema alone, with a fixed seed: a name or a value of a list is misspelt
(a letter doubled, dropped, or swapped with its neighbour), a required argument is left out, or a text
becomes an object and a number a word. Only calls that match their own schema are broken. "All named" are
the refusals that name every argument at fault; "right word" are the faults whose right name or value
comes after the wrong one in the same problem; the characters are those of a mean refusal. What pydantic
says is `str(error)` without its links, of a model whose optional fields may be null; what jsonschema
says are the messages of all its errors, with their places. LangGraph's answer to an unknown tool lists
every tool of the question."""

LOOSE = "Accepted, of what models send that has one meaning, though not the form of the schema:"

REWINDS = f"""\
{PLANS} plans, {CHANGES} random changes each. Ours is rewound and forked on the way, and opened again
before each version is read (`at`), restored (`rewind`), and compared with what it was, and so is each
fork. Of the others, each checkpoint's list is compared and forked, and each snapshot rolled back;
LangChain keeps a checkpoint by itself, a user of weakincentives takes the snapshots. pydantic-ai-harness
and agentscope have no earlier plan to ask for."""

KILLED = f"""\
{KILLS} processes that add steps to a plan of {BEFORE}, one call after the other, each ended by SIGKILL
at a random moment:"""

ADDING = f"""\
{WRITERS} processes that add {ADDED} steps each to the same plan at the same time, {ROUNDS} plans.
A change that raised an error is not acknowledged:"""

EDITING = f"""\
Two processes that change the same {EDITED} steps at the same time, one the title and the other the status,
{ROUNDS} plans. How many of the others' changes are lost differs from run to run:"""

THREADED = f"""\
{THREADS} threads of one process that add {ADDS} steps each to the same plan in memory, with the interpreter
switching threads often:"""

PLAIN = (
    "The JSON file is read, changed and written again with `write_text`, as a program without a library does."
)


def proof_section(figures: ProofFigures) -> Iterator[str]:
    """The whole section, heading included."""
    measured, crashes = figures.measured, figures.crashes
    yield from (HEADING, "")
    yield (
        f"Counted {measured['date']} with {measured['python']} of the source at commit {measured['commit']}, "
        "without a model. Repeat it with `python benchmarks/run.py --only proof --write`."
    )
    yield f"Versions: {measured['versions']}."
    yield ""
    yield from _repairs(figures.repairs)
    yield from ("", "### Characters", "")
    yield "Characters through a model for a plan of 20 steps, taken to its end, counted as under Characters."
    yield ""
    yield from table(
        ["tools", "characters"], [[name, f"{total:,}"] for name, total in figures.characters.items()]
    )
    yield from ("", "### Earlier plans", "", REWINDS, "")
    yield from table(
        ["plan", "asked for", "exactly restored"],
        [[name, f"{asked:,}", f"{exact:,}"] for name, (asked, exact) in figures.rewinds.restored.items()],
    )
    yield from ("", "### Killed", "", KILLED, "")
    yield from _kept(crashes.killed)
    yield from ("", PLAIN)
    yield from ("", "### Writing at the same time", "", ADDING, "")
    yield from _kept(crashes.added)
    yield from ("", EDITING, "")
    yield from _kept(crashes.edited)
    yield from ("", THREADED, "")
    yield from table(
        ["plan in memory", "acknowledged", "kept", "ids given out again"],
        [
            [name, f"{found.acknowledged:,}", f"{found.kept:,}", f"{found.repeated}"]
            for name, found in figures.threads.items()
        ],
    )


def _repairs(repairs: RepairFigures) -> Iterator[str]:
    accepted = ", ".join(f"{name} {count:,}" for name, count in repairs.accepted.items())
    yield from ("### Broken calls", "")
    yield (
        f"{repairs.calls:,} calls of the Berkeley Function Calling Leaderboard that have one right answer and"
        f" flat arguments. Accepted as they are: {accepted}. {repairs.both_refuse} are refused rightly, as"
        ' their own schema does not allow them (an "N/A" that is not in the list, a required argument that is'
        " missing); the others that jsonschema refuses have null for what may be omitted."
    )
    yield from ("", BREAKING, "")
    yield from table(
        ["broken by", "judge", "calls", "refused", "all named", "right word", "characters"],
        [
            [
                way,
                name,
                f"{found.calls:,}",
                f"{found.refused:,}",
                f"{found.named:,}",
                f"{found.suggested:,} of {found.faults:,}" if found.faults else "",
                f"{found.characters / max(found.refused, 1):.0f}",
            ]
            for way, by_judge in repairs.broken.items()
            for name, found in by_judge.items()
        ],
    )
    yield from ("", LOOSE, "")
    names = list(next(iter(repairs.loose.values())))
    yield from table(
        ["sent", *names],
        [
            [what, *(f"{accepted:,} of {calls:,}" for accepted, calls in by_judge.values())]
            for what, by_judge in repairs.loose.items()
        ],
    )


def _kept(by_kind: Mapping[str, Kept]) -> Iterator[str]:
    yield from table(
        ["kept in", "acknowledged", "kept", "files that cannot be read", "changes that failed"],
        [
            [kind, f"{kept.acknowledged:,}", f"{kept.kept:,}", f"{kept.unreadable}", f"{kept.failed}"]
            for kind, kept in by_kind.items()
        ],
    )
