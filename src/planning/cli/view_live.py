"""A replay in a terminal: the plan redrawn at each change, refused calls scrolling by above it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from types import MappingProxyType
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from planning.cli.printable import one_line, printable
from planning.cli.replay import Changed, PassedOver, Read, Record, Refused, Tally
from planning.commands import AddStep, MarkStep, UpdateStep
from planning.model import Plan, PlanStep, StepStatus, index_of

__all__ = ["final_frame", "frame", "show_live"]

# status -> (mark, mark where only ASCII prints, style)
_MARKS: Final = MappingProxyType[StepStatus, tuple[str, str, str]]({
    "pending": ("○", ".", "dim"),
    "in_progress": ("▶", ">", "bold yellow"),
    "blocked": ("■", "!", "bold red"),
    "done": ("✓", "x", "green"),
})  # fmt: skip
_NOTES_BESIDE = 72  # columns from which a note has a column of its own
_WIDEST_BAR = 30
_NARROWEST_BAR = 6
_ROUND_STEPS = 5  # lines of a frame that are not steps: three blank ones, the objective, the counts


def show_live(
    console: Console,
    prompt: str,
    records: Iterable[Record],
    *,
    pause: Callable[[], None] = lambda: None,
) -> None:
    """Print the prompt section, then draw the plan again for each record, and leave the final plan.

    Args:
        console: A terminal.
        prompt: The prompt section.
        records: What became of each call.
        pause: Called after each drawing.
    """
    console.print(Text(prompt, style="dim"))
    console.print()
    plan: Plan | None = None
    at, tally = 0, Tally()
    with Live(console=console, auto_refresh=False, vertical_overflow="crop") as live:
        for record in records:
            tally = tally.after(record)
            match record:
                case PassedOver():
                    continue
                case Refused():
                    console.print(_refusal(record))
                case Read():
                    plan = record.plan
                case Changed():
                    plan, at = record.plan, _place(record)
            live.update(frame(console, plan, tally, at), refresh=True)
            pause()
        live.update(final_frame(console, plan, tally), refresh=True)


def frame(console: Console, plan: Plan | None, tally: Tally, at: int = 0) -> RenderableType:
    """The plan as it is while calls come in: cut to the terminal, a step at most two lines.

    Args:
        console: Where it will be drawn; its size decides what fits.
        plan: The plan, if there is one.
        tally: The calls so far.
        at: The index of the step that changed last: it stays in sight.
    """
    if plan is None:
        return Group("", _counts(console, "no plan", tally))
    steps = _window(plan.steps, at, max(1, console.height - _ROUND_STEPS), beside=_beside(console))
    table = _table()
    if _beside(console):
        table.add_column(ratio=3, no_wrap=True)
        table.add_column(ratio=2, no_wrap=True, style="dim")
    else:
        table.add_column(ratio=1, no_wrap=True)
    for step in steps:
        title, note = _title(step), Text(one_line(step.notes[-1]) if step.notes else "", style="dim")
        cells = (title, note) if _beside(console) else (Group(title, note) if step.notes else title,)
        table.add_row(_mark(console, step), step.step_id, *cells)
    objective = Text(printable(plan.objective), style="bold", no_wrap=True, overflow="ellipsis")
    # The last line is blank for the ^C of whoever interrupts: elsewhere it would shift the drawing.
    return Group("", objective, _counts(console, _progress(plan), tally, plan), "", table, "")


def final_frame(console: Console, plan: Plan | None, tally: Tally) -> RenderableType:
    """The plan at the end, whole: every title, detail and note, however many lines they take."""
    if plan is None:
        return Group("", "no plan", "", str(tally))
    table = _table()
    table.add_column(ratio=1, overflow="fold")
    for step in plan.steps:
        texts = [
            *(step.details or "").split("\n"),
            *("- " + note.replace("\n", "\n  ") for note in step.notes),
        ]
        more = [Text(_printable_lines(text), style="dim") for text in texts if text]
        table.add_row(_mark(console, step), step.step_id, Group(_title(step), *more))
    objective = Text(printable(plan.objective), style="bold")
    return Group("", objective, _counts(console, _progress(plan), tally, plan), "", table, "", str(tally))


def _table() -> Table:
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    return table


def _beside(console: Console) -> bool:
    return console.width >= _NOTES_BESIDE


def _window(steps: Sequence[PlanStep], at: int, lines: int, *, beside: bool) -> Sequence[PlanStep]:
    """The steps that fit on so many lines, with the one at an index among them."""
    heights = [1 if beside or not step.notes else 2 for step in steps]
    first = min(at, len(steps))
    last, used = first, 0
    while True:
        if last < len(steps) and used + heights[last] <= lines:
            used += heights[last]
            last += 1
        elif first > 0 and used + heights[first - 1] <= lines:
            first -= 1
            used += heights[first]
        else:
            return steps[first:last]


def _counts(console: Console, words: str, tally: Tally, plan: Plan | None = None) -> RenderableType:
    text = Text(words, no_wrap=True, overflow="ellipsis")
    if tally.refused:
        text.append(f", {tally.refused} refused", style="red")
    width = min(_WIDEST_BAR, console.width - text.cell_len - 2)
    if plan is None or not plan.steps or width < _NARROWEST_BAR:
        return text
    line = Table.grid(padding=(0, 1))
    line.add_row(ProgressBar(total=len(plan.steps), completed=_done(plan), width=width), text)
    return line


def _progress(plan: Plan) -> str:
    return f"{plan.status}, {_done(plan)} of {len(plan.steps)} done"


def _done(plan: Plan) -> int:
    return sum(step.status == "done" for step in plan.steps)


def _mark(console: Console, step: PlanStep) -> Text:
    mark, plain, style = _MARKS[step.status]
    return Text(plain if console.options.ascii_only else mark, style=style)


def _title(step: PlanStep) -> Text:
    return Text(printable(step.title), style="bold" if step.status == "in_progress" else "")


def _printable_lines(text: str) -> str:
    return "\n".join(printable(line.expandtabs(4)) for line in text.split("\n"))


def _refusal(record: Refused) -> RenderableType:
    line = Table.grid(padding=(0, 1))
    line.add_column(no_wrap=True)
    line.add_column(overflow="fold")
    said = Text.assemble((printable(record.name), "bold"), "  ", _printable_lines(record.reason))
    line.add_row(Text("refused", style="red"), said)
    return line


def _place(record: Changed) -> int:
    """The index of the step that a call changed."""
    match record.command:
        case MarkStep() | UpdateStep():
            return index_of(record.plan.steps, record.command.step_id) or 0
        case AddStep():
            return len(record.plan.steps) - len(record.command.steps)
        case _:
            return 0
