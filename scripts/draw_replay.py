"""Draw a replay as a moving picture: ``python scripts/draw_replay.py [TRANSCRIPT] > PICTURE.svg``.

The calls of the transcript are carried out as ``planning replay`` does, and what it draws in a terminal of
100 columns becomes a frame of the picture: SVG with CSS, no script. With reduced motion it is the last frame.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html import escape
from io import StringIO
from pathlib import Path

from rich.cells import cell_len
from rich.console import Console
from rich.segment import Segment
from rich.style import Style
from rich.text import Text

from planning.cli.faces import frame
from planning.cli.progress import Progress
from planning.cli.replay import replay_lines
from planning.cli.terminal import TROUBLE
from planning.cli.transcript import parse_transcript

ROOT = Path(__file__).resolve().parent.parent
TRANSCRIPT = "examples/triage.jsonl"
COLUMNS = 100
ASIDES = 3
"""Lines above the plan for the last refusal."""
ROWS = ASIDES + 12
CELL, LINE, SIZE = 7.8, 19, 13
LEFT, TOP = 20, 54
SECONDS = {"change": 0.6, "refusal": 1.1, "last": 3.0}
"""How long a frame is seen, by what is new in it."""
NAMES = {
    "green": "done",
    "red": "bad",
    "yellow": "now",
    "grey23": "rest",
    "rgb(249,38,114)": "bar",
    "rgb(114,156,31)": "done",
}
"""The colours of rich, and the class that draws each."""
STYLE = """\
:root { color-scheme: light dark }
.paper { fill: #ffffff; stroke: #d1d9e0 }
.bar-line { stroke: #d1d9e0 }
text { font: 13px ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; fill: #1f2328 }
.dim { fill: #59636e }
.bold { font-weight: 700 }
.done { fill: #1a7f37 }
.bad { fill: #cf222e }
.now { fill: #9a6700 }
.bar { fill: #0969da }
.rest { fill: #d1d9e0 }
@media (prefers-color-scheme: dark) {
  .paper { fill: #0d1117; stroke: #3d444d }
  .bar-line { stroke: #3d444d }
  text { fill: #f0f6fc }
  .dim { fill: #a3adb8 }
  .done { fill: #3fb950 }
  .bad { fill: #ff7b72 }
  .now { fill: #d29922 }
  .bar { fill: #4493f8 }
  .rest { fill: #3d444d }
}"""


def main() -> int:
    """Write the picture to standard output."""
    given = sys.argv[1] if len(sys.argv) > 1 else TRANSCRIPT
    sys.stdout.reconfigure(encoding="utf-8")
    sys.stdout.write(draw(given))
    return 0


def draw(transcript: str) -> str:
    """The replay of a transcript as SVG.

    Args:
        transcript: A file, from the root of the project.
    """
    frames = list(_frames((ROOT / transcript).read_bytes()))
    frames[-1] = (frames[-1][0], "last")
    whole = sum(SECONDS[kind] for _, kind in frames)
    width, height = round(2 * LEFT + COLUMNS * CELL), TOP + ROWS * LINE
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"'
        f' height="{height}" role="img" aria-labelledby="title">',
        f'<title id="title">planning replay {escape(transcript)}: a plan as a model changes it, step by'
        " step, and what it was refused.</title>",
        f"<style>\n{STYLE}\n{_motion(whole)}\n</style>",
        f'<rect class="paper" x=".5" y=".5" width="{width - 1}" height="{height - 1}" rx="8"/>',
        f'<path class="bar-line" d="M1 34.5H{width - 1}"/>',
        f'<text class="dim" x="{LEFT}" y="22">$ planning replay {escape(transcript)}</text>',
    ]
    start = 0.0
    for rows, kind in frames:
        lines.append(f'<g class="frame {kind}" style="animation-delay:{start:.1f}s">')
        lines += [line for number, row in enumerate(rows) for line in _drawn(row, number)]
        lines.append("</g>")
        start += SECONDS[kind]
    return "\n".join([*lines, "</svg>"]) + "\n"


def _motion(whole: float) -> str:
    """Each frame is hidden but for its own part of every round; without motion, all but the last are."""
    rules = [".frame { visibility: hidden }", ".last { visibility: visible }"]
    moving = []
    for kind, seconds in SECONDS.items():
        share = f"{100 * seconds / whole:.3f}%"
        seen, over = "0% { visibility: visible }", f"{share}, 100% {{ visibility: hidden }}"
        rules.append(f"@keyframes {kind} {{ {seen} {over} }}")
        moving.append(f"  .{kind} {{ animation: {kind} {whole:.1f}s step-end infinite; visibility: hidden }}")
    return "\n".join([*rules, "@media (prefers-reduced-motion: no-preference) {", *moving, "}"])


def _frames(data: bytes) -> Iterator[tuple[list[list[Segment]], str]]:
    """What the terminal shows after each call, as rows of segments, and what is new."""
    console = Console(
        file=StringIO(),
        width=COLUMNS,
        height=2 * ROWS,
        force_terminal=True,
        color_system="truecolor",
        _environ={},
    )
    progress = Progress()
    above: list[list[Segment]] = []
    for _, lines in replay_lines(parse_transcript(data), progress):
        if not lines:
            continue
        line, style = lines[0]
        is_refusal = style == TROUBLE
        above = _aside(console, line) if is_refusal else [_faded(row) for row in above]
        shown = console.render_lines(frame(console, progress), pad=False)
        rows = [*above[:ASIDES], *[[] for _ in range(ASIDES - len(above))], *shown]
        yield rows, "refusal" if is_refusal else "change"


def _aside(console: Console, line: str) -> list[list[Segment]]:
    refused, _, rest = line.partition(" ")
    text = Text.assemble((refused, "bold red"), f" {rest.replace(' | ', '; ')}")
    return console.render_lines(text, pad=False)


def _faded(row: list[Segment]) -> list[Segment]:
    return [Segment(segment.text, Style(dim=True)) for segment in row]


def _drawn(row: list[Segment], number: int) -> Iterator[str]:
    """The segments of a row, each at its column and as wide as in a terminal, whatever font there is."""
    column = 0
    for segment in row:
        text = segment.text.strip()
        if text:
            blanks = len(segment.text) - len(segment.text.lstrip())
            x, y = LEFT + (column + blanks) * CELL, TOP + number * LINE
            yield (
                f'<text{_class(segment.style)} x="{x:g}" y="{y}" textLength="{cell_len(text) * CELL:g}">'
                f"{escape(text, quote=False)}</text>"
            )
        column += cell_len(segment.text)


def _class(style: Style | None) -> str:
    if style is None:
        return ""
    names = [name for name, has in (("bold", style.bold), ("dim", style.dim)) if has]
    if style.color is not None:
        color = style.color
        rgb = "" if color.triplet is None else color.triplet.rgb
        names.append(NAMES[color.name if color.name in NAMES else rgb])
    return f' class="{" ".join(names)}"' if names else ""


if __name__ == "__main__":
    sys.exit(main())
