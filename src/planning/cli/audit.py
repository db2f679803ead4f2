"""``planning audit``: what the history of a session says of its plan."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import attrs
import typer

from planning.cli.session_names import OneSession
from planning.cli.source import AsJson, name_of, read_bytes
from planning.cli.terminal import as_json, columns, count, say
from planning.cli.usage import Refused, bad_option
from planning.errors import one_line, show

if TYPE_CHECKING:
    from planning.observe.audit import Audit, Finding

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


class AuditFormat(StrEnum):
    """Who reads the findings."""

    TEXT = "text"
    JSON = "json"
    GITHUB = "github"


def audit(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE", help="A store; or a file with one session, or - for standard input."
        ),
    ],
    session: OneSession = None,
    *,
    as_json_: AsJson = False,
    form: Annotated[
        AuditFormat,
        typer.Option(
            "--format",
            case_sensitive=False,
            help="text: for a person; json: every finding with its fields; github: annotations of a pull"
            " request.",
        ),
    ] = AuditFormat.TEXT,
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
    from planning.observe.audit import FINDINGS

    failing = set() if fail_on is None else {name.strip() for name in fail_on.split(",")}
    for name in sorted(failing - FINDINGS.keys()):
        raise bad_option("--fail-on", f"no finding is named {show(name)}; use {', '.join(FINDINGS)}")
    title, found, problem = _audited(source, session)
    if as_json_ or form is AuditFormat.JSON:
        typer.echo(as_json(_fields(title, found)))
    elif form is AuditFormat.GITHUB:
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


def _audited(source: str, session: str | None) -> tuple[str, Audit, str]:
    """What is audited by name, the audit, and what of the history cannot be read."""
    from planning.cli.kinds import is_store, kind_of, refuse_other
    from planning.cli.loading import replayed_moments, session_of
    from planning.cli.replay import MOST_BYTES
    from planning.observe.audit import audit_plan
    from planning.plan.facts import PlanFacts
    from planning.plan.model import Plan
    from planning.workflow.run.records import WorkflowRun

    if session is not None or is_store(source):
        return _audited_store(source, session)
    data = read_bytes(source, "SOURCE", most=MOST_BYTES)
    title = "standard input" if source == "-" else Path(source).name
    kind = kind_of(data)
    if kind == "snapshot":
        taken = session_of(data, source)
        plan, run = taken.select_latest(Plan), taken.select_latest(WorkflowRun)
        return title, audit_plan((), plan, taken.select_latest(PlanFacts), run), ""
    if kind != "transcript":
        refuse_other(data, source, "a session")
        raise Refused(f"{name_of(source)} is not a store, a snapshot or a transcript")
    found = audit_plan(replayed_moments(data, source))
    timeless = [attrs.evolve(finding, at=None) for finding in found.findings]
    return title, attrs.evolve(found, findings=tuple(timeless)), ""


def _audited_store(source: str, session: str | None) -> tuple[str, Audit, str]:
    from planning.cli.history import timeline_of
    from planning.observe.audit import audit_plan
    from planning.observe.text import line_of
    from session.stores import StoreError

    damage: list[StoreError] = []
    with timeline_of(source, session, 0) as timeline:

        def sound() -> Iterator[Any]:
            try:
                yield from timeline.new()
            except StoreError as error:
                damage.append(error)

        found = audit_plan(sound())
        damage += [timeline.problem] if timeline.problem is not None else []
        return str(timeline.session.session_id), found, "; ".join(map(line_of, damage))


def _fields(title: str, found: Audit) -> dict[str, Any]:
    from planning.observe.audit import FINDINGS

    findings = []
    for finding in found.findings:
        rule = FINDINGS[finding.code]
        at = None if finding.at is None else finding.at.isoformat()
        kind = {"severity": rule.severity, "prevented_by": rule.prevented_by}
        findings.append({**attrs.asdict(finding), "at": at, **kind})
    return {"source": title, "findings": findings, "totals": found.totals, "abandoned": found.abandoned}


def _annotation(finding: Finding) -> str:
    from planning.cli.validate import annotation
    from planning.observe.audit import FINDINGS

    severity = FINDINGS[finding.code].severity
    return annotation(severity, f"Version {finding.version}: {finding.message}", title=finding.code)


def _lines(title: str, found: Audit) -> Iterator[str]:
    """The audit for a person: findings by their kind, then what planning cost."""
    from planning.observe.audit import FINDINGS

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
