"""Addresses of stores as messages show them."""

from __future__ import annotations

import pytest

from session.address import hide_secrets


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
