"""The proof in README and docs: ``python -m benchmarks.picture`` writes it from proof.json.

That is proof.svg, and the first table of docs/figures.md. Every bar begins at zero, and the bars of a panel
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
PEERS = ("langchain", "pydantic-ai-harness", "agentscope", "weakincentives")
"""The columns of the table."""
QUOTING = ("README.md", "docs/figures.md")
"""The pages that show them."""
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
        name: Who it belongs to.
        figure: What the bar's length shows.
        shown: The figure in words.
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
        whole: What a full bar is.
    """

    title: str
    what: str
    bars: list[Bar]
    whole: float = 1.0


def draw_proof(figures: Mapping[str, Any]) -> str:
    """Draw the stored figures as SVG."""
    panels = _panels(figures)
    tall = HEAD + ROW * max(len(panel.bars) for panel in panels) + GAP
    height = MARGIN + (len(panels) + 1) // 2 * tall + 24
    measured = figures["measured"]
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}"'
        f' height="{height}" role="img" aria-labelledby="title">',
        f'<title id="title">{escape(" ".join(map(_words, panels)))}</title>',
        f"<style>\n{STYLE}\n</style>",
        f'<rect class="paper" x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1}" rx="6"/>',
    ]
    for place, panel in enumerate(panels):
        left = MARGIN + place % 2 * (COLUMN + GUTTER)
        lines += _panel(panel, left, MARGIN + place // 2 * tall)
    foot = f"Counted on {measured['date']} at commit {measured['commit']}: benchmarks/RESULTS.md"
    lines += [f'<text class="foot" x="{MARGIN}" y="{height - 16}">{escape(foot)}</text>', "</svg>"]
    return "\n".join(lines) + "\n"


def _panels(figures: Mapping[str, Any]) -> list[Panel]:
    refusals, crashes = figures["refusals"], figures["crashes"]
    misspelt, two = refusals["a misspelt argument"], refusals["two of these at once"]
    lengths = {name: each["characters"] / each["refused"] for name, each in two.items()}
    return [
        Panel(
            "Misspelt names that the refusal corrects",
            f"{misspelt[OURS]['calls']:,} calls of a public benchmark; longer is better",
            [_share(name, each["suggested"], each["faults"]) for name, each in misspelt.items()],
        ),
        Panel(
            "Characters in a refusal of two mistakes",
            f"mean of {two[OURS]['calls']:,} calls; shorter is better",
            [Bar(name, length, f"{length:.0f}") for name, length in lengths.items()],
            whole=max(lengths.values()),
        ),
        Panel(
            "Characters to finish a 20-step plan",
            "prompt, schemas, calls and results; shorter is better",
            [Bar(name, total, f"{total:,}") for name, total in figures["characters"].items()],
            whole=max(figures["characters"].values()),
        ),
        Panel(
            "Earlier plans restored exactly",
            "from versions, checkpoints or snapshots",
            [_share(name, exact, asked) for name, (asked, exact) in figures["rewinds"].items()],
        ),
        Panel(
            "Kept after kill -9",
            "acknowledged changes of 100 killed processes",
            [_share(name, each["kept"], _made(each)) for name, each in crashes["killed"].items()],
        ),
        Panel(
            "Kept when two processes edit the same steps",
            "one edits titles, the other statuses, at once",
            [_share(name, each["kept"], _made(each)) for name, each in crashes["edited"].items()],
        ),
    ]


def _made(kept: Mapping[str, int]) -> int:
    """The changes that a process tried to make."""
    return kept["acknowledged"] + kept["failed"]


def _share(name: str, part: int, whole: int) -> Bar:
    return Bar(name, part / whole if whole else 0, f"{part:,} of {whole:,}")


def _words(panel: Panel) -> str:
    """A panel in words, for screen readers."""
    return f"{panel.title} ({panel.what}): {', '.join(f'{bar.name} {bar.shown}' for bar in panel.bars)}."


def _panel(panel: Panel, left: float, top: float) -> Iterator[str]:
    room = COLUMN - NAME - VALUE - 12
    yield f'<text class="title" x="{left:g}" y="{top + 14}">{escape(panel.title)}</text>'
    yield f'<text class="what" x="{left:g}" y="{top + 32}">{escape(panel.what)}</text>'
    for number, bar in enumerate(panel.bars):
        y = top + HEAD + number * ROW
        lengths = {"whole": room, "ours" if bar.name == OURS else "peer": room * bar.figure / panel.whole}
        yield f'<text x="{left:g}" y="{y + 11:g}">{escape(bar.name)}</text>'
        for kind, length in lengths.items():
            place = f'x="{left + NAME:g}" y="{y:g}" width="{length:.1f}" height="{BAR}"'
            yield f'<rect class="{kind}" {place} rx="2"/>'
        yield f'<text x="{left + COLUMN:g}" y="{y + 11:g}" text-anchor="end">{escape(bar.shown)}</text>'


def quote_proof(page: str, figures: Mapping[str, Any]) -> str:
    """Write the stored figures into the text of a page: the rows of its table, and their commit."""
    totals = {name: f"{total:,}" for name, total in figures["characters"].items()}
    plans = {name: f"{exact:,} of {asked:,}" for name, (asked, exact) in figures["rewinds"].items()}
    kept = {
        what: {name: f"{each['kept']:,} of {_made(each):,}" for name, each in by_kind.items()}
        for what, by_kind in figures["crashes"].items()
    }
    no_file = dict.fromkeys(PEERS, "no file")
    rows = {
        "characters to finish a 20-step plan": {"agentscope": "not counted", **totals},
        "changes kept when two processes edit the same steps": {**no_file, **kept["edited"]},
        "acknowledged changes kept after `kill -9`": {
            **no_file,
            "langchain": "not counted",
            **kept["killed"],
        },
        "earlier plans restored exactly": {**dict.fromkeys(PEERS, "none kept"), **plans},
    }
    for what, row in rows.items():
        line = f"| {' | '.join([what, *(row[name] for name in (OURS, *PEERS))])} |"
        page = re.sub(rf"^\| {re.escape(what)} \|.*$", line, page, flags=re.MULTILINE)
    return re.sub(r"(?<=at commit )\w+", figures["measured"]["commit"], page)


def write_shown(figures: Mapping[str, Any]) -> None:
    """Write the picture, and the figures of the pages."""
    (FOLDER / "proof.svg").write_text(draw_proof(figures), encoding="utf-8")
    for name in QUOTING:
        page = FOLDER.parent / name
        page.write_text(quote_proof(page.read_text(encoding="utf-8"), figures), encoding="utf-8")


def main() -> int:
    """Write what the pages show of the stored figures."""
    write_shown(json.loads((FOLDER / "proof.json").read_text(encoding="utf-8")))
    return 0


if __name__ == "__main__":
    sys.exit(main())
