"""The public surface, stored: every change to it is a change to read."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_type_hints, is_typeddict

import attrs
import pytest
from syrupy.assertion import SnapshotAssertion

import planning


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
    if abstract := getattr(value, "__abstractmethods__", None):
        yield f"    abstract: {', '.join(sorted(abstract))}"
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


ROOT = Path(__file__).parents[1]
PAGES = (*ROOT.glob("specs/*.md"), *ROOT.glob("docs/**/*.md"))
DOCUMENTS = sorted([ROOT / "README.md", *PAGES, *ROOT.glob("examples/**/*.py")])
IMPORT = re.compile(r"^ *from ((?:planning|session)[.\w]*) import (\([^)]*\)|.*)", re.MULTILINE)
_PUBLIC_MODULES = (
    "planning.integrations",
    "planning.testing",
    "planning.observe.deltas",  # specs/VIEW.md: the data of the page, for contributors
)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_documents_and_examples_import_is_public_where_they_import_it(document: Path) -> None:
    inner, missing = [], []
    for module, names in IMPORT.findall(document.read_text()):
        loaded = importlib.import_module(module)
        if not (hasattr(loaded, "__path__") or module.startswith(_PUBLIC_MODULES)):
            inner.append(module)
        named = re.findall(r"\w+", names.partition("#")[0])
        missing += [f"{module}.{name}" for name in named if name not in getattr(loaded, "__all__", [name])]
    assert (inner, missing) == ([], [])


def test_the_same_name_is_the_same_thing_wherever_it_is_public() -> None:
    tools = importlib.import_module("planning.tools")
    for package in ("planning", "planning.workflow"):
        loaded = importlib.import_module(package)
        for name in set(loaded.__all__) & set(tools.__all__):
            assert getattr(loaded, name) is getattr(tools, name)
    assert {"tool", "ToolError", "Toolbox", "ToolValidationError"} <= set(planning.__all__)
    assert {"Retry", "CircuitBreaker", "RateLimiter"} <= set(tools.__all__)
