"""Who runs a workflow in a stored session: several processes may try to, and one does."""

from __future__ import annotations

import os
from pathlib import Path
from uuid import uuid4

import attrs

from session.events import SessionId

__all__ = ["RunOwner", "is_live_elsewhere", "owner_here"]

_STATE, _STARTED = 0, 19  # fields of /proc/PID/stat behind the program's name
_DEAD = frozenset("ZX")


@attrs.frozen(kw_only=True)
class RunOwner:
    """The process that runs a workflow.

    Attributes:
        run_id: The run.
        token: Differs each time that a run begins or is resumed.
        session_id: The session; a fork of it has other owners.
        machine: The machine since it was started, and the process's view of its processes; None where the
            system does not say.
        pid: The process.
        started: When the process was started; None where the system does not say. Ids are used again.
    """

    run_id: str
    token: str
    session_id: str
    machine: str | None
    pid: int
    started: str | None


def owner_here(run_id: str, session_id: SessionId) -> RunOwner:
    """This process as the owner of a run."""
    pid = os.getpid()
    return RunOwner(
        run_id=run_id,
        token=str(uuid4()),
        session_id=str(session_id),
        machine=_machine(),
        pid=pid,
        started=_started(pid),
    )


def is_live_elsewhere(owner: RunOwner, session_id: SessionId) -> bool:
    """Whether a run's owner is another process that is certainly alive, on this machine.

    Where that cannot be known, as on another machine, the answer is no: then the run can be resumed, and its
    former owner writes nothing more.
    """
    return (
        owner.session_id == str(session_id)
        and owner.pid != os.getpid()
        and owner.machine is not None
        and owner.machine == _machine()
        and owner.started is not None
        and owner.started == _started(owner.pid)
    )


def _machine() -> str | None:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return None


def _started(pid: int) -> str | None:
    """When a process was started, in the system's ticks; None where it is dead or the system does not say."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[_STATE] in _DEAD else fields[_STARTED]
