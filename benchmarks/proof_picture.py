"""What the README shows of the proof: ``python -m benchmarks.proof_picture`` writes it from proof.json.

That is proof.svg, and the first rows of the README's table. Every bar begins at zero, and the bars of a panel
have one scale. It needs the standard library alone.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

__all__ = ["draw_proof", "quote_proof", "write_shown"]

FOLDER = Path(__file__).resolve().parent
OURS = "session-planning"
WIDTH, MARGIN, GUTTER = 840, 24, 32
COLUMN = (WIDTH - 2 * MARGIN - GUTTER) / 2
NAME, VALUE = 138, 98
"""The room for a bar's name, left of it, and for its figure at the longest, right of it."""
BAR, ROW, HEAD, GAP = 14, 24, 50, 20
STYLE = """\
:root { color-scheme: light dark }
text { font: 13px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; fill: #1f2328 }
.title { font-size: 14px; font-weight: 600 }
.what, .foot { font-size: 12px; fill: #59636e }
.paper { fill: #ffffff; stroke: #d1d9e0 }
.whole { fill: #eef1f4 }
.ours { fill: #0969da }
.peer { fill: #8c959f }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc }
  .what, .foot { fill: #a3adb8 }
  .paper { fill: #0d1117; stroke: #3d444d }
  .whole { fill: #1c222a }
  .ours { fill: #4493f8 }
  .peer { fill: #7d8590 }
}"""


@dataclass(frozen=True, slots=True)
class Bar:
    """One figure.

    Attributes:
        name: Whose it is.
        figure: What the bar's length shows.
        shown: The figure as it is written.
    """

    name: str
    figure: float
    shown: str


@dataclass(frozen=True, slots=True)
class Panel:
    """Figures that are compared.

    Attributes:
        title: What was counted.
        what: Of what, and which way is better.
        bars: The figures.
        whole: What a full bar is, where the figures are shares; else the longest bar is full.
    """

    title: str
    what: str
    bars: tuple[Bar, ...]
    whole: float | None = 1.0


