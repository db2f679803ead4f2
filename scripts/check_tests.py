"""Look for tests that cannot fail, or that hold for more than they say. Part of ``make check``.

usage: scripts/check_tests.py [FILE...]      every file of tests/ unless named

Each finding is a line ``file:line: what is wrong``. Where an assertion is right as it stands, a comment with
the reason on its line, ``# enough: ...``, keeps it.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
HELPERS = ("tests/**/*.py", "src/planning/testing/*.py")
KEPT = re.compile(r"# enough: \S")
OF_PYTEST = {"raises", "warns", "fail"}
ANY = {"Exception", "BaseException"}
Function = ast.FunctionDef | ast.AsyncFunctionDef
Finding = tuple[int, str]


def name_of(node: ast.AST | None) -> str:
    """The last name of what is called, or of what stands there."""
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def own(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a function, without those of functions and classes inside."""
    for child in ast.iter_child_nodes(node):
        yield child
        if not isinstance(child, Function | ast.ClassDef | ast.Lambda):
            yield from own(child)


def caught(types: ast.AST | None) -> bool:
    """Whether what is caught may be a failed assertion."""
    named = {name_of(each) for each in ast.walk(types)} if types is not None else ANY
    return bool(named & (ANY | {"AssertionError"}))


class Tests:
    """The tests of a file, with the helpers that assert for them."""

    def __init__(self, tree: ast.Module, helpers: Tests | None = None) -> None:
        classes = [each for each in tree.body if isinstance(each, ast.ClassDef)]
        functions = [each for place in (tree, *classes) for each in place.body if isinstance(each, Function)]
        self._defined = {each.name for each in functions} | (helpers._defined if helpers else set())
        self._asserting = (helpers._asserting if helpers else set()) - {
            each.name for each in functions
        } | OF_PYTEST
        self._asserting |= {each.name for each in functions if self._asserts(each.body, directly=True)}
        calls = [
            (each.name, {name_of(node) for node in ast.walk(each) if isinstance(node, ast.Call)})
            for each in functions
        ]
        while found := {name for name, called in calls if called & self._asserting} - self._asserting:
            self._asserting |= found

    def _asserts(self, nodes: list[ast.stmt], *, directly: bool = False) -> bool:
        for node in (each for statement in nodes for each in ast.walk(statement)):
            if isinstance(node, ast.Assert):
                return True
            if isinstance(node, ast.Raise) and name_of(node.exc) == "AssertionError":
                return True
            if not directly and isinstance(node, ast.Call) and name_of(node) in self._asserting:
                return True
        return False

    def findings(self, test: Function) -> Iterator[Finding]:
        """What is wrong with a test."""
        if not self._asserts(test.body) and "snapshot" not in {each.arg for each in test.args.args}:
            yield test.lineno, "nothing is asserted"
        for node in own(test):
            if isinstance(node, ast.Assert):
                yield from self._too_much(node)
            elif isinstance(node, ast.With | ast.AsyncWith):
                yield from self._hidden(node)
            elif isinstance(node, ast.Try) and self._asserts(node.body, directly=True):
                for handler in node.handlers:
                    if caught(handler.type) and not self._asserts(handler.body):
                        yield handler.lineno, "this hides the failure of the assertion above"
        yield from self._conditional(test)

    def _too_much(self, node: ast.Assert) -> Iterator[Finding]:
        """An assertion that holds for more than one answer, or for all."""
        if isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.Or):
            yield node.lineno, "either side of `or` will do: assert the one that is meant"
        if isinstance(node.test, ast.Constant | ast.Tuple | ast.JoinedStr):
            yield node.lineno, "this holds whatever happens"
        if not isinstance(node.test, ast.Compare):
            return
        last, how = node.test.comparators[-1], node.test.ops[-1]
        if ast.dump(node.test.left) == ast.dump(last):
            yield node.lineno, "this compares a value with itself"
        if isinstance(how, ast.GtE) and ast.unparse(last) == "0":
            yield node.lineno, "a length or a time is never below 0"
        if (
            isinstance(how, ast.In)
            and isinstance(last, ast.Set | ast.Tuple | ast.List)
            and len(last.elts) > 1
        ):
            yield node.lineno, "each of these will do: assert the one that is meant"

    def _hidden(self, node: ast.With | ast.AsyncWith) -> Iterator[Finding]:
        """An assertion whose failure is caught, or that does not run."""
        for item in node.items:
            call = item.context_expr
            if not isinstance(call, ast.Call):
                continue
            is_hidden = name_of(call) == "suppress" and any(map(caught, call.args))
            if is_hidden and self._asserts(node.body, directly=True):
                yield node.lineno, "this hides the failure of the assertion inside"
            if name_of(call) == "raises":
                if call.args and name_of(call.args[0]) in ANY and not call.keywords:
                    yield (
                        node.lineno,
                        "any exception will do: name the one that is meant, or match its message",
                    )
                if isinstance(node.body[-1], ast.Assert):
                    yield node.body[-1].lineno, "this does not run once the line above has raised"

    def _conditional(self, test: Function) -> Iterator[Finding]:
        """Assertions that are all under conditions, or in loops that may not run."""
        decorators = {name_of(each) for each in test.decorator_list}
        found: list[Finding] = []
        for each in test.body:
            if isinstance(each, ast.If):
                if isinstance(each.body[-1], ast.Return) and "given" in decorators:
                    found.append(
                        (each.lineno, "nothing is asserted where this holds: give an @example that goes on")
                    )
                    break
                if self._asserts(each.body) and not self._asserts(each.orelse):
                    found.append((each.lineno, "nothing is asserted where this does not hold"))
            elif isinstance(each, ast.While):
                found.append((each.lineno, "nothing is asserted where this loop does not run"))
            elif isinstance(each, ast.For):
                if not self._is_listed(each.iter, test):
                    found.append((each.lineno, "nothing is asserted where there is nothing to loop over"))
            elif not isinstance(each, Function | ast.ClassDef) and self._asserts([each]):
                return
        if "example" not in decorators:
            yield from found

    def _is_listed(self, node: ast.expr, test: Function) -> bool:
        """Whether a loop goes over what tests list, so that it runs."""
        if isinstance(node, ast.Tuple | ast.List | ast.Dict | ast.Set):
            return ast.unparse(node) not in {"()", "[]", "{}"}
        if isinstance(node, ast.Subscript):
            return self._is_listed(node.value, test)
        if isinstance(node, ast.Name):
            given = [
                each.value
                for each in own(test)
                if isinstance(each, ast.Assign) and ast.unparse(each.targets[0]) == node.id
            ]
            is_given = node.id.lstrip("_").isupper() or node.id in {each.arg for each in test.args.args}
            return is_given or any(self._is_listed(each, test) for each in given)
        if not isinstance(node, ast.Call):
            return False
        if name_of(node) == "range":
            return all(isinstance(each, ast.Constant | ast.Name) for each in node.args)
        if name_of(node) in {"enumerate", "sorted", "zip", "product", "pairwise"}:
            return all(self._is_listed(each, test) for each in node.args)
        if name_of(node) in {"items", "values", "keys"} and isinstance(node.func, ast.Attribute):
            return self._is_listed(node.func.value, test)
        return isinstance(node.func, ast.Name) and node.func.id in self._defined


def main(places: list[str]) -> int:
    """Print every finding, and fail if there is one."""
    paths = sorted(path for pattern in HELPERS for path in ROOT.glob(pattern))
    of_tests = [each for each in paths if each.name.startswith("test_")]
    helpers = Tests(
        ast.Module(
            [node for path in paths if path not in of_tests for node in ast.parse(path.read_text()).body], []
        )
    )
    found: list[str] = []
    for path in [Path(each).resolve() for each in places] or of_tests:
        text, tree = path.read_text(), ast.parse(path.read_text())
        tests = Tests(tree, helpers)
        for test in ast.walk(tree):
            if isinstance(test, Function) and test.name.startswith("test_"):
                found += [
                    f"{os.path.relpath(path)}:{line}: {wrong}\n"
                    for line, wrong in tests.findings(test)
                    if not KEPT.search(text.splitlines()[line - 1])
                ]
    sys.stdout.write("".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
