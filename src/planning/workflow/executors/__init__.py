"""Where steps run besides the event loop: any ``concurrent.futures.Executor``, and these.

- ``processes(workers)``: worker processes of which each runs one step at a time. One that dies or hangs takes
  only its own step with it, and another takes its place.
- ``dask(client)``: the workers of a Dask cluster.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planning.workflow.executors.dask_cluster import dask
    from planning.workflow.executors.workers import processes

__all__ = ["dask", "processes"]

_HOMES = {"dask": "dask_cluster", "processes": "workers"}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
    return value
