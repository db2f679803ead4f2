"""What the steps of the report call, on whichever machine."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from planning.tools import tool


def _note(name: str) -> None:
    """Write down that a step was called: what would be a mail or a payment in earnest."""
    with (Path(os.environ["CALLS"])).open("a") as file:
        file.write(f"{name}\n")


@tool
def fetch(region: str) -> list[int]:
    """Fetch the sales of a region."""
    _note(f"fetch {region}")
    return {"north": [3, 4], "south": [5, 6]}[region]


@tool
def total(sales: list[Any]) -> int:
    """Add sales up, which takes a while."""
    _note("total")
    time.sleep(2)
    return sum(sum(each) for each in sales)


@tool(idempotent=False)
def send(result: int) -> str:
    """Send the report, which must not happen twice."""
    _note("send")
    return f"sent {result}"


TOOLS = [fetch, total, send]
