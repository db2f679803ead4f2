"""Which process runs a workflow, and whether it still lives: a killed one leaves its run as it was."""

from __future__ import annotations

import os
import platform
import re
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Final
from uuid import uuid4

_TOKEN: Final = re.compile(
    r"[-0-9a-f]{36}\.(?P<place>[0-9a-f]{16})\.(?P<process>[0-9]{1,9})\.(?P<start>[0-9]*)"
)


def new_token() -> str:
    """A token for a run of this process. It names the process; of the machine it has only a hash."""
    process = os.getpid()
    return f"{uuid4()}.{_place()}.{process}.{_start_of(process)[1]}"


def is_alive(token: str) -> bool | None:
    """Whether the process that made a token lives; None where that cannot be known, as on another machine.

    Args:
        token: As ``new_token`` made it, or any other text.
    """
    found = _TOKEN.fullmatch(token)
    if found is None or found["place"] != _place() or os.name != "posix":
        return None
    process = int(found["process"])
    try:
        with suppress(PermissionError):  # another user's
            os.kill(process, 0)
    except ProcessLookupError:
        return False
    state, start = _start_of(process)
    if not (start and found["start"]):
        return None  # another process may have its number by now
    return start == found["start"] and state not in "ZX"


@cache
def _place() -> str:
    """A hash of what tells this machine, its last start and its container from others."""
    known = [platform.node()]
    with suppress(OSError):  # not Linux
        known.append(Path("/proc/sys/kernel/random/boot_id").read_text("ascii"))
        known.append(str(Path("/proc/self/ns/pid").readlink()))
    return blake2b("\n".join(known).encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def _start_of(process: int) -> tuple[str, str]:
    """The state of a process and when it began, as Linux has them; empty where they cannot be read."""
    try:
        fields = Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()
        return fields[0].decode("ascii"), fields[19].decode("ascii")
    except (OSError, IndexError):
        return "", ""
