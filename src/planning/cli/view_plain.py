"""A replay as lines of text: the same for the same transcript, one line for each change."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from planning.cli.printable import one_line
from planning.cli.replay import Changed, Read, Record, Refused, Tally
from planning.commands import AddStep, ClearPlan, MarkStep, SetupPlan, UpdateStep
from planning.model import Plan, PlanStep, index_of
from planning.render import plan_text

__all__ = ["record_lines", "show_plain"]

_SUBJECT = 7  # "refused"
_WHAT = 22  # "in_progress -> blocked"


def show_plain(
    echo: Callable[[str], object],
    prompt: str,
    records: Iterable[Record],
    *,
    pause: Callable[[], object] = lambda: None,
) -> None:
    """Print the prompt section, what each record changed, the final plan and the counts.

    Args:
        echo: Prints a line.
        prompt: The prompt section.
        records: What became of each call.
        pause: Called after each record.
    """
    for line in ("== Prompt ==", prompt, "", "== Changes =="):
        echo(line)
    plan, tally = None, Tally()
    for record in records:
        tally = tally.after(record)
        if isinstance(record, Changed):
            plan = record.plan
        for line in record_lines(record):
            echo(line)
        pause()
    final = "no plan" if plan is None else plan_text(plan)
    for line in ("", "== Final plan ==", final, "", str(tally)):
        echo(line)


def record_lines(record: Record) -> Iterator[str]:
    """What one call did: nothing for a call to another tool."""
    match record:
        case Changed():
            yield from _changed(record)
        case Read(plan):
            yield _line("plan", "read", f"{plan.status}, {_done(plan)}")
        case Refused(name, reason):
            yield _line("refused", name, _reason(reason))
        case _:
            return


def _changed(record: Changed) -> Iterator[str]:
    plan, before = record.plan, record.before
    match record.command:
        case SetupPlan():
            count = len(plan.steps)
            yield _line("plan", f"set, {count} step{'' if count == 1 else 's'}", plan.objective)
            yield from (_line(step.step_id, "new", step.title) for step in plan.steps)
        case AddStep(steps):
            yield from (_line(step.step_id, "new", step.title) for step in plan.steps[-len(steps) :])
        case UpdateStep(step_id, title, details):
            if title is not None:
                yield _line(step_id, "title", title)
            if details is not None:
                yield _line(step_id, "details", details)
        case MarkStep(step_id, status, note):
            step = _step(plan, step_id)
            old = step if before is None else _step(before, step_id)
            yield _line(step_id, _move(old.status, status), step.title)
            if note is not None:
                yield _line(step_id, "note", note)
            if before is not None and before.status != plan.status:
                yield _line("plan", _move(before.status, plan.status), plan.objective)
        case ClearPlan():
            old_status = plan.status if before is None else before.status
            yield _line("plan", _move(old_status, plan.status), plan.objective)


def _line(subject: str, what: str, text: str) -> str:
    return f"{subject:<{_SUBJECT}}  {one_line(what):<{_WHAT}}  {one_line(text)}"


def _move(old: str, new: str) -> str:
    return new if old == new else f"{old} -> {new}"


def _step(plan: Plan, step_id: str) -> PlanStep:
    index = index_of(plan.steps, step_id)
    assert index is not None  # noqa: S101 - the call was carried out; tells the type checker
    return plan.steps[index]


def _done(plan: Plan) -> str:
    return f"{sum(step.status == 'done' for step in plan.steps)} of {len(plan.steps)} done"


def _reason(reason: str) -> str:
    """Why a call was refused, on one line, however many problems it had."""
    first, *problems = reason.split("\n")
    shown = " | ".join(one_line(problem.removeprefix("- ")) for problem in problems)
    return f"{one_line(first)} {shown}".strip()
