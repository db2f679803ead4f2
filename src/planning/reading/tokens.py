"""The tokens of JSON, and those that models write instead."""

from __future__ import annotations

import re
from typing import Final

MOST_DIGITS: Final = 4000  # Python reads integers of 4300 digits at most

# All of these are possessive where they repeat: none ever backtracks, so that each is linear.
_WS = r"[ \t\n\r]*+"
_PLAIN = r'[^"\\\x00-\x1f]*+'
_UNICODE = r"u(?:(?![dD][89a-fA-F])[0-9a-fA-F]{4}|[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})"
_STRING = rf'"{_PLAIN}(?:\\(?:["\\/bfnrt]|{_UNICODE}){_PLAIN})*+"'
# Without an exponent and with few digits, so that no number overflows.
_NUMBER = r"-?(?:0|[1-9][0-9]{0,299}+)(?:\.[0-9]++)?(?![\w.+-])"
_SCALAR = rf"(?:{_STRING}|{_NUMBER}|(?:true|false|null)(?!\w))"

# An array of scalars, an object of scalars and of such arrays: what most values in a plan are.
_ARRAY = rf"\[{_WS}(?:{_SCALAR}{_WS}(?:,{_WS}{_SCALAR}{_WS})*+)?+\]"
_VALUE = rf"(?:{_SCALAR}|{_ARRAY})"
_FIELD = rf"{_STRING}{_WS}:{_WS}{_VALUE}{_WS}"
_OBJECT = rf"\{{{_WS}(?:{_FIELD}(?:,{_WS}{_FIELD})*+)?+\}}"

SCALAR: Final = re.compile(_SCALAR)
ARRAY: Final = re.compile(rf"\[{_WS}(?:{_SCALAR}{_WS}(,){_WS})*+(?:({_SCALAR}){_WS})?+\]")
"""If the first group matches and the second does not, a comma follows the last scalar."""
OBJECT: Final = re.compile(_OBJECT)
KEY: Final = re.compile(rf"{_STRING}{_WS}:{_WS}")
MEMBERS: Final = re.compile(rf"(?:{_WS}{_STRING}{_WS}:{_WS}(?:{_SCALAR}|{_ARRAY}|{_OBJECT}){_WS}(,))*+{_WS}")
ITEMS: Final = re.compile(rf"(?:{_WS}{_SCALAR}{_WS}(,))*+{_WS}")

_SPACE = r"[\x0b\x0c\x85\xa0\u1680\u2000-\u200b\u2028\u2029\u202f\u205f\u3000\ufeff]"
SKIPPED: Final = re.compile(
    rf"[ \t\n\r]++|(?P<odd>{_SPACE}++)"
    r"|(?P<comment>(?://|\#)[^\n\r]*+|/\*(?:[^*]|\*(?!/))*+(?P<closed>\*/)?)"
)
"""Text between tokens, one piece at a time."""

QUOTED: Final = {
    '"': re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL),
    "'": re.compile(r"'(?:[^'\\]|\\.)*+'", re.DOTALL),
}
"""By its quote, a string whatever is in it."""

ESCAPE: Final = re.compile(r'\\(?s:.)|["\x00-\x1f]')
"""A place to check in a string: escapes, quotes, control characters."""
JSON_ESCAPE: Final = re.compile(rf'\\(?:["\\/bfnrt]|{_UNICODE})')

REST: Final = re.compile(r"\s*+\Z")
"""The end of the text, with blanks before it."""

_NAME = r"(?:[^\W\d]|\$)[\w$-]*+"
NAME: Final = re.compile(_NAME)
WORD: Final = re.compile(r"\w[^,:{}\[\]\"'/#\\\x00-\x1f]*+")
LITERAL: Final = re.compile(r"(?:true|false|null|True|False|None)(?!\w)")
NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?")
ODD_NUMBER: Final = re.compile(r"[+-]?+(?:[0-9]|\.[0-9])[\w.+-]*+")

_ANY_SPACE = r"[\s\u200b\ufeff]*+"
_FENCE = r"(?:`{3,}+|~{3,}+)"

FENCE: Final = re.compile(rf"{_FENCE}[\w+.-]*+")
CANDIDATE: Final = re.compile(
    rf"\[(?={_ANY_SPACE}\{{)"
    rf"|\{{(?={_ANY_SPACE}(?:\"[^\"\n]*+\"|'[^'\n]*+'|{_NAME}){_ANY_SPACE}:)"
)
"""A place in prose where a plan may start: prose also has brackets, even empty ones."""
FENCED: Final = re.compile(rf"{_FENCE}[^\n\r`~]*+[\n\r]{_ANY_SPACE}(?=[\[{{])")
"""A fence, up to the bracket that its text starts with."""
PROSE: Final = re.compile(r"(?:\[[^{}\[\]\"':,]*+\]|\{[^{}\[\]\"':,]*+\})(?!\s*+$)")
"""Words in brackets, followed by something."""
FIRST_KEY: Final = re.compile(rf"{_ANY_SPACE}[\"']?({_NAME})[\"']?{_ANY_SPACE}:")
