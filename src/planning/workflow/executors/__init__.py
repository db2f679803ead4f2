"""Where steps run besides the event loop: any ``concurrent.futures.Executor``, and these.

- ``processes(workers)``: worker processes of which each runs one step at a time. One that dies or hangs takes
  only its own step with it, and another takes its place.
- ``dask(client)``: the workers of a Dask cluster.
"""

from typing import TYPE_CHECKING

from planning.lazy import lazy_names

if TYPE_CHECKING:
    from planning.workflow.executors.dask_cluster import dask
    from planning.workflow.executors.workers import processes

__all__ = ["dask", "processes"]

_HOMES = {"dask": "dask_cluster", "processes": "workers"}

__getattr__, __dir__ = lazy_names(__name__, globals(), _HOMES, __all__)
