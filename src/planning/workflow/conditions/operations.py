"""What a condition can do with values: its operators, functions and methods, each with a bound."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

from planning.workflow.conditions.grammar import LARGEST, TESTS
from planning.workflow.conditions.views import Budget, Items, Keys, OverBudget

__all__ = ["Operations"]

_NUMBERS: Final = frozenset({bool, int, float})
_SOUGHT: Final = 1000
"""The longest text that is looked for in another: some searches take time in proportion to both."""
_STRIPPED: Final = 20
"""The most characters to strip: each is compared with each character of the text."""
_CONTAINER: Final = 100
"""What comparing two containers costs, beside their items."""
_PREFIXES: Final = {"startswith": str.startswith, "endswith": str.endswith}
_SEARCHES: Final = {"find": str.find, "rfind": str.rfind, "count": str.count}
_STRIPS: Final = {"strip": str.strip, "lstrip": str.lstrip, "rstrip": str.rstrip}
_WHOLE: Final = {name: getattr(str, name) for name in ("lower", "upper", "casefold", *TESTS)}


class Operations:
    """The operators, functions and methods of one evaluation, which share a budget.

    They give what Python gives, of less: only numbers are calculated with, only numbers and texts have
    an order. A list equals a tuple of equal items, since a snapshot makes one of the other. What they do
    not take, and what is beyond the budget, raises.
    """

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.operators: Mapping[type[ast.AST], Callable[..., Any]] = {
            **_FIXED,
            ast.Eq: self._equal,
            ast.NotEq: self._differs,
            ast.Lt: partial(self._ordered, operator.lt),
            ast.LtE: partial(self._ordered, operator.le),
            ast.Gt: partial(self._ordered, operator.gt),
            ast.GtE: partial(self._ordered, operator.ge),
            ast.In: self._is_in,
            ast.NotIn: self._is_not_in,
        }
        self.functions: Mapping[str, Callable[..., Any]] = {
            "len": len,
            "min": partial(self._extreme, min),
            "max": partial(self._extreme, max),
            "sum": self._sum,
            "abs": abs,
            "all_of": partial(self._fold, all),
            "any_of": partial(self._fold, any),
        }

    def method(self, owner: Any, name: str, arguments: tuple[Any, ...]) -> Any:
        """What ``owner.name(*arguments)`` gives.

        Raises:
            TypeError: The owner has no such method, or it does not take the arguments.
            OverBudget: It would look at too much.
        """
        if name == "get" and isinstance(owner, Keys):
            return owner.get(*arguments)
        if type(owner) is not str:
            raise TypeError
        first = arguments[0] if arguments else None
        if name in _PREFIXES:
            self._spend_text(first)
            return _PREFIXES[name](owner, *arguments)
        if name in _SEARCHES:
            self._spend_text(owner, first, _SOUGHT)
            return _SEARCHES[name](owner, *arguments)
        if name in _STRIPS:
            self._spend_text(owner, first or "", _STRIPPED)
            return _STRIPS[name](owner, *arguments)
        self._spend_text(owner)
        return _WHOLE[name](owner, *arguments)

    def item(self, owner: Any, key: Any) -> Any:
        """What ``owner[key]`` gives.

        Raises:
            LookupError: There is no such item.
            TypeError: The owner has no items, or none of such a kind.
            OverBudget: It would look at too much.
        """
        if type(owner) is str and isinstance(key, slice):
            self._budget.spend(len(range(*key.indices(len(owner)))))
        return owner[key]

    def _spend_text(self, text: Any, sought: Any = "", longest: int = 0) -> None:
        """Pay for a look at a text for another one."""
        if type(text) is not str or type(sought) is not str:
            raise TypeError
        if len(sought) > longest:
            raise OverBudget
        self._budget.spend(len(text))

    def _spend_shorter(self, left: Any, right: Any) -> None:
        """Pay for a comparison of two texts, which ends with the shorter one."""
        if type(left) is not str or type(right) is not str:
            raise TypeError
        self._budget.spend(min(len(left), len(right)))

    def _equal(self, left: Any, right: Any) -> bool:
        """``left == right``."""
        kind, other = type(left), type(right)
        if kind in _NUMBERS and other in _NUMBERS:
            return bool(left == right)
        if kind is str and other is str:
            if len(left) != len(right):
                return False
            self._budget.spend(len(left))
            return bool(left == right)
        if isinstance(left, Items) and isinstance(right, Items):
            return self._same(left, right, self._equal_items)
        if isinstance(left, Keys) and isinstance(right, Keys):
            return self._same(left, right, self._equal_keys)
        return left is None and right is None

    def _differs(self, left: Any, right: Any) -> bool:
        return not self._equal(left, right)

    def _same(self, left: Any, right: Any, compare: Callable[[Any, Any], bool]) -> bool:
        """Whether two containers are equal, one level deeper."""
        if len(left) != len(right):
            return False
        self._budget.spend(_CONTAINER)
        self._budget.enter()
        same = compare(left, right)
        self._budget.leave()
        return same

    def _equal_items(self, left: Items, right: Items) -> bool:
        # The lengths are equal, unless another thread is at work: then neither answer is wrong.
        return all(map(self._alike, left, right))

    def _equal_keys(self, left: Keys, right: Keys) -> bool:
        return all(key in right and self._alike(left[key], right[key]) for key in left)

    def _alike(self, left: Any, right: Any) -> bool:
        """Whether two items are equal: in a container not even NaN differs from itself."""
        return left is right or self._equal(left, right)

    def _ordered(self, compare: Callable[[Any, Any], bool], left: Any, right: Any) -> bool:
        """``left < right``, or as ``compare`` says."""
        if not (type(left) in _NUMBERS and type(right) in _NUMBERS):
            self._spend_shorter(left, right)
        return compare(left, right)

    def _is_in(self, value: Any, container: Any) -> bool:
        """``value in container``."""
        if isinstance(container, Items):
            return any(self._alike(each, value) for each in container)
        if isinstance(container, Keys):
            return value in container
        self._spend_text(container, value, _SOUGHT)
        return value in container

    def _is_not_in(self, value: Any, container: Any) -> bool:
        return not self._is_in(value, container)

    def _extreme(self, pick: Callable[[list[Any]], Any], *values: Any) -> Any:
        """The least or greatest of the values, or of the items of one list."""
        found = list(values[0] if len(values) == 1 and isinstance(values[0], Items) else values)
        if not all(type(each) in _NUMBERS for each in found):
            for each in found:
                self._spend_text(each)
        return pick(found)

    def _sum(self, values: Any, start: Any = 0) -> Any:
        """The sum of the items of a list."""
        if not isinstance(values, Items):
            raise TypeError
        found = [_number(each) for each in values]
        return _bounded(sum(found, _number(start)))

    def _fold(self, fold: Callable[[Any], bool], *values: Any) -> bool:
        """Whether all or any are true, of the values or of the items of one list."""
        if len(values) == 1 and isinstance(values[0], Keys):
            raise TypeError  # whether its keys are meant or its values, nobody can say
        return fold(values[0] if len(values) == 1 and isinstance(values[0], Items) else values)


def _number(value: Any) -> Any:
    if type(value) not in _NUMBERS:
        raise TypeError
    return value


def _bounded(number: Any) -> Any:
    """A result, if it is not too large to work on with."""
    if type(number) is int and not -LARGEST <= number <= LARGEST:
        raise OverBudget
    return number


def _calculated(calculate: Callable[[Any, Any], Any], left: Any, right: Any) -> Any:
    """``left + right``, or as ``calculate`` says, of numbers alone: ``%`` formats no text."""
    return _bounded(calculate(_number(left), _number(right)))


_FIXED: Final[Mapping[type[ast.AST], Callable[..., Any]]] = {
    ast.Add: partial(_calculated, operator.add),
    ast.Sub: partial(_calculated, operator.sub),
    ast.Mult: partial(_calculated, operator.mul),
    ast.Div: partial(_calculated, operator.truediv),
    ast.FloorDiv: partial(_calculated, operator.floordiv),
    ast.Mod: partial(_calculated, operator.mod),
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Not: operator.not_,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
}
