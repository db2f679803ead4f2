"""Conditions: a step's ``done_check``, evaluated against the memory and nothing else.

    done_check = "memory.get('revenue') is not None and len(revenue) > 0"

A condition is one expression of a small part of Python, which is checked as a syntax tree. It sees the memory
as JSON, and what it does is bounded.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any, Final

from planning.errors import writable
from session.json_form import NoJsonForm, json_form, key_text, opened

EXAMPLE: Final = "memory.get('key') is not None"
FUNCTIONS: Final = ("len", "min", "max", "sum", "abs", "all_of", "any_of")
METHODS: Final = (
    "get", "startswith", "endswith", "lower", "upper", "casefold", "strip", "lstrip", "rstrip", "count",
    "find", "rfind", "isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "islower", "isnumeric",
    "isspace", "istitle", "isupper",
)  # fmt: skip
LARGEST: Final = 10**100
"""The largest whole number that a condition may contain, read or compute, on either side of zero."""
_CHARACTERS: Final = 500
_NODES: Final = 100
_NAME_SHOWN: Final = 40

_STRING = re.compile(r"'[^'\n]*'|\"[^\"\n]*\"")
_NUMBER = r"(?>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
_COMPARE = f"write a comparison, such as {EXAMPLE}"
_NOT_READ = {  # what the parser would drop, warn about or read as something else
    r"#": "a comment is not allowed in a condition; move it to the description",
    rf"(?<!\w){_NUMBER}[\w.]": "a number in the condition is not decimal; write digits, then a space",
    r"(?i)\b(?:f|fr|rf)['\"]": "an f-string is not allowed in a condition; write a plain string",
    r"(?i)\b(?:[brtu]|[bt]r|r[bt])['\"]": "a string prefix is not allowed in a condition; remove it",
}
_NOT_PARSED = {
    r"(?<![=!<>:])=(?!=)": "an assignment is not allowed in a condition; compare with ==",
    r"&&|\|\||!(?!=)": "the condition has an operator of another language; write and, or, not",
    r"": f"the condition is not an expression; {_COMPARE}",
}
_ALLOWED = (
    ast.Expression, ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Compare, ast.Call, ast.IfExp, ast.Attribute,
    ast.Subscript, ast.Slice, ast.Name, ast.Constant, ast.List, ast.Tuple,
    ast.boolop, ast.cmpop, ast.Load, ast.Not, ast.USub, ast.UAdd,
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod,
)  # fmt: skip
_REFUSED = {
    "ListComp SetComp DictComp GeneratorExp": (
        "a comprehension",
        "use len, min, max, sum, all_of or any_of",
    ),
    "Lambda": ("a lambda", _COMPARE),
    "NamedExpr": ("an assignment", "compare with =="),
    "Pow": ("a power (**)", "write the number out"),
    "MatMult": ("the operator @", "use + - * / // %"),
    "LShift RShift": ("a shift", "write the number out"),
    "BitAnd BitOr BitXor Invert": ("a bit operator", "write and, or, not"),
    "Starred": ("a starred value", "pass the list itself"),
    "Dict": ("a mapping in braces", "compare single values, such as memory['key']['name'] == 1"),
    "Set": ("a set in braces", "write a list, such as ['a', 'b']"),
    "Await Yield YieldFrom": ("await or yield", _COMPARE),
}
_OTHER_WORDS = {"true": "True", "false": "False", "null": "None", "undefined": "None"}


class ConditionInvalid(ValueError):
    """A condition that is refused: the message says what is wrong and what to write instead."""


def check_condition(text: str) -> ast.expr:
    """The syntax tree of a condition that can be evaluated; it is shared and must not be changed.

    Raises:
        ConditionInvalid: It is not an expression, is too long, or contains what is not allowed.
    """
    if not isinstance(text, str):
        raise ConditionInvalid(f'a condition must be a string; write one, such as "{EXAMPLE}"')
    stripped = str.strip(text)
    if not stripped:
        raise ConditionInvalid(f"the condition is blank; {_COMPARE}")
    if len(stripped) > _CHARACTERS:  # before the cache, which would keep the text
        count = f"{len(stripped)} characters, the limit is {_CHARACTERS}"
        raise ConditionInvalid(f"the condition has {count}; shorten it")
    return _parsed(stripped)


@lru_cache(maxsize=256)  # parsing and checking take 90 us, an evaluation 10
def _parsed(text: str) -> ast.expr:
    text = re.sub(r"[\t\r\n]", " ", text)  # the parser would give a line break a meaning
    if not text.isprintable():
        raise ConditionInvalid("the condition contains an unprintable character; remove it")
    if "\\" in text:
        raise _refusal("a backslash", "write the character itself")
    if "'''" in text or '"""' in text:
        raise _refusal("a triple quote", "write a single one")
    outside = _STRING.sub("''", text)
    for pattern, message in _NOT_READ.items():
        if re.search(pattern, outside):
            raise ConditionInvalid(message)
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        message = next(message for pattern, message in _NOT_PARSED.items() if re.search(pattern, outside))
        raise ConditionInvalid(message) from None
    except (RecursionError, MemoryError):
        raise ConditionInvalid("the condition is nested too deeply; shorten it") from None
    _check(list(ast.walk(tree)))
    return tree.body


