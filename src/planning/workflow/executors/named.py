"""Executors by name, as on the command line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import Any

from planning.errors import show
from planning.workflow.executors.base import AnyExecutor, ExecutorUnavailable
from planning.workflow.executors.dask_cluster import connect, dask
from planning.workflow.executors.jobs import reason
from planning.workflow.executors.loky_workers import processes

_CLUSTER = r"dask://[^\s/]+:\d{1,5}/?"
_PATIENCE = 2.0  # seconds


def open_executor(name: str, max_parallel: int) -> AbstractContextManager[AnyExecutor]:
    """The executor of a name, for a ``with`` block, which ends it and whatever still runs there.

    Args:
        name: ``threads``, ``processes`` or ``dask://HOST:PORT``.
        max_parallel: How many steps run at the same time.

    Raises:
        ValueError: There is no such executor: raised at once.
        ExecutorUnavailable: It cannot be opened: raised when the block begins.
    """
    if name not in {"threads", "processes"} and re.fullmatch(_CLUSTER, name) is None:
        raise ValueError(f"Unknown executor {show(name)}. Use threads, processes or dask://HOST:PORT.")
    return _opened(name, max_parallel)


@contextmanager
def _opened(name: str, max_parallel: int) -> Iterator[AnyExecutor]:
    pool: AnyExecutor
    with ExitStack() as stack:
        try:
            if name == "threads":
                pool = ThreadPoolExecutor(max_parallel, "run")
                stack.callback(pool.shutdown, wait=False, cancel_futures=True)
            elif name == "processes":
                pool = processes()
                stack.callback(pool.kill)
            else:
                client = connect(name.removeprefix("dask://").rstrip("/"))
                stack.callback(_close, client)
                pool = dask(client)
        except ImportError as error:
            raise ExecutorUnavailable(str(error)) from None
        except Exception as error:  # noqa: BLE001 - a cluster may fail in any way
            raise ExecutorUnavailable(f"{name} cannot be reached: {reason(error)}") from None
        yield pool


def _close(client: Any) -> None:
    with suppress(Exception):  # the cluster may be gone by now
        client.close(timeout=_PATIENCE)
