"""Every data class, stored: what its values promise, and which fields are named, compared and shown."""

from __future__ import annotations

import dataclasses
import inspect
import pkgutil
import re
from collections.abc import Iterator
from functools import _lru_cache_wrapper
from typing import Any

import attrs
import pytest
from syrupy.assertion import SnapshotAssertion

PARTS = [
    *("session", "planning.errors", "planning.plan", "planning.policy", "planning.suite", "planning.prompt"),
    *("planning.tools", "planning.workflow", "planning.agent", "planning.observe", "planning.reading"),
    *("planning.cli", "planning.testing", "planning.serving", "planning.view"),
]


def described(kind: Any) -> Iterator[str]:
    own = vars(kind)
    flags = {
        "frozen": "__setattr__" in own,
        "slots": "__slots__" in own,
        "compared": "__eq__" in own,
        "ordered": "__lt__" in own,
        "hashed": own.get("__hash__") is not None,
    }
    yield " ".join([f"{kind.__name__}:", *(flag for flag, is_set in flags.items() if is_set)])
    for field in attrs.fields(kind) if attrs.has(kind) else dataclasses.fields(kind):
        bare = attrs.NOTHING if attrs.has(kind) else dataclasses.MISSING
        default = "" if field.default is bare else f" = {field.default!r}"
        if getattr(field, "default_factory", bare) is not bare:
            default = f" = {field.default_factory!r}"
        is_compared = field.eq if isinstance(field, attrs.Attribute) else field.compare
        left = {"init": field.init, "repr": field.repr, "eq": is_compared, "positional": not field.kw_only}
        marks = [f"no {mark}" for mark, is_there in left.items() if is_there is not True]
        if marks or default:
            yield f"    {field.name}{re.sub(' at 0x[0-9a-f]+', '', default)}  {', '.join(marks)}".rstrip()


def modules_of(part: str) -> Iterator[Any]:
    yield (module := pytest.importorskip(part, exc_type=ImportError))
    for each in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{part}."):
        if not each.name.endswith("__main__"):
            yield pytest.importorskip(each.name, exc_type=ImportError)


ENDLESS = {"", "has_evidence, has_dependencies, is_batched, rules", "is_stored", "version", "version, part"}


@pytest.mark.parametrize("part", PARTS)
def test_a_cache_has_a_bound_unless_there_are_few_keys(part: str) -> None:
    values = [each for module in modules_of(part) for each in vars(module).values()]
    caches = [each for each in values if isinstance(each, _lru_cache_wrapper)]
    endless = [each for each in caches if each.cache_parameters()["maxsize"] is None]
    assert {", ".join(inspect.signature(each).parameters) for each in endless} <= ENDLESS


@pytest.mark.parametrize("part", PARTS)
def test_the_data_classes_of_a_part_are_the_stored_ones(part: str, snapshot: SnapshotAssertion) -> None:
    lines = [
        f"{module.__name__}.{line}" if line[0] != " " else line
        for module in modules_of(part)
        for name, kind in vars(module).items()
        if inspect.isclass(kind) and kind.__module__ == module.__name__ and name[0] != "_"
        if attrs.has(kind) or dataclasses.is_dataclass(kind)
        for line in described(kind)
    ]
    assert "\n".join(lines) + "\n" == snapshot
