"""Package names that are loaded on first use, because some need optional libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(
    package: str, namespace: dict[str, Any], homes: Mapping[str, str], names: Iterable[str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make a package's ``__getattr__`` and ``__dir__``.

    Args:
        package: Its name.
        namespace: Its ``globals()``, where each name is kept once it was loaded.
        homes: For each name that is loaded late, the module below the package that has it. Such
            a module is loaded by its own name, too.
        names: All public names.
    """
    modules = frozenset(homes.values())

    def load(name: str) -> Any:
        home = homes.get(name)
        if home is None and name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        module = import_module(f"{package}.{home or name}")
        value = getattr(module, name) if home else module
        namespace[name] = value
        return value

    return load, lambda: sorted({*namespace, *names})