def _check(nodes: list[ast.AST]) -> None:
    """Refuse whatever is not known to be harmless."""
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    for node in nodes:
        match node:
            case ast.Call():
                _check_call(node)
            case ast.Attribute() if id(node) not in called:
                raise _refusal("an attribute", "read a key, such as memory['key']")
            case ast.Name() if node.id in _OTHER_WORDS:
                raise ConditionInvalid(f"{node.id} is not a value; write {_OTHER_WORDS[node.id]}")
            case ast.Constant(value=int() | float() as number) if not -LARGEST <= number <= LARGEST:
                raise ConditionInvalid("a number in the condition is too large; write at most 100 digits")
            case ast.Constant(value=value) if not isinstance(value, str | int | float | None):
                raise _refusal("this value", "write a string, a number, True, False or None")
            case ast.Compare():
                _check_identity(node)
            case _ if not isinstance(node, _ALLOWED):
                kind = type(node).__name__
                found = (reason for kinds, reason in _REFUSED.items() if kind in kinds.split())
                raise _refusal(*next(found, ("this construct", _COMPARE)))
    count = sum(isinstance(node, ast.expr) for node in nodes)
    if count > _NODES:
        raise ConditionInvalid(f"the condition has {count} parts, the limit is {_NODES}; shorten it")


def _check_call(call: ast.Call) -> None:
    """Refuse to call anything but the known functions and methods."""
    if call.keywords:
        raise _refusal("a keyword argument", "pass only the value")
    known: tuple[str, ...] = FUNCTIONS
    kind, offer = "function", ", ".join(FUNCTIONS)
    match call.func:
        case ast.Attribute(attr=name):
            known, kind, offer = METHODS, "method", "get or a plain string method, such as startswith"
        case ast.Name(id=name):
            pass
        case _:
            raise _refusal("calling a value", f"use {offer}")
    if name not in known:
        shown = name if name.isascii() and len(name) <= _NAME_SHOWN else f"an unknown {kind}"
        raise ConditionInvalid(f"the condition calls {shown}; use {offer}")


def _check_identity(compare: ast.Compare) -> None:
    """Refuse ``is`` between values that may or may not be the same object."""
    for op, sides in zip(compare.ops, pairwise([compare.left, *compare.comparators]), strict=True):
        constants = [side for side in sides if isinstance(side, ast.Constant)]
        is_single = any(isinstance(each.value, bool | None) for each in constants)
        if isinstance(op, ast.Is | ast.IsNot) and not is_single:
            raise ConditionInvalid("is works only with None, True and False; write == or !=")


def _refusal(what: str, remedy: str) -> ConditionInvalid:
    return ConditionInvalid(f"{what} is not allowed in a condition; {remedy}")


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
_SOUGHT: Final = 1000  # characters: the time of some searches grows with both strings
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
    """Decide if a condition is true of the memory.

    It reads ``memory``, the value of the step's own key under the name of that key, and calls ``len``,
    ``min``, ``max``, ``sum``, ``abs``, ``all_of`` and ``any_of``. A bool is a number, as in Python. Whatever
    fails makes it false: a missing key, a string compared with a number, more work than the bound allows.
    The memory is never changed.

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

    Its operations are a part of Python's: arithmetic is for numbers, an order for numbers and strings, and
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
