"""Loading of the package: names on first use, as some need optional libraries; and Ctrl-C meanwhile."""

from __future__ import annotations

import os
import sys


def leave_quietly(kind: type[BaseException], *error: object) -> None:
    """Be the ``sys.excepthook`` of the command: exit code 130 and no traceback, as later."""
    if issubclass(kind, KeyboardInterrupt):
        os._exit(130)
    sys.__excepthook__(kind, *error)  # type: ignore[arg-type]  # the rest is passed on as it is


_program = "".join(sys.argv[:1])  # "-m" until the module of python -m is loaded
if _program.endswith("/planning") or (_program == "-m" and " -m planning" in " ".join(sys.orig_argv)):
    sys.excepthook = leave_quietly

# isort: split
from collections.abc import Callable, Iterable, Mapping  # noqa: E402 - Ctrl-C may come while this is loaded
from importlib import import_module  # noqa: E402 - see above
from importlib.machinery import PathFinder  # noqa: E402 - see above
from typing import Any  # noqa: E402 - see above

_own = PathFinder.find_spec("session")
if _own is not None and _own.submodule_search_locations is None:
    raise ImportError(f"{_own.origin} hides the package 'session' of session-planning: rename that file")


def lazy_names(
    package: str, namespace: dict[str, Any], homes: Mapping[str, str], names: Iterable[str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make a package's ``__getattr__`` and ``__dir__``."""
    modules = frozenset(home.partition(".")[0] for home in homes.values())

    def load(name: str) -> Any:
        home = homes.get(name)
        if home is None and name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f"{package}.{home or name}")
        value = getattr(module, name) if home else module
        namespace[name] = value
        return value

    return load, lambda: sorted({*namespace, *names})
