"""The tables of a PostgreSQL store."""

from __future__ import annotations

from typing import Final

from psycopg import sql

from session.errors import shown

FORMAT: Final = 1
"""What the tables have as their format."""
_CREATION: Final = """DO $session$
BEGIN
PERFORM pg_advisory_xact_lock(hashtextextended({name}, 0));
IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = {name}) THEN
    CREATE SCHEMA {schema};
END IF;
CREATE TABLE IF NOT EXISTS {schema}.store (format integer NOT NULL);
CREATE TABLE IF NOT EXISTS {schema}.sessions (
    key bigint PRIMARY KEY,
    id text NOT NULL,
    version bigint NOT NULL,
    hash bytea NOT NULL,
    changed_at text COLLATE "C" NOT NULL,
    about text NOT NULL,
    checked bytea NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS {schema}.changes (
    session bigint NOT NULL,
    version bigint NOT NULL,
    text text NOT NULL,
    hash bytea NOT NULL,
    rewound_to bigint,
    idempotency_key text,
    PRIMARY KEY (session, version)
);
CREATE INDEX IF NOT EXISTS changes_idempotency_key ON {schema}.changes (session, idempotency_key)
    WHERE idempotency_key IS NOT NULL;
CREATE INDEX IF NOT EXISTS changes_rewound_to ON {schema}.changes (session, version, rewound_to)
    WHERE rewound_to IS NOT NULL;
CREATE TABLE IF NOT EXISTS {schema}.checkpoints (
    session bigint NOT NULL,
    version bigint NOT NULL,
    text text NOT NULL,
    checked bytea NOT NULL,
    PRIMARY KEY (session, version)
);
CREATE TABLE IF NOT EXISTS {schema}.claims (
    id text NOT NULL,
    name text NOT NULL,
    version bigint NOT NULL,
    checked bytea NOT NULL,
    PRIMARY KEY (id, name)
);
INSERT INTO {schema}.store SELECT {format} WHERE NOT EXISTS (SELECT FROM {schema}.store);
END
$session$"""


def creation(schema: str) -> str:
    """One statement, which is one transaction, that makes the tables where they are not.

    Args:
        schema: The name of the schema; it is made where there is none.

    Raises:
        ValueError: It is not the name of a schema.
    """
    is_long = not 1 <= len(schema.encode("utf-8", "replace")) <= 63
    if is_long or not schema.isprintable() or set(schema) & set("$%?{}"):
        raise ValueError(f"schema must be 1 to 63 bytes of text without $ % ? {{ }}, got {shown(schema)}")
    name, quoted = sql.Literal(schema), sql.Identifier(schema)
    return sql.SQL(_CREATION).format(name=name, schema=quoted, format=FORMAT).as_string()
