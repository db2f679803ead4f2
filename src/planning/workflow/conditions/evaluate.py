"""The evaluation of a checked condition: a walk of its syntax tree, with a limited cost."""

from __future__ import annotations

import ast
import operator
from collections.abc import Mapping
from typing import Any, Final

from planning.errors import writable
from planning.workflow.conditions.grammar import EXAMPLE, LARGEST, ConditionInvalid, check_condition
from session.json_form import NoJsonForm, json_form, key_text, opened


class _Opaque:
    """A value without a JSON form: it is there, equals nothing, and is asked nothing."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]  # it is never a key

    def __eq__(self, other: object) -> bool:
        return False

    def __bool__(self) -> bool:
        raise TypeError


OPAQUE: Final = _Opaque()
_KEYS: Final = (str, int, float, type(None))


def view(value: Any) -> Any:
    """A value as None, a bool, a number, a str, a list, a dict or ``OPAQUE``; the items are as they were."""
    kind = type(value)
    if kind is str:
        return writable(value)
    if kind is int and -LARGEST <= value <= LARGEST:
        return value
    if kind is int or kind is float:
        form = json_form(value)  # where JSON has no such number, text
        return form if type(form) is not int else OPAQUE
    if value is None or kind is bool or kind is list:
        return value
    if kind is dict:
        is_plain = set(map(type, value)) <= {str} and all(map(str.isascii, value))
        return value if is_plain else {_name(key): item for key, item in value.items()}
    try:
        return view(opened(value))
    except NoJsonForm:
        return OPAQUE


def _name(key: Any) -> str:
    """A key as JSON has it; an object as a key is asked nothing."""
    return key_text(key) if issubclass(type(key), _KEYS) else ""


_EVALUATION: Final = 300_000
"""The most that one evaluation may cost, in characters that it looks at."""
_OPERATION: Final = 100_000
_ITEM: Final = 10
_CONTAINER: Final = 20
_SOUGHT: Final = 1000  # characters: the time of some searches grows with both texts
_STRIPPED: Final = 20
_NUMBERS: Final = frozenset({bool, int, float})
_SIMPLE: Final = _NUMBERS | {list}
_OPERATORS: Final[dict[type[ast.AST], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.USub: operator.neg, ast.UAdd: operator.pos,
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
_FUNCTIONS: Final[dict[str, Any]] = {
    "len": len, "abs": abs, "min": min, "max": max, "all_of": all, "any_of": any,
}  # fmt: skip
_KINDS: Final = {type(None): "None", str: "a string", int: "a number", float: "a number"}


def is_done(text: str, memory: Mapping[str, Any], key: str | None = None) -> bool:
    """Whether a condition is true of the memory.

    It reads ``memory``, the value of the step's own key under the name of that key, and calls ``len``,
    ``min``, ``max``, ``sum``, ``abs``, ``all_of`` and ``any_of``. A bool is a number, as in Python. Whatever
    fails makes it false: a missing key, a string compared with a number, more work than the bound allows.
    The memory is never changed.

    Args:
        text: The condition.
        memory: The values by key; a condition sees each as the JSON that is recorded of it. A value without
            a JSON form can only be compared with None.
        key: The key of the step; ``memory`` and a key that is not an identifier can only be read as
            ``memory['...']``.

    Raises:
        ConditionInvalid: It is not allowed, or its result is neither True nor False.
    """
    expression = check_condition(text)
    try:
        result = _Evaluation(memory, key).of(expression)
    except Exception:  # noqa: BLE001 - a condition that fails in any way is not known to be true
        return False
    if result is True or result is False:
        return result
    kind = _KINDS.get(type(result), "a list or a mapping or another object")
    raise ConditionInvalid(f"the condition gives {kind}; write a comparison, such as {EXAMPLE}")


class _Evaluation:
    """One evaluation, which raises where it fails.

    Its operations are a part of Python's: arithmetic is for numbers, an order for numbers and for texts, and
    a tuple is a list, as in JSON. The cost of an operation depends only on the JSON of its values, so that it
    is the same after a resume.
    """

    def __init__(self, memory: Mapping[str, Any], key: str | None) -> None:
        self._left = _EVALUATION
        self._views: dict[int, tuple[Any, Any]] = {}  # with the value: another must not get its id
        # It may be large, and is not converted as a whole: its keys are text, and most are as JSON has them.
        self._memory: Any = memory if type(memory) is dict else self._view(memory)
        self._key = key

    def of(self, node: ast.expr) -> Any:
        """The value of an expression."""
        match node:
            case ast.Constant():
                return node.value
            case ast.Name(id="memory"):
                return self._memory
            case ast.Name() if node.id == self._key:
                return self._item(self._memory, node.id)
            case ast.Subscript():
                return self._item(self.of(node.value), self.of(node.slice))
            case ast.Slice():
                return slice(*(each and self.of(each) for each in (node.lower, node.upper, node.step)))
            case ast.Call(func=ast.Attribute(value=owner, attr=name)):
                return self._method(self.of(owner), name, [self.of(each) for each in node.args])
            case ast.Call(func=ast.Name(id=name)):
                return self._function(name, [self.of(each) for each in node.args])
            case ast.List() | ast.Tuple():
                return [self.of(each) for each in node.elts]
            case ast.IfExp():
                return self.of(node.body if self.of(node.test) else node.orelse)
        return self._operation(node)

    def _operation(self, node: ast.expr) -> Any:
        match node:
            case ast.Compare():
                left = self.of(node.left)
                for op, side in zip(node.ops, node.comparators, strict=True):
                    right = self.of(side)
                    if not self._holds(op, left, right):
                        return False
                    left = right
                return True
            case ast.BoolOp():
                for each in node.values[:-1]:
                    value = self.of(each)
                    if bool(value) is isinstance(node.op, ast.Or):
                        return value
                return self.of(node.values[-1])
            case ast.UnaryOp(op=ast.Not()):
                return not self.of(node.operand)
            case ast.UnaryOp():
                return _OPERATORS[type(node.op)](_number(self.of(node.operand)))
            case ast.BinOp():
                left, right = _number(self.of(node.left)), _number(self.of(node.right))
                return _number(_OPERATORS[type(node.op)](left, right))
        raise TypeError

    def _view(self, value: Any) -> Any:
        """A value as JSON has it; a mapping or a long text is converted only once."""
        if type(value) in _SIMPLE or (type(value) is str and value.isascii()):
            return view(value)
        if id(value) not in self._views:
            self._views[id(value)] = value, view(value)
        return self._views[id(value)][1]

    def _spend(self, cost: int) -> None:
        """Pay for an operation before it is done."""
        self._left -= cost
        if cost > _OPERATION or self._left < 0:
            raise OverflowError

    def _name(self, key: Any) -> str:
        """A key as JSON has it."""
        name = str(key if key is None or type(key) is str else _number(key))
        self._spend(_CONTAINER + len(name))
        return name

    def _place(self, owner: Any, key: Any) -> tuple[Any, str]:
        """A mapping and a key in it, both as JSON has them."""
        name = self._name(key)
        is_odd = "\\" in name and owner is self._memory  # it may be the escape of half a character
        return self._view(owner) if is_odd else owner, name

    def _item(self, owner: Any, key: Any) -> Any:
        """``owner[key]``."""
        if type(key) is slice:
            self._spend(len(range(*key.indices(len(owner)))))
        owner, name = self._place(owner, key) if type(owner) is dict else (owner, key)
        return self._view(owner[name])

    def _method(self, owner: Any, name: str, given: list[Any]) -> Any:
        """``owner.name(*given)``."""
        if name == "get" and type(owner) is dict:
            key, default = given if len(given) > 1 else (*given, None)
            owner, found = self._place(owner, key)
            return self._view(owner.get(found, default))
        if len(_text((given[0] if given else None) or "")) > (_STRIPPED if "strip" in name else _SOUGHT):
            raise OverflowError
        if name not in {"startswith", "endswith"}:
            self._spend(len(owner))
        return getattr(str, name)(_text(owner), *given)

    def _function(self, name: str, given: list[Any]) -> Any:
        """``name(*given)``."""
        if name in {"len", "abs"}:
            return _FUNCTIONS[name](*given)
        if name == "sum":
            values, start = given if len(given) > 1 else (*given, 0)
            return _number(sum(map(_number, self._items(values)), _number(start)))
        values = self._items(*given) if len(given) == 1 and type(given[0]) in {list, dict} else given
        if name in {"min", "max"} and not all(type(each) in _NUMBERS for each in values):
            self._spend(sum(len(_text(each)) for each in values))
        return _FUNCTIONS[name](values)

    def _items(self, values: Any) -> list[Any]:
        """The items of a list; a mapping could mean its keys or its values."""
        if type(values) is not list:
            raise TypeError
        self._spend(_ITEM * len(values))
        return [self._view(each) for each in values]

    def _holds(self, op: ast.cmpop, left: Any, right: Any) -> bool:
        """``left op right``."""
        match op:
            case ast.Eq() | ast.NotEq():
                return self._equal(left, right) is isinstance(op, ast.Eq)
            case ast.Is() | ast.IsNot():
                return (left is right) is isinstance(op, ast.Is)
            case ast.In() | ast.NotIn():
                return self._is_in(left, right) is isinstance(op, ast.In)
        if type(left) is str:
            self._spend(min(len(left), len(_text(right))))
            return bool(_OPERATORS[type(op)](left, right))
        return bool(_OPERATORS[type(op)](_number(left), _number(right)))

    def _is_in(self, value: Any, container: Any) -> bool:
        """``value in container``."""
        if type(container) is dict:
            container, name = self._place(container, value)
            return name in container
        if type(container) is list:
            self._spend(_ITEM * len(container))
            return any(self._equal(each, value) for each in container)
        return bool(self._method(container, "find", [value]) >= 0)

    def _equal(self, left: Any, right: Any) -> bool:
        """``left == right``; a loop, because the values may be nested to any depth."""
        pairs = [(left, right)]
        for pair in pairs:  # which grow on the way
            one, other = map(self._view, pair)
            kind = type(one)
            if kind is type(other) and kind in {str, list, dict}:
                if len(one) != len(other):
                    return False
                self._spend(len(one) if kind is str else _CONTAINER + _ITEM * len(one))
            if kind is type(other) is list:
                pairs += zip(one, other, strict=True)
            elif kind is type(other) is dict:
                self._spend(sum(map(len, one)))
                if one.keys() != other.keys():
                    return False
                pairs += ((one[name], other[name]) for name in one)
            elif one != other:
                return False
        return True


def _number(value: Any) -> Any:
    """A number, given or calculated, if it is not too large to continue with."""
    if type(value) is not float and not (type(value) in _NUMBERS and -LARGEST <= value <= LARGEST):
        raise TypeError
    return value


def _text(value: Any) -> Any:
    if type(value) is not str:
        raise TypeError
    return value
