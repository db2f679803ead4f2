"""The mutants of a module: mutmut's operators, at every place of the file.

mutmut itself replaces functions alone. Tables, class bodies, decorators and decorated functions are
mutated here too, as most of a plan's rules are in these.
"""

from __future__ import annotations

import difflib
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import attrs
import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation.file_mutation import deep_replace
from mutmut.mutation.mutators import mutation_operators

__all__ = ["Mutant", "mutants_of"]

_SKIPPED = (cst.Annotation, cst.Import, cst.ImportFrom)


@attrs.frozen
class Mutant:
    """One small change of a module.

    Attributes:
        path: The file.
        module: The module's name.
        scope: The function or class that it is in, such as ``TextRule.keeps``; empty for the module.
        lines: The first and the last line of the code that is replaced.
        is_in_function: Whether it runs when a function is called, and not at import.
        key: The same for the same change, wherever in its file the function stands.
    """

    path: Path
    module: str
    scope: str
    lines: tuple[int, int]
    is_in_function: bool
    key: str
    _tree: cst.Module = attrs.field(repr=False, eq=False)
    _nodes: tuple[cst.CSTNode, cst.CSTNode] = attrs.field(repr=False, eq=False)

    def source(self) -> str:
        """The mutated module."""
        changed = deep_replace(self._tree, *self._nodes)
        if not isinstance(changed, cst.Module):
            raise TypeError(f"{self.path}: a mutant must be a module")
        return changed.code

    def diff(self) -> tuple[str, str]:
        """The lines that the change takes away, and those that it brings, without their indentation."""
        compared = difflib.ndiff(self._tree.code.splitlines(), self.source().splitlines())
        marked = [line for line in compared if line[:2] in {"- ", "+ "}]
        before, after = ("\n".join(line[2:].strip() for line in marked if line[0] == sign) for sign in "-+")
        return before, after


def mutants_of(path: Path, root: Path) -> list[Mutant]:
    """Every mutant of a file under a source root, in the order of the file."""
    wrapper = MetadataWrapper(cst.parse_module(path.read_text()))
    module = ".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__")
    collector = _Collector(path, module, wrapper.module)
    wrapper.visit(collector)
    return collector.mutants


class _Collector(cst.CSTVisitor):
    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, path: Path, module: str, tree: cst.Module) -> None:
        super().__init__()
        self.mutants: list[Mutant] = []
        self._path, self._module, self._tree = path, module, tree
        self._scopes: list[str] = []
        self._alike: Counter[str] = Counter()
        self._functions = 0

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, _SKIPPED) or _is_documentation(node):
            return False
        if isinstance(node, cst.FunctionDef | cst.ClassDef):
            self._scopes.append(node.name.value)
        for kind, operator in (*mutation_operators, *_OPERATORS):
            if isinstance(node, kind):
                for mutated in operator(node):
                    self._add(node, mutated)
        self._functions += isinstance(node, cst.FunctionDef)
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        if isinstance(original_node, cst.FunctionDef | cst.ClassDef):
            self._scopes.pop()
        self._functions -= isinstance(original_node, cst.FunctionDef)

    def _add(self, node: cst.CSTNode, mutated: cst.CSTNode) -> None:
        scope = ".".join(self._scopes)
        before, after = self._tree.code_for_node(node), self._tree.code_for_node(mutated)
        change = f"{self._module}:{scope}:{before}->{after}"
        self._alike[change] += 1
        key = hashlib.sha256(f"{change}#{self._alike[change]}".encode()).hexdigest()
        place = self.get_metadata(PositionProvider, node)
        lines = place.start.line, place.end.line
        self.mutants.append(
            Mutant(
                self._path, self._module, scope, lines, self._functions > 0, key, self._tree, (node, mutated)
            )
        )


def _is_documentation(node: cst.CSTNode) -> bool:
    """Whether a node is a docstring, ``__all__`` or a branch for type checkers alone."""
    if isinstance(node, cst.Expr):
        return isinstance(node.value, cst.BaseString)
    if isinstance(node, cst.If):
        return isinstance(node.test, cst.Name) and node.test.value == "TYPE_CHECKING"
    targets = [target.target for target in node.targets] if isinstance(node, cst.Assign) else []
    return any(isinstance(target, cst.Name) and target.value == "__all__" for target in targets)


# Four operators that mutmut lacks.


def _without_decorator(node: cst.FunctionDef | cst.ClassDef) -> Iterator[cst.CSTNode]:
    for index in range(len(node.decorators)):
        yield node.with_changes(decorators=[*node.decorators[:index], *node.decorators[index + 1 :]])


def _negated(node: cst.If) -> Iterator[cst.CSTNode]:
    test = node.test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
    yield node.with_changes(test=cst.UnaryOperation(cst.Not(), test))


def _returns_none(node: cst.Return) -> Iterator[cst.CSTNode]:
    if node.value is not None and not (isinstance(node.value, cst.Name) and node.value.value == "None"):
        yield node.with_changes(value=cst.Name("None"), whitespace_after_return=cst.SimpleWhitespace(" "))


def _other_text(node: cst.FormattedStringText) -> Iterator[cst.CSTNode]:
    yield node.with_changes(value=f"XX{node.value}")


_OPERATORS: tuple[tuple[Any, Callable[[Any], Iterable[cst.CSTNode]]], ...] = (
    (cst.FunctionDef | cst.ClassDef, _without_decorator),
    (cst.If, _negated),
    (cst.Return, _returns_none),
    (cst.FormattedStringText, _other_text),
)
