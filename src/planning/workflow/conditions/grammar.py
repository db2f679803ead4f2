"""What a condition may be made of: text to a syntax tree, or what is wrong with it."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from itertools import pairwise
from typing import Final

__all__ = ["EXAMPLE", "FUNCTIONS", "LARGEST", "METHODS", "ConditionInvalid", "parsed"]

EXAMPLE: Final = "memory.get('key') is not None"
FUNCTIONS: Final = ("len", "min", "max", "sum", "abs", "all_of", "any_of")
TESTS: Final = (
    "isalnum", "isalpha", "isascii", "isdecimal", "isdigit", "islower", "isnumeric", "isspace", "istitle",
    "isupper",
)  # fmt: skip
METHODS: Final = frozenset({
    "get", "startswith", "endswith", "lower", "upper", "casefold", "strip", "lstrip", "rstrip", "count",
    "find", "rfind", *TESTS,
})  # fmt: skip
_METHODS_OFFERED: Final = "get of a mapping, or a plain method of a text, such as startswith"
LARGEST: Final = 10**100
"""The largest whole number that a condition may hold, be handed or work out, either side of zero."""
_CHARACTERS: Final = 500
_NODES: Final = 100
_NAME_SHOWN: Final = 40

_NUMBER = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_TOKEN = re.compile(
    rf"(?P<text>'[^'\n]*'|\"[^\"\n]*\")|(?P<number>{_NUMBER})(?P<behind>[\w.]*)|(?P<name>[^\W\d]\w*)|(?P<comment>\#)"
)
_ASSIGNMENT = re.compile(r"(?<![=!<>:])=(?!=)")
_PREFIXES = frozenset({"b", "f", "r", "t", "u", "br", "rb", "fr", "rf", "tr", "rt"})
_OTHER_WORDS = {"true": "True", "false": "False", "null": "None", "undefined": "None"}

_ALLOWED = (
    ast.Expression, ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Compare, ast.Call, ast.IfExp, ast.Attribute,
    ast.Subscript, ast.Slice, ast.Name, ast.Constant, ast.List, ast.Tuple,
    ast.boolop, ast.cmpop, ast.Load, ast.Not, ast.USub, ast.UAdd,
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod,
)  # fmt: skip
_COMPREHENSION = ("a comprehension", "use len, min, max, sum, all_of or any_of")
_BITS = ("a bit operator", "write and, or, not")
_SHIFT = ("a shift", "write the number out")
_DISPLAY = "compare single values, such as memory['key']['name'] == 1"
_WAITING = ("await or yield", f"write a comparison, such as {EXAMPLE}")
_REFUSED: dict[type[ast.AST], tuple[str, str]] = {
    ast.ListComp: _COMPREHENSION,
    ast.SetComp: _COMPREHENSION,
    ast.DictComp: _COMPREHENSION,
    ast.GeneratorExp: _COMPREHENSION,
    ast.Lambda: ("a lambda", f"write a comparison, such as {EXAMPLE}"),
    ast.NamedExpr: ("an assignment", "compare with =="),
    ast.Pow: ("a power (**)", "write the number out"),
    ast.MatMult: ("the operator @", "use + - * / // %"),
    ast.LShift: _SHIFT,
    ast.RShift: _SHIFT,
    ast.BitAnd: _BITS,
    ast.BitOr: _BITS,
    ast.BitXor: _BITS,
    ast.Invert: _BITS,
    ast.Starred: ("a starred value", "give the list itself"),
    ast.Dict: ("a mapping in braces", _DISPLAY),
    ast.Set: ("a set in braces", "write a list, such as ['a', 'b']"),
    ast.Await: _WAITING,
    ast.Yield: _WAITING,
    ast.YieldFrom: _WAITING,
}
_UNKNOWN_CONSTRUCT = ("this construct", f"write a comparison, such as {EXAMPLE}")


class ConditionInvalid(ValueError):
    """A condition that is refused: the message says what is wrong with it, and what to write instead."""


def parsed(text: str) -> ast.Expression:
    """The syntax tree of a condition; shared, not to be changed.

    Raises:
        ConditionInvalid: It is no expression, is too long, or holds what is not allowed.
    """
    if not isinstance(text, str):
        raise ConditionInvalid(f'a condition is a text; write one, such as "{EXAMPLE}"')
    stripped = str.strip(text)
    if not stripped:
        raise ConditionInvalid(f"the condition is blank; write a comparison, such as {EXAMPLE}")
    if len(stripped) > _CHARACTERS:
        # Before the cache, which would keep the text.
        raise ConditionInvalid(
            f"the condition has {len(stripped)} characters, at most {_CHARACTERS}; shorten it"
        )
    return _parsed(stripped)


@lru_cache(maxsize=256)
def _parsed(text: str) -> ast.Expression:
    """See ``parsed``; a workflow that is run again and again has the same few conditions."""
    # A line break means nothing here that a space does not.
    text = re.sub(r"[\t\r\n]", " ", text)
    _check_characters(text)
    try:
        tree = ast.parse(text, mode="eval")
    except (SyntaxError, ValueError):
        raise ConditionInvalid(_no_expression(text)) from None
    except (RecursionError, MemoryError):
        raise ConditionInvalid("the condition is nested too deep; shorten it") from None
    _check_tree(tree)
    return tree


def _check_characters(text: str) -> None:
    """Refuse what the parser would warn about or read in a way of its own, before it sees it."""
    if not text.isprintable():
        raise ConditionInvalid("the condition holds a character that cannot be printed; remove it")
    if "\\" in text:
        raise ConditionInvalid("a backslash is not allowed in a condition; write the character itself")
    if "'''" in text or '"""' in text:
        raise ConditionInvalid("three quotes in a row are not allowed in a condition; write one")
    for token in _TOKEN.finditer(text):
        if token["comment"]:
            raise ConditionInvalid("a comment is not allowed in a condition; put it into the description")
        if token["behind"]:
            raise ConditionInvalid("a number in the condition is not decimal; write digits, then a space")
        if token["name"] and text[token.end() : token.end() + 1] in {"'", '"'}:
            prefix = token["name"].lower()
            if prefix in _PREFIXES:
                what = "an f-string" if "f" in prefix else "a text with a letter before its quote"
                raise _refusal(what, "write the text in plain quotes")


