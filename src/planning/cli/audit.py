"""``planning audit``: what the history of a session shows about its plan."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal

import attrs
import typer

from planning.cli.arguments import AnySource, AsJson, OneSession
from planning.cli.opening import opened
from planning.cli.terminal import as_json, columns, count, say
from planning.cli.usage import bad_option
from planning.cli.validate import annotation
from planning.errors import line_of, one_line, show
from planning.observe.audit import FINDINGS, Audit, AuditFinding, audit_plan
from planning.plan.facts import PlanFacts
from planning.plan.model import Plan
from planning.workflow.run.records import WorkflowRun
from session.stores import StoreError

# \b keeps a paragraph as it is written.
AUDIT_HELP: Final = """\b
Examples:
  planning audit plans.db nightly
  planning audit transcript.jsonl --fail-on done_without_call,unfinished
  planning audit plans.db nightly --format github

\b
What it reads:
  A store, as 'planning run' keeps one, and the name of a session in it.
  Or a transcript, as 'planning replay' reads it. Or a snapshot of a
  session, which has no history: only open steps and a failed run are
  found in it.
"""
_SHOWN: Final = 10  # findings of one kind
_NO_CALLS: Final = (
    "  No call of another tool is recorded: none was made, or none through the session's toolbox."
)


def audit(
    source: AnySource = None,
    session: OneSession = None,
    *,
    as_json_: AsJson = False,
    form: Annotated[
        Literal["text", "json", "github"],
        typer.Option(
            "--format",
            case_sensitive=False,
            help="text: for a person; json: every finding with its fields; github: annotations of a pull"
            " request.",
        ),
    ] = "text",
    fail_on: Annotated[
        str | None,
        typer.Option(
            metavar="FINDING,...", help="End with exit code 1 if one of these is found; else it is 0."
        ),
    ] = None,
) -> None:
    """Audit a plan: what was marked done without work, skipped, replaced or left open.

    It needs no policy, and names the setting of PlanPolicy that guards against each finding.
    """
    failing = set() if fail_on is None else {name.strip() for name in fail_on.split(",")}
    for name in sorted(failing - FINDINGS.keys()):
        raise bad_option("--fail-on", f"no finding is named {show(name)}; use {', '.join(FINDINGS)}")
    title, found, problem = _audited(source, session)
    if as_json_ or form == "json":
        typer.echo(as_json(_fields(title, found)))
    elif form == "github":
        for finding in found.findings:
            typer.echo(_annotation(finding))
    else:
        for line in _lines(title, found):
            width = columns(sys.stdout)
            indent = " " * (len(line) - len(line.lstrip()) + 2)
            typer.echo(textwrap.fill(line, width, subsequent_indent=indent) if width else line)
    if problem:
        say(problem)
    if problem or any(finding.code in failing for finding in found.findings):
        raise typer.Exit(1)


def _audited(source: str | None, session: str | None) -> tuple[str, Audit, str]:
    """The name of what is audited, the audit, and the part of the history that cannot be read."""
    damage: list[StoreError] = []
    kinds: Any = ("snapshot", "transcript")
    with opened(source, session, *kinds, wanted="a session") as given, given.history() as changes:

        def sound() -> Iterator[Any]:
            try:
                yield from changes.new()
            except StoreError as error:
                damage.append(error)

        if given.kind == "snapshot":
            end = given.session
            plan, run = end.select_latest(Plan), end.select_latest(WorkflowRun)
            return given.title, audit_plan((), plan, end.select_latest(PlanFacts), run), ""
        found = audit_plan(sound())
        damage += [changes.problem] if changes.problem is not None else []
    if given.kind == "transcript":
        found = attrs.evolve(found, findings=tuple(attrs.evolve(each, at=None) for each in found.findings))
    return given.title, found, "; ".join(map(line_of, damage))


def _fields(title: str, found: Audit) -> dict[str, Any]:
    findings = []
    for finding in found.findings:
        rule = FINDINGS[finding.code]
        at = None if finding.at is None else finding.at.isoformat()
        kind = {"severity": rule.severity, "prevented_by": rule.prevented_by}
        findings.append({**attrs.asdict(finding), "at": at, **kind})
    return {"source": title, "findings": findings, "totals": found.totals, "abandoned": found.abandoned}


def _annotation(finding: AuditFinding) -> str:
    severity = FINDINGS[finding.code].severity
    return annotation(severity, f"Version {finding.version}: {finding.message}", title=finding.code)


def _lines(title: str, found: Audit) -> Iterator[str]:
    """The audit for a person: findings by their kind, then what planning cost."""
    totals = found.totals
    number = count(len(found.findings), "finding") if found.findings else "no findings"
    proofs = [f"{totals[proof]} {proof}" for proof in ("verified", "reported") if totals[proof]]
    done = f"{totals['done']} of {totals['steps']} done" if totals["steps"] else "no steps"
    done += f" ({', '.join(proofs)})" if proofs else ""
    cost = f"{count(totals['planning_calls'], 'planning call')}, {totals['characters']:,} characters"
    yield f"{one_line(title)}: {number}; {done}, {cost}."
    for code, rule in FINDINGS.items():
        findings = [finding for finding in found.findings if finding.code == code]
        if not findings:
            continue
        yield ""
        yield f"{code}: {rule.meaning}"
        if rule.prevented_by is not None:
            yield f"  PlanPolicy({rule.prevented_by}) guards against it."
        for finding in findings[:_SHOWN]:
            by = "" if finding.actor is None else f" ({one_line(finding.actor)})"
            yield f"  {finding.version:>5}  {finding.message}{by}"
        if len(findings) > _SHOWN:
            yield f"         and {len(findings) - _SHOWN:,} more; --json lists all"
        if code == "done_without_call" and not totals["calls"]:
            yield _NO_CALLS
    if found.findings and found.abandoned:
        yield ""
    for first, last in found.abandoned:
        versions = f"Version {first} was" if first == last else f"Versions {first} to {last} were"
        yield f"{versions} taken back by a rewind and not judged."
