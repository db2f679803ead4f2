"""Where and with what the figures were measured."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

__all__ = ["describe_machine"]

WEIGHTY = ("pydantic", "langchain-core", "langgraph", "jsonschema-rs")
"""Libraries under the doors whose version moves the figures."""


def describe_machine(packages: Iterable[str]) -> dict[str, str]:
    """Name the date, the interpreter, the processor, and the versions of ``packages``."""
    named = sorted({*packages, *WEIGHTY})
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": platform.system(),
        "processor": _processor(),
        "processors": str(os.cpu_count()),
        "versions": ", ".join(f"{name} {version(name)}" for name in named),
    }


def _processor() -> str:
    """The model of the processor, where the system tells it."""
    information = Path("/proc/cpuinfo")
    if information.is_file():
        for line in information.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
