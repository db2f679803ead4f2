"""Executors that run steps outside the event loop: any ``concurrent.futures.Executor``, and these.

- ``processes(workers)``: worker processes, which run one step each at a time. If one dies, only its step is
  affected, and another replaces it.
- ``dask(client)``: the workers of a Dask cluster.
- ``open_executor(name, max_parallel)``: the executor of a name, such as ``threads`` or ``dask://HOST:PORT``.
"""

from typing import TYPE_CHECKING

from planning.lazy import lazy_names

if TYPE_CHECKING:
    from planning.workflow.executors.jobs import ExecutorUnavailable
    from planning.workflow.executors.workers import dask, open_executor, processes

__all__ = ["ExecutorUnavailable", "dask", "open_executor", "processes"]

_HOMES = {"ExecutorUnavailable": "jobs", **dict.fromkeys(("dask", "open_executor", "processes"), "workers")}

__getattr__, __dir__ = lazy_names(__name__, globals(), _HOMES, __all__)
