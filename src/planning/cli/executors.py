"""The executors of a run, by name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import Any, Final

from planning.cli.usage import Refused, bad_option
from planning.errors import printable, show

__all__ = ["check_executor_name", "executor_of"]

_DASK: Final = re.compile(r"dask://(?P<address>[^\s/]+:\d{1,5})/?")
_CONNECT: Final = 5.0  # seconds
_CLOSE: Final = 2.0


def check_executor_name(name: str | None) -> None:
    """Refuse an unknown executor.

    Raises:
        BadParameter: The name is not one of an executor.
    """
    if name not in {None, "threads", "processes"} and not _DASK.fullmatch(name or ""):
        raise bad_option("--executor", f"unknown {show(name)}; use threads, processes or dask://HOST:PORT")


@contextmanager
def executor_of(name: str | None, max_parallel: int) -> Iterator[Executor | None]:
    """The executor of a name, which is ended after the block, with whatever still runs there.

    Raises:
        Refused: It cannot be used.
    """
    match name:
        case None:
            yield None
        case "threads":
            threads = ThreadPoolExecutor(max_parallel, "run")
            try:
                yield threads
            finally:
                threads.shutdown(wait=False, cancel_futures=True)
        case "processes":
            from planning.workflow.executors import processes

            workers = processes()
            try:
                yield workers
            finally:
                workers.kill()
        case _:
            yield from _on_dask(name.removeprefix("dask://").rstrip("/"))


def _on_dask(address: str) -> Iterator[Executor]:
    try:
        from distributed import Client

        from planning.workflow.executors import dask
    except ImportError:
        raise Refused(
            "--executor dask:// needs Dask; install it with pip install 'session-planning[distributed]'"
        ) from None
    try:
        client: Any = Client(f"tcp://{address}", timeout=_CONNECT, set_as_default=False)  # type: ignore[no-untyped-call] # it has type hints for some of what it does
    except Exception as error:  # noqa: BLE001 - it may fail in any way
        reason = f"no answer within {_CONNECT:g} s" if isinstance(error, TimeoutError) else str(error)
        raise Refused(
            f"cannot reach --executor dask://{printable(address)}: {printable(' '.join(reason.split()))}"
        ) from None
    try:
        yield dask(client)
    finally:
        with suppress(Exception):  # the cluster may be gone by now
            client.close(timeout=_CLOSE)
