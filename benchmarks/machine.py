"""Where and with what a part was measured."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

__all__ = ["commit", "measured", "today"]


def measured(packages: Iterable[str]) -> str:
    """Name the date, the source, the interpreter, the processor, and the versions of ``packages``."""
    versions = ", ".join(f"{name} {version(name)}" for name in packages)
    return (
        f"Measured on {today()} at commit {commit()}, with {platform.python_implementation()}"
        f" {platform.python_version()} on {platform.system()}, {os.cpu_count()} processors ({_processor()});"
        f" {versions}."
    )


def today() -> str:
    """The date, in UTC."""
    return datetime.now(UTC).strftime("%Y-%m-%d")


def commit() -> str:
    """The last commit that changed what is measured."""
    run = subprocess.run(
        ["git", "log", "-1", "--format=%h", "--abbrev=9", "--", "src"],  # noqa: S607 - the git on the path
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        check=False,
    )
    return run.stdout.strip() or "unknown"


def _processor() -> str:
    """The model of the processor, where the system names it."""
    information = Path("/proc/cpuinfo")
    if information.is_file():
        for line in information.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
