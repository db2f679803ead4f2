"""What a condition may contain: from its text to a checked syntax tree, or an error."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from itertools import pairwise
from typing import Final

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
    r"(?i)\b(?:[brtu]|[bt]r|r[bt])['\"]": "a string prefix is not allowed in a condition; leave it out",
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
        raise _refusal("a keyword argument", "pass the value alone")
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
