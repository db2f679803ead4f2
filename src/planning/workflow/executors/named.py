"""The executors that have a name, as on the command line: one table."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from typing import Final

import attrs

from planning.errors import show
from planning.workflow.executors import dask_cluster, worker_processes
from planning.workflow.executors.base import AnyExecutor

__all__ = ["KINDS", "Kind", "open_executor"]


@attrs.frozen
class Kind:
    """A kind of executor that has a name.

    Attributes:
        form: How it is written, for messages.
        pattern: What is written, as a regular expression; its group ``address``, where there is one, is what
            ``opened`` gets.
        opened: Opens it, given the address and how many steps run at the same time, and ends it after the
            block with whatever still runs there.
    """

    form: str
    pattern: str
    opened: Callable[[str, int], AbstractContextManager[AnyExecutor]]


@contextmanager
def _threads(_address: str, most: int) -> Iterator[ThreadPoolExecutor]:
    pool = ThreadPoolExecutor(most, "run")
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


KINDS: Final = (
    Kind("threads", "threads", _threads),
    Kind("processes", "processes", worker_processes.opened),
    Kind("dask://HOST:PORT", r"dask://(?P<address>[^\s/]+:\d{1,5})/?", dask_cluster.opened),
)


def open_executor(name: str, max_parallel: int) -> AbstractContextManager[AnyExecutor]:
    """The executor of a name, for a ``with`` block, which ends it and whatever still runs there.

    Args:
        name: ``threads``, ``processes`` or ``dask://HOST:PORT``.
        max_parallel: How many steps run at the same time.

    Raises:
        ValueError: There is no such executor: raised at once.
        ExecutorUnavailable: It cannot be opened: raised when the block begins.
    """
    for kind in KINDS:
        match = re.fullmatch(kind.pattern, name)
        if match is not None:
            return kind.opened(match.groupdict().get("address", ""), max_parallel)
    *forms, last = (kind.form for kind in KINDS)
    raise ValueError(f"Unknown executor {show(name)}. Use {', '.join(forms)} or {last}.")
