"""Executors by name, as on the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager

from planning.errors import show
from planning.workflow.executors.base import AnyExecutor, ExecutorUnavailable
from planning.workflow.executors.dask_cluster import opened
from planning.workflow.executors.loky_workers import processes

__all__ = ["open_executor"]


def open_executor(name: str, max_parallel: int) -> AbstractContextManager[AnyExecutor]:
    """The executor of a name, for a ``with`` block, which ends it and whatever still runs there.

    Args:
        name: ``threads``, ``processes`` or ``dask://HOST:PORT``.
        max_parallel: How many steps run at the same time.

    Raises:
        ValueError: There is no such executor: raised at once.
        ExecutorUnavailable: It cannot be opened: raised when the block begins.
    """
    dask = re.fullmatch(r"dask://([^\s/]+:\d{1,5})/?", name)
    if dask is None and name not in {"threads", "processes"}:
        raise ValueError(f"Unknown executor {show(name)}. Use threads, processes or dask://HOST:PORT.")
    return _opened(name, max_parallel, None if dask is None else dask.group(1))


@contextmanager
def _opened(name: str, max_parallel: int, address: str | None) -> Iterator[AnyExecutor]:
    if address is not None:
        with opened(address) as cluster:
            yield cluster
    elif name == "threads":
        pool = ThreadPoolExecutor(max_parallel, "run")
        try:
            yield pool
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
    else:
        try:
            workers = processes()
        except ImportError as error:
            raise ExecutorUnavailable(str(error)) from None
        try:
            yield workers
        finally:
            workers.kill()
