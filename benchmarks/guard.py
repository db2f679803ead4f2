"""The guard against losses: what ours costs beside its floor, against the figures of the last release."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks.harness import Cost, table

__all__ = ["KEPT", "guarded", "keep", "kept"]

KEPT = Path(__file__).parent / "kept.json"
"""By part and work, how many times its floor ours was when the last release was measured."""
MOST_LOST, ATTEMPTS = 1.25, 3
"""How many times its kept figure one may be, and how often a part is measured before it counts as lost."""

Costs = Mapping[str, Cost]
Kept = Mapping[str, Mapping[str, float]]


def guarded(parts: Sequence[str], measure: Callable[[str], Sequence[Cost]], before: Kept) -> tuple[str, bool]:
    """Measure parts, those with a loss again: a table of all figures, and whether none is lost.

    Of several attempts the least of ours and the least of the floor count: other work on the machine only
    adds to either.

    Args:
        parts: Their names.
        measure: Measures a part.
        before: The kept figures; work without one is shown and passes.
    """
    rows: list[list[str | float]] = []
    is_held = True
    for part in parts:
        least, lost = dict[str, Cost](), set[str]()
        for _ in range(ATTEMPTS):
            least = _merged(least, measure(part))
            lost = {what for what, cost in least.items() if _loss(cost, before.get(part, {})) > MOST_LOST}
            if not lost:
                break
        is_held = is_held and not lost
        for what, cost in least.items():
            old = before.get(part, {}).get(what)
            verdict = "new" if old is None else "LOST" if what in lost else "held"
            rows.append([f"{part}: {what}", "" if old is None else old, cost.times, verdict])
    return table(["times its floor", "kept", "now", ""], rows), is_held


def _merged(least: Costs, measured: Sequence[Cost]) -> dict[str, Cost]:
    merged = dict(least)
    for cost in measured:
        known = merged.get(cost.what, cost)
        merged[cost.what] = Cost(
            cost.what, min(cost.ours, known.ours), cost.floor, min(cost.least, known.least)
        )
    return merged


def _loss(cost: Cost, before: Mapping[str, float]) -> float:
    return cost.times / before.get(cost.what, cost.times)


def kept() -> dict[str, dict[str, float]]:
    """The kept figures by part; none before the first release with this guard."""
    found: dict[str, dict[str, float]] = (
        json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.is_file() else {}
    )
    return found


def keep(part: str, costs: Sequence[Cost]) -> None:
    """Keep the figures of a part in the place of its earlier ones."""
    figures = kept() | {part: {cost.what: round(cost.times, 3) for cost in costs}}
    KEPT.write_text(json.dumps(figures, indent=1, sort_keys=True) + "\n", encoding="utf-8")
