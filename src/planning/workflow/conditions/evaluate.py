"""The evaluation of a checked condition by simpleeval, of which only the walk over the tree is used."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any, Final

import simpleeval

from planning.workflow.conditions.operations import Operations
from planning.workflow.conditions.views import SEEN, Budget, Items, wrap

__all__ = ["evaluate"]


def evaluate(expression: ast.Expression, memory: Mapping[str, Any], key: str | None) -> object:
    """The result of a condition that ``grammar`` let through.

    Raises:
        Exception: Whatever goes wrong.
    """
    budget = Budget()
    try:
        return _Evaluator(memory, key, budget)._eval(expression.body)
    finally:
        budget.forget()  # the operations are a cycle, which lives on for a while


class _Evaluator(simpleeval.SimpleEval):  # type: ignore[misc]  # it publishes no types
    """simpleeval with a table of a few kinds of nodes, and its own names, calls, items and lists.

    The library's names may turn out to be functions, its attributes are any but some, and its items
    those of whatever object is there.
    """

    def __init__(self, memory: Mapping[str, Any], key: str | None, budget: Budget) -> None:
        # The base class is not asked: it changes the warning filters of the process, which another thread
        # may be changing too, and would make of each evaluator a cycle.
        self.expr = ""
        self._budget = budget
        self._memory = wrap(memory, budget)
        self._key = key
        self._operations = Operations(budget)
        self.operators = self._operations.operators

    def _eval(self, node: ast.AST) -> Any:
        result = _NODES[type(node)](self, node)
        if type(result) not in _RESULTS:
            raise TypeError  # nothing leads here: a second lock, should the first be opened one day
        return result

    def _eval_name(self, node: ast.Name) -> Any:
        if node.id == "memory":
            return self._memory
        if node.id == self._key:
            return self._memory[node.id]
        raise NameError

    def _eval_call(self, node: ast.Call) -> Any:
        function: Any = node.func  # a method or a name: the grammar lets no other through
        if isinstance(function, ast.Attribute):
            owner = self._eval(function.value)
            return self._operations.method(owner, function.attr, self._all(node.args))
        return self._operations.functions[function.id](*self._all(node.args))

    def _eval_subscript(self, node: ast.Subscript) -> Any:
        return self._operations.item(self._eval(node.value), self._eval(node.slice))

    def _eval_list(self, node: ast.List | ast.Tuple) -> Items:
        return Items(self._all(node.elts), tuple, self._budget)

    def _all(self, nodes: list[ast.expr]) -> tuple[Any, ...]:
        return tuple(self._eval(node) for node in nodes)


_RESULTS: Final = SEEN | {int, slice}
_NODES: Final[Mapping[type[ast.AST], Callable[[_Evaluator, Any], Any]]] = {
    ast.BoolOp: simpleeval.SimpleEval._eval_boolop,
    ast.UnaryOp: simpleeval.SimpleEval._eval_unaryop,
    ast.BinOp: simpleeval.SimpleEval._eval_binop,
    ast.Compare: simpleeval.SimpleEval._eval_compare,
    ast.IfExp: simpleeval.SimpleEval._eval_ifexp,
    ast.Slice: simpleeval.SimpleEval._eval_slice,
    ast.Constant: lambda _, node: node.value,
    ast.Name: _Evaluator._eval_name,
    ast.Call: _Evaluator._eval_call,
    ast.Subscript: _Evaluator._eval_subscript,
    ast.List: _Evaluator._eval_list,
    ast.Tuple: _Evaluator._eval_list,
}
