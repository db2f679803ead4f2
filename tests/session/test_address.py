"""Addresses of stores as messages show them."""

from __future__ import annotations

import pytest

from session import StoreError
from session.address import database_of, hide_secrets


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("at postgresql://ann:secret@h/d: no", "at postgresql://h/d: no"),
        ("at //ann@h/d", "at //h/d"),
        ("ann:secret@h is not a file", "h is not a file"),
        ("/data/a:b@c/plans.db is not a file", "/data/a:b@c/plans.db is not a file"),
        ("mail ann@h", "mail ann@h"),
        ("write postgresql://USER:PASSWORD@HOST:PORT/DATABASE", "write postgresql://USER:PASSWORD@HOST:PORT/DATABASE"),
        ("host=h password=secret dbname=d", "host=h password=... dbname=d"),
        ("host=h password = 'se cret' dbname=d", "host=h password = ... dbname=d"),
        ("postgresql://h/d?sslPassword=secret&a=b", "postgresql://h/d?sslPassword=...&a=b"),
    ],
)  # fmt: skip
def test_a_message_hides_users_and_passwords(text: str, shown: str) -> None:
    assert hide_secrets(text) == shown


@pytest.mark.parametrize(
    ("place", "database"),
    [
        ("postgresql://h/d", ("postgresql://h/d", "sessions")),
        ("Postgres://h/d?schema=a%20b&x=1", ("postgres://h/d?x=1", "a b")),
        ("postgresql://h/d?schema=a&schema=b", ("postgresql://h/d", "b")),
        ("host=h dbname=d", ("host=h dbname=d", "sessions")),
    ],
)
def test_an_address_names_a_database_and_the_schema_in_it(place: str, database: tuple[str, str]) -> None:
    assert database_of(place) == database


@pytest.mark.parametrize(
    ("place", "shown"),
    [("mysql+x://ann:secret@h/d", "mysql+x://"), ("a b://h", "this place"), ("h", "this place")],
)
def test_an_address_of_something_else_is_refused(place: str, shown: str) -> None:
    with pytest.raises(StoreError) as refused:
        database_of(place)
    assert str(refused.value) == (
        f"stores at {shown} are not supported; give a SQLite file, or postgresql://HOST/DATABASE"
    )