def draw_proof(figures: Mapping[str, Any]) -> str:
    """Draw the stored figures as SVG."""
    panels = list(_panels(figures))
    tall = HEAD + ROW * max(len(panel.bars) for panel in panels) + GAP
    height = MARGIN + (len(panels) + 1) // 2 * tall + 24
    measured = figures["measured"]
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}"'
        f' height="{height}" role="img" aria-labelledby="title">',
        f'<title id="title">{escape(_told(panels))}</title>',
        f"<style>\n{STYLE}\n</style>",
        f'<rect class="paper" x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1}" rx="6"/>',
    ]
    for place, panel in enumerate(panels):
        left = MARGIN + place % 2 * (COLUMN + GUTTER)
        lines += _panel(panel, left, MARGIN + place // 2 * tall)
    foot = f"Counted {measured['date']} of the source at commit {measured['commit']}: benchmarks/RESULTS.md"
    lines += [f'<text class="foot" x="{MARGIN}" y="{height - 16}">{escape(foot)}</text>', "</svg>"]
    return "\n".join(lines) + "\n"


def _panels(figures: Mapping[str, Any]) -> Iterator[Panel]:
    misspelt = figures["repairs"]["broken"]["a misspelt argument"]
    calls = misspelt[OURS]["calls"]
    yield Panel(
        "The right name, in the refusal of a misspelt one",
        f"{calls:,} calls of a public benchmark; longer is better",
        tuple(_share(name, each["suggested"], each["faults"]) for name, each in misspelt.items()),
    )
    two = figures["repairs"]["broken"]["two of these at once"]
    lengths = {name: each["characters"] / each["refused"] for name, each in two.items()}
    yield Panel(
        "Characters of a refusal of two faults",
        f"mean of {two[OURS]['calls']:,} calls; shorter is better",
        tuple(Bar(name, length, f"{length:.0f}") for name, length in lengths.items()),
        whole=None,
    )
    totals = {
        name.partition(",")[0]: total
        for name, total in figures["characters"].items()
        if "in progress" not in name
    }
    yield Panel(
        "Characters of a plan of 20 steps",
        "prompt, schemas, calls and results to its end; shorter is better",
        tuple(Bar(name, total, f"{total:,}") for name, total in totals.items()),
        whole=None,
    )
    yield Panel(
        "Earlier plans, exactly restored",
        "each its own way: versions, checkpoints, snapshots",
        tuple(
            _share(name.partition(",")[0], exact, asked)
            for name, (asked, exact) in figures["rewinds"]["restored"].items()
        ),
    )
    yield Panel(
        "Kept after kill -9",
        "acknowledged changes of 100 killed processes",
        tuple(_share(name, each["kept"], each["acknowledged"]) for name, each in _kept(figures, "killed")),
    )
    yield Panel(
        "Kept when two change the same steps",
        "one process the titles, one the statuses, at once",
        tuple(
            _share(name, each["kept"], each["acknowledged"] + each["failed"])
            for name, each in _kept(figures, "edited")
        ),
    )


def _kept(figures: Mapping[str, Any], what: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield from figures["crashes"][what].items()


def _share(name: str, part: int, whole: int) -> Bar:
    return Bar(name, part / whole if whole else 0, f"{part:,} of {whole:,}")


def _told(panels: list[Panel]) -> str:
    """Everything in words, for those who hear the picture."""
    return " ".join(
        f"{panel.title} ({panel.what}): {', '.join(f'{bar.name} {bar.shown}' for bar in panel.bars)}."
        for panel in panels
    )


def _panel(panel: Panel, left: float, top: float) -> Iterator[str]:
    most = panel.whole or max(bar.figure for bar in panel.bars)
    room = COLUMN - NAME - VALUE - 12
    yield f'<text class="title" x="{left:g}" y="{top + 14}">{escape(panel.title)}</text>'
    yield f'<text class="what" x="{left:g}" y="{top + 32}">{escape(panel.what)}</text>'
    for place, bar in enumerate(panel.bars):
        y = top + HEAD + place * ROW
        kind = "ours" if bar.name == OURS else "peer"
        length = room * bar.figure / most
        yield f'<text x="{left:g}" y="{y + 11:g}">{escape(bar.name)}</text>'
        if panel.whole:
            yield (
                f'<rect class="whole" x="{left + NAME:g}" y="{y:g}" width="{room:g}" height="{BAR}" rx="2"/>'
            )
        yield (
            f'<rect class="{kind}" x="{left + NAME:g}" y="{y:g}" width="{length:.1f}" height="{BAR}" rx="2"/>'
        )
        yield (f'<text x="{left + COLUMN:g}" y="{y + 11:g}" text-anchor="end">{escape(bar.shown)}</text>')


def quote_proof(readme: str, figures: Mapping[str, Any]) -> str:
    """Write the stored figures into the README's text: the first rows of its table, and their commit."""
    characters, restored = figures["characters"], figures["rewinds"]["restored"]
    peer, langchain = "pydantic-ai-harness", "langchain, whole list at each step"
    talks = (f"{OURS}, done only", langchain, f"{peer}, done only", "weakincentives, done only")
    totals = [f"{characters[name]:,}" for name in talks]
    plans = [f"{exact:,} of {asked:,}" for asked, exact in restored.values()]
    killed, edited = dict(_kept(figures, "killed")), dict(_kept(figures, "edited"))
    none = "no file"
    rows = (
        ("characters of a plan of 20 steps, to its end", *totals[:3], "not counted", totals[3]),
        (
            "changes kept, two processes at the same steps",
            _of(edited[OURS]),
            none,
            _of(edited[peer]),
            none,
            none,
        ),
        (
            "acknowledged changes kept after `kill -9`",
            _of(killed[OURS]),
            "not counted",
            _of(killed[peer]),
            none,
            none,
        ),
        ("earlier plans, exactly restored", *plans[:2], "none kept", "none kept", plans[2]),
    )
    for row in rows:
        line = f"| {' | '.join(row)} |"
        readme = re.sub(rf"^\| {re.escape(row[0])} \|.*$", line, readme, flags=re.MULTILINE)
    commit = figures["measured"]["commit"]
    return re.sub(r"(?<=of the source at commit )\w+", commit, readme)


def _of(kept: Mapping[str, int]) -> str:
    return f"{kept['kept']:,} of {kept['acknowledged'] + kept['failed']:,}"


def write_shown(figures: Mapping[str, Any]) -> None:
    """Write the picture, and the README's rows."""
    (FOLDER / "proof.svg").write_text(draw_proof(figures), encoding="utf-8")
    readme = FOLDER.parent / "README.md"
    readme.write_text(quote_proof(readme.read_text(encoding="utf-8"), figures), encoding="utf-8")


def main() -> int:
    """Write what the README shows of the stored figures."""
    write_shown(json.loads((FOLDER / "proof.json").read_text(encoding="utf-8")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
