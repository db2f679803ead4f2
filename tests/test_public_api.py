"""The public surface, stored: every change to it is a change to read."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from typing import get_type_hints, is_typeddict

import attrs
import pytest
from syrupy.assertion import SnapshotAssertion


def describe(name: str, value: object) -> Iterator[str]:
    if not inspect.isclass(value):
        yield f"{name}{inspect.signature(value)}" if inspect.isfunction(value) else f"{name} = {value!r}"
        return
    bases = ", ".join(base.__name__ for base in value.__bases__ if base is not object)
    yield f"class {name}({bases})" if bases else f"class {name}"
    if is_typeddict(value):
        yield f"    {{{', '.join(sorted(get_type_hints(value)))}}}"
    elif hasattr(value, "_fields"):  # a named tuple: versions of Python spell its signature differently
        yield f"    ({', '.join(value._fields)})"
    elif not getattr(value, "_is_protocol", False) and (attrs.has(value) or "__init__" in vars(value)):
        signature = inspect.signature(value).replace(return_annotation=inspect.Signature.empty)
        yield "    " + re.sub(r" at 0x[0-9a-f]+", "", str(signature)).replace("<factory>", "...")
    for member, attribute in sorted(vars(value).items()):
        if member.startswith("_"):
            continue
        if inspect.isfunction(attribute):
            yield f"    .{member}{inspect.signature(attribute)}"
        elif isinstance(attribute, (classmethod, staticmethod)):
            yield f"    .{member}{inspect.signature(attribute.__func__)}"
        elif isinstance(attribute, property):
            yield f"    .{member}"


@pytest.mark.parametrize(
    "module",
    [
        "session",
        "session.stores",
        "planning",
        "planning.prompt",
        "planning.tools",
        "planning.workflow",
        "planning.agent",
        "planning.integrations.openai",
        "planning.integrations.anthropic",
        "planning.testing",
        "planning.testing.strategies",
    ],
)
def test_the_public_names_of_a_module_are_the_stored_ones(module: str, snapshot: SnapshotAssertion) -> None:
    loaded = importlib.import_module(module)
    lines = [line for name in loaded.__all__ for line in describe(name, getattr(loaded, name))]
    assert "\n".join(lines) + "\n" == snapshot
