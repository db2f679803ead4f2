"""The other process of the watch: ``python -m benchmarks.store_writer FILE SESSION MARKS`` marks a plan.

It prints, as JSON, when each mark began: by the clock that all processes of a machine share.
"""

from __future__ import annotations

import json
import sys
import time

from benchmarks.store_plans import mark_text, open_stored
from session.stores import SqliteStore

__all__ = ["PAUSE"]

PAUSE = 0.08
"""Seconds between marks: no multiple of the time after which a watch looks again."""


def main() -> int:
    """Mark step after step, each after a pause, and tell when."""
    path, session_id, marks = sys.argv[1], sys.argv[2], int(sys.argv[3])
    begun: list[int] = []
    store = SqliteStore(path)
    _, toolbox = open_stored(store, session_id)
    for number in range(marks):
        time.sleep(PAUSE)
        begun.append(time.monotonic_ns())
        if not toolbox.call("planning_mark_step", mark_text(number)).success:
            raise RuntimeError("the mark was refused")
    store.close()
    print(json.dumps(begun))
    return 0


if __name__ == "__main__":
    sys.exit(main())
