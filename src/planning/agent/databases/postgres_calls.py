"""The functions that a statement calls, as PostgreSQL reads its text.

A read-only transaction still stops other sessions, takes advisory locks, and writes files. What does so is a
volatile function, or runs a statement that it is given as text (crosstab, connectby, xpath_table).
"""

from __future__ import annotations

import re
from typing import Any, Final

import psycopg

from planning.agent.sql.guard import Failure

_HARMLESS: Final = [
    *("random", "random_normal", "gen_random_uuid", "uuidv4", "uuidv7", "clock_timestamp", "timeofday"),
    *("pg_relation_size", "pg_table_size", "pg_indexes_size", "pg_total_relation_size", "pg_database_size"),
    *("bernoulli", "system"),
]
_REFUSED: Final = """
    SELECT p.proname FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS n ON n.oid = p.pronamespace
    WHERE (p.proname = ANY(%s)
            OR p.proname = ANY(%s) AND p.pronargs > 0 AND p.pronargs - p.pronargdefaults < 2)
        AND p.prorettype NOT IN ('trigger'::pg_catalog.regtype, 'event_trigger'::pg_catalog.regtype)
        AND (pg_catalog.pg_function_is_visible(p.oid) OR n.nspname = ANY(%s))
        AND (p.provolatile = 'v' OR p.proname ~ '^(txid_current|pg_current_xact_id|connectby|xpath_table)$'
            OR p.proname ~ '^crosstab')
        AND NOT (n.nspname = 'pg_catalog' AND p.proname = ANY(%s)) LIMIT 1
"""
_LONGEST_NAME: Final = 63
_LETTER: Final = "A-Za-z_\x80-\U0010ffff"
_ESCAPED: Final = r"'(?:[^'\\]|\\.|'')*+'"
_TOKEN: Final = re.compile(  # what does not end is an error of PostgreSQL
    rf"""(?P<space>[\ \t\r\n\f\v]++|--[^\r\n]*+|/\*(?:(?!/\*|\*/).)*+\*/)
    |(?P<string>[eE]{_ESCAPED}(?:(?:[\ \t\r\n\f\v]|--[^\r\n]*+)*+{_ESCAPED})*+|'(?:[^']|'')*+'
        |(?P<mark>\$(?:[{_LETTER}][{_LETTER}0-9]*+)?\$).*?(?P=mark))
    |(?P<odd>/\*|[uU]&")
    |(?P<name>[{_LETTER}][{_LETTER}0-9$]*+|"(?:[^"]|"")*+")
    |(?P<other>.)""",
    re.DOTALL | re.VERBOSE,
)


def check_calls(connection: psycopg.Connection[Any], sql: str) -> None:
    """Refuse a statement that calls a function which may change something.

    A function is called by ``name(...)``, and one with a single parameter by ``(value).name`` too.

    Raises:
        Failure: It does.
    """
    tokens = [token for token in _TOKEN.finditer(sql) if token.lastgroup != "space"]
    if any(token["odd"] for token in tokens):
        raise Failure("refused", "a comment in a comment, or a name in Unicode escapes,")
    texts = ["", *(token[0] for token in tokens), ""]
    names, called, dotted = list[str](), list[str](), list[str]()
    for before, token, after in zip(texts, tokens, texts[2:], strict=False):
        if token["name"]:
            is_quoted = token[0].startswith('"')
            name = token[0][1:-1].replace('""', '"') if is_quoted else token[0].lower()
            names.append(name.encode()[:_LONGEST_NAME].decode(errors="ignore"))
            if after == "(":
                called.append(names[-1])
            elif before == ".":
                dotted.append(names[-1])
    for (name,) in connection.execute(_REFUSED, (called, dotted, names, _HARMLESS)):
        raise Failure("refused", f"calling {name}, which may change something,")