def _no_expression(text: str) -> str:
    """What to say of a text that cannot be parsed."""
    outside = _TOKEN.sub(lambda token: "" if token["text"] else token[0], text)
    if _ASSIGNMENT.search(outside):
        return "an assignment is not allowed in a condition; compare with =="
    if "&&" in outside or "||" in outside or "!" in outside.replace("!=", ""):
        return "the condition has an operator of another language; write and, or, not"
    return f"the condition is no expression; write a comparison, such as {EXAMPLE}"


def _check_tree(tree: ast.Expression) -> None:
    """Refuse whatever is not known to be harmless."""
    nodes = list(ast.walk(tree))
    count = sum(isinstance(node, ast.expr) for node in nodes)
    called: set[int] = set()
    for node in nodes:
        if not isinstance(node, _ALLOWED):
            raise _refusal(*_REFUSED.get(type(node), _UNKNOWN_CONSTRUCT))
        match node:
            case ast.Call():
                _check_call(node)
                called.add(id(node.func))
            case ast.Attribute() if id(node) not in called:
                raise _refusal("an attribute", "read a key, such as memory['key']")
            case ast.Name() if node.id in _OTHER_WORDS:
                raise ConditionInvalid(f"{node.id} is no name in a condition; write {_OTHER_WORDS[node.id]}")
            case ast.Constant():
                _check_constant(node.value)
            case ast.Compare():
                _check_identity(node)
    if count > _NODES:
        raise ConditionInvalid(f"the condition has {count} parts, at most {_NODES}; shorten it")


def _check_call(call: ast.Call) -> None:
    """Refuse to call anything but the functions and the methods that are known."""
    if call.keywords:
        raise _refusal("a keyword argument", "give the value alone")
    match call.func:
        case ast.Name(id=name):
            if name not in FUNCTIONS:
                raise _unknown_call(_shown(name, "an unknown function"), ", ".join(FUNCTIONS))
        case ast.Attribute(attr=name):
            if name not in METHODS:
                raise _unknown_call(_shown(name, "an unknown method"), _METHODS_OFFERED)
        case _:
            raise _refusal("a call of a value", f"call one of {', '.join(FUNCTIONS)}")


def _check_constant(value: object) -> None:
    """Refuse a value that is not of JSON, or beyond the numbers that are worked with."""
    if value is None or isinstance(value, str | int | float):
        if not isinstance(value, str | None) and not -LARGEST <= value <= LARGEST:
            raise ConditionInvalid("a number in the condition is too large; write one of at most 100 digits")
        return
    raise _refusal("this value", "write a text, a number, True, False or None")


def _check_identity(compare: ast.Compare) -> None:
    """Refuse ``is`` between values of which nobody knows whether they are the same object."""
    sides = pairwise([compare.left, *compare.comparators])
    for operator, pair in zip(compare.ops, sides, strict=True):
        if isinstance(operator, ast.Is | ast.IsNot) and not any(map(_is_single, pair)):
            raise ConditionInvalid("is compares with None, True and False alone; write == or !=")


def _is_single(side: ast.expr) -> bool:
    """Whether it is None, True or False, of which there is one each."""
    return isinstance(side, ast.Constant) and isinstance(side.value, bool | None)


def _unknown_call(what: str, offer: str) -> ConditionInvalid:
    return ConditionInvalid(f"the condition calls {what}; use {offer}")


def _refusal(what: str, remedy: str) -> ConditionInvalid:
    return ConditionInvalid(f"{what} is not allowed in a condition; {remedy}")


def _shown(name: str, otherwise: str) -> str:
    """A name as it was written, if it is short and plain."""
    return name if name.isascii() and len(name) <= _NAME_SHOWN else otherwise
