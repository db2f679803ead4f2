"""Whether a database file has changed, without opening it.

A process that closes a file gives up all its locks on it, those of other open connections included.
"""

from __future__ import annotations

import os
from stat import S_ISDIR, S_ISLNK, S_ISREG

__all__ = ["IDENTITY", "LOG_SIZE", "WRITTEN", "stamp"]

IDENTITY = slice(0, 2)
WRITTEN, LOG_SIZE = 3, 5
"""Places in a stamp: which file it is, when it was written, and how large its log is."""


def stamp(path: str, log: str) -> tuple[int, ...]:
    """What differs once a file was changed or replaced: its identity, size and times, and those of its log.

    A change in the same tick of the clock as the one before does not show.

    Args:
        path: The file.
        log: The ending that is added to the path for its log.

    Raises:
        OSError: It does not exist, or is not a file.
    """
    found = os.lstat(path)
    if S_ISLNK(found.st_mode):  # the databases follow links, and keep their logs at the target
        path = os.path.realpath(path)
        found = os.stat(path)  # noqa: PTH116 - pathlib is not loaded in a worker
    if not S_ISREG(found.st_mode):  # reading a pipe would wait for a writer
        raise IsADirectoryError if S_ISDIR(found.st_mode) else OSError(0, "it is not a file")
    known = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
    try:
        changes = os.stat(path + log)  # noqa: PTH116 - as above
    except FileNotFoundError:
        return (*known, 0, 0)
    return (*known, changes.st_size, changes.st_mtime_ns if changes.st_size else 0)
