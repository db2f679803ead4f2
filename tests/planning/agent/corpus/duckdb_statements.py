"""Statements for a DuckDB file: what would write or reach out, what never ends, and what reads."""

# ruff: noqa: S608 - the statements are the subject of these tests

from __future__ import annotations

from pathlib import Path

import duckdb
from legitimate_sql import Good
from sql_cases import CANARY, FOLDER, cases

_WRITES: dict[str, object] = {
    "insert": "INSERT INTO cities VALUES (9, 'Rome')",
    "insert returning": "INSERT INTO cities VALUES (9, 'Rome') RETURNING id",
    "upsert": "INSERT OR REPLACE INTO cities VALUES (1, 'Rome')",
    "update": "UPDATE cities SET name = 'Rome'",
    "delete": "DELETE FROM cities",
    "delete behind a CTE": "WITH a AS (SELECT 1) DELETE FROM cities",
    "delete within a CTE": "WITH a AS (DELETE FROM cities RETURNING *) SELECT * FROM a",
    "truncate": "TRUNCATE cities",
    "merge": "MERGE INTO cities USING (SELECT 1 AS id) AS s ON cities.id = s.id WHEN MATCHED THEN DELETE",
    "create table": "CREATE TABLE evil (x INT)",
    "create table as": "CREATE OR REPLACE TABLE cities AS SELECT 1",
    "create temp table": "CREATE TEMP TABLE evil AS SELECT 1",
    "create view": "CREATE TEMP VIEW cities AS SELECT 1",
    "create macro": "CREATE TEMP MACRO abs(x) AS 1",
    "create sequence": "CREATE TEMP SEQUENCE evil",
    "create type": "CREATE TYPE evil AS ENUM ('x')",
    "create schema": "CREATE SCHEMA evil",
    "create index": "CREATE INDEX evil ON cities (name)",
    "create secret": "CREATE SECRET evil (TYPE s3, KEY_ID 'x', SECRET 'y')",
    "select into": "SELECT * INTO evil FROM cities",
    "drop": "DROP TABLE cities",
    "alter": "ALTER TABLE cities ADD COLUMN evil INT",
    "comment": "COMMENT ON TABLE cities IS 'evil'",
    "nextval": "SELECT nextval('numbers')",
    "setval": "SELECT setval('numbers', 9)",
    "begin": "BEGIN TRANSACTION",
    "commit": "COMMIT",
    "vacuum": "VACUUM ANALYZE",
    "analyze": "ANALYZE",
    "checkpoint": "CHECKPOINT",
    "force checkpoint": "FORCE CHECKPOINT",
    "stacked": "SELECT 1; DELETE FROM cities",
    "stacked behind dollars": "SELECT $$;$$; DELETE FROM cities; --$$",
    "stacked behind a backslash": "SELECT '\\'; DELETE FROM cities; --'",
    "prepare": "PREPARE p AS DELETE FROM cities",
    "execute": "EXECUTE p",
    "explain analyze": "EXPLAIN ANALYZE DELETE FROM cities",
    "query of a delete": "SELECT * FROM query('DELETE FROM cities RETURNING *')",
    "query of two": "SELECT * FROM query('SELECT 1; DELETE FROM cities')",
}
_REACH: dict[str, object] = {
    "attach": f"ATTACH '{FOLDER}/new.duckdb' AS n",
    "attach for reading": f"ATTACH '{FOLDER}/other.duckdb' AS o (READ_ONLY)",
    "attach memory": "ATTACH ':memory:' AS m",
    "detach": "DETACH shop",
    "use": "USE memory",
    "copy out": f"COPY cities TO '{FOLDER}/new.csv'",
    "copy a query out": f"COPY (SELECT 1) TO '{FOLDER}/new.parquet' (FORMAT parquet)",
    "copy in": f"COPY cities FROM '{FOLDER}/canary.txt'",
    "copy from database": "COPY FROM DATABASE shop TO memory",
    "export": f"EXPORT DATABASE '{FOLDER}/new'",
    "import": f"IMPORT DATABASE '{FOLDER}'",
    "install": "INSTALL httpfs",
    "install from": "INSTALL spatial FROM 'http://127.0.0.1:9/evil'",
    "load": f"LOAD '{FOLDER}/evil.duckdb_extension'",
    "update extensions": "UPDATE EXTENSIONS",
    "set": "SET memory_limit = '100GB'",
    "set global": "SET GLOBAL enable_external_access = true",
    "set unlock": "SET lock_configuration = false",
    "set log": f"SET log_query_path = '{FOLDER}/new.log'",
    "set variable": "SET VARIABLE x = 1",
    "reset": "RESET ALL",
    "pragma": "PRAGMA database_list",
    "pragma set": "PRAGMA enable_profiling",
    "pragma profile": f"PRAGMA profile_output = '{FOLDER}/new.json'",
    "call": "CALL pragma_version()",
    "call logging": f"CALL enable_logging(storage = 'file', storage_path = '{FOLDER}/logs')",
    "select logging": f"SELECT * FROM enable_logging(storage = 'file', storage_path = '{FOLDER}/logs')",
    "select profiling": f"SELECT * FROM enable_profiling(save_location = '{FOLDER}/new.json')",
    "read_csv": f"SELECT * FROM read_csv('{FOLDER}/canary.txt')",
    "read_csv_auto": f"SELECT * FROM read_csv_auto('{FOLDER}/canary.txt', header = false)",
    "read_parquet": f"SELECT * FROM read_parquet('{FOLDER}/*')",
    "read_json": f"SELECT * FROM read_json('{FOLDER}/canary.txt')",
    "read_ndjson_objects": f"SELECT * FROM read_ndjson_objects('{FOLDER}/canary.txt')",
    "read_text": f"SELECT content FROM read_text('{FOLDER}/canary.txt')",
    "read_blob": f"SELECT content FROM read_blob('{FOLDER}/*')",
    "read_duckdb": f"SELECT * FROM read_duckdb('{FOLDER}/other.duckdb')",
    "glob": f"SELECT * FROM glob('{FOLDER}/*')",
    "sniff_csv": f"SELECT * FROM sniff_csv('{FOLDER}/canary.txt')",
    "parquet_metadata": f"SELECT * FROM parquet_metadata('{FOLDER}/canary.txt')",
    "a file as a table": f"SELECT * FROM '{FOLDER}/canary.txt'",
    "a csv as a table": f"FROM '{FOLDER}/canary.csv'",
    "a quoted csv as a table": f'FROM "{FOLDER}/canary.csv"',
    "files as a table": f"FROM '{FOLDER}/*.csv'",
    "the network": "FROM 'http://127.0.0.1:9/x.csv'",
    "a bucket": "FROM read_csv('s3://bucket/x.csv')",
    "query of a file": f"SELECT * FROM query('FROM read_text(''{FOLDER}/canary.txt'')')",
    "query_table of a file": f"SELECT * FROM query_table('{FOLDER}/canary.csv')",
    "serialized": (
        "SELECT * FROM json_execute_serialized_sql(json_serialize_sql("
        f"'SELECT * FROM read_text(''{FOLDER}/canary.txt'')'))"
    ),
    "getenv": "SELECT getenv('HOME')",
    "a variable of the program": "SELECT * FROM sys",
    "pandas_scan": "SELECT * FROM pandas_scan(12345)",
    "arrow_scan": "SELECT * FROM arrow_scan(1, 2, 3)",
    "python_map_function": "SELECT * FROM python_map_function(1)",
    "sqlite_scan": f"SELECT * FROM sqlite_scan('{FOLDER}/other.db', 'secrets')",
    "show": "SHOW TABLES",
    "describe": "DESCRIBE cities",
    "summarize": "SUMMARIZE cities",
}
_WRONG: dict[str, object] = {
    "table with a slip": "SELECT * FROM citys",
    "column with a slip": "SELECT nam FROM cities",
    "column behind an alias": "SELECT c.nam FROM cities AS c",
    "alias nobody gave": "SELECT x.name FROM cities AS c",
    "ambiguous column": "SELECT name FROM cities AS a, cities AS b",
    "function nobody knows": "SELECT reverse_all(name) FROM cities",
    "wrong arguments": "SELECT substr(name) FROM cities",
    "grammar": "SELECT * FORM cities",
    "too early": "SELECT * FROM",
    "open text": "SELECT 'Ada",
    "no group": "SELECT name, count(*) FROM cities",
    "types": "SELECT name + 1 FROM cities",
    "cast": "SELECT CAST(name AS INTEGER) FROM cities",
    "parameter": "SELECT * FROM cities WHERE id = ?",
    "dollar parameter": "SELECT * FROM cities WHERE id = $1",
    "number too large": "SELECT 9223372036854775807 + 1::BIGINT",
    "half a character": "SELECT '\ud800'",
    "two values for one": "SELECT (SELECT id FROM cities)",
    "error": "SELECT error('boom')",
    "a length of time that Python does not know": "SELECT to_millennia(12345)",
    "a pattern that is none": "SELECT regexp_matches('a', '(')",
    "empty": "",
    "comment": "-- SELECT 1",
}
_ENDLESS: dict[str, object] = {
    "recursion": "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT sum(x) FROM n",
    "cross joins": "SELECT count(*) FROM range(999999) AS a, range(999999) AS b WHERE a.range + b.range < 0",
    "generate_series": "SELECT sum(x * x % 7) FROM generate_series(1, 1000000000000) AS t (x)",
    "sleep": "SELECT sleep_ms(100000)",
    "levenshtein": "SELECT levenshtein(repeat('ab', 300000), repeat('ba', 300000))",
}
_HEAVY: dict[str, object] = {
    "a list of lists": "SELECT list_sum([list_sum(range(x)) FOR x IN range(1000000)])",
    "a range as a list": "SELECT range(100000000000)",
    "a long text": "SELECT length(repeat('x', 100000000000))",
    "a text of texts": "SELECT length(repeat(repeat(repeat('x', 100000), 10000), 10000))",
    "sorted rows": "SELECT repeat('x', 1000) || random() AS a FROM range(100000000) ORDER BY a",
    "string_agg": "SELECT length(string_agg(repeat('x', 10000), ',')) FROM range(10000000)",
    "list": "SELECT len(list(random())) FROM range(10000000000)",
    "distinct": "SELECT count(DISTINCT random()) FROM range(10000000000)",
    "parentheses": "SELECT " + "(" * 40_000 + "1" + ")" * 40_000,
    "sums": "SELECT 1" + " + 1" * 20_000,
    "not": "SELECT " + "NOT " * 20_000 + "true",
    "lists of lists": "SELECT " + "[" * 40_000 + "]" * 40_000,
    "casts": "SELECT 1" + "::INT" * 15_000,
    "views of views": (
        "WITH t0 (x) AS (SELECT 1), "
        + ", ".join(
            f"t{i} (x) AS (SELECT x FROM t{i - 1} UNION ALL SELECT x FROM t{i - 1})" for i in range(1, 40)
        )
        + " SELECT count(*) FROM t39"
    ),
    "joins": "SELECT count(*) FROM " + ", ".join(f"range(100) AS a{i}" for i in range(200)),
}

HOSTILE_DUCKDB = cases({"duckdb writes": _WRITES, "duckdb reach": _REACH})
WRONG_DUCKDB = cases({"duckdb wrong": _WRONG})
ENDLESS_DUCKDB = cases({"duckdb endless": _ENDLESS}, "timeout")
HEAVY_DUCKDB = cases({"duckdb heavy": _HEAVY}, "parameter", "timeout")


def _one(name: str, sql: str, value: object) -> Good:
    return Good(name, f"{sql} AS a", ["a"], [[value]])


GOOD_DUCKDB = (
    _one("words in a text", "SELECT 'DELETE; DROP'", "DELETE; DROP"),
    _one("dollar quotes", "SELECT $$it's; --$$", "it's; --"),
    _one("an escaped text", "SELECT E'a\\nb'", "a\nb"),
    _one("replace", "SELECT replace('abc', 'b', 'x')", "axc"),
    Good("a comment at the end", "SELECT 1 AS a; -- that is all", ["a"], [[1]]),
    Good("a quoted table", 'SELECT "insert" FROM "delete"', ["insert"], [["one"]]),
    Good("from first", "FROM cities SELECT name WHERE id = 2", ["name"], [["Oslo"]]),
    Good("only from", "FROM cities LIMIT 1", ["id", "name"], [[1, "Zürich"]]),
    Good("values", "VALUES (1, 'a'), (2, NULL)", ["col0", "col1"], [[1, "a"], [2, None]]),
    Good("with", "WITH a AS (SELECT 2 AS x) SELECT x FROM a", ["x"], [[2]]),
    Good("with recursive",
         "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 3) FROM n",
         ["x"], [[1], [2], [3]]),
    Good("range", "SELECT range AS x FROM range(3)", ["x"], [[0], [1], [2]]),
    Good("group by all", "SELECT id % 2 AS odd, count(*) AS n FROM cities GROUP BY ALL ORDER BY ALL",
         ["odd", "n"], [[0, 1], [1, 2]]),
    Good("qualify", "SELECT id FROM cities QUALIFY row_number() OVER (ORDER BY id DESC) = 1", ["id"], [[3]]),
    Good("exclude", "SELECT * EXCLUDE (id) FROM cities WHERE id = 3", ["name"], [["Lima"]]),
    Good("star replace", "SELECT * REPLACE (id * 10 AS id) FROM cities WHERE id = 3",
         ["id", "name"], [[30, "Lima"]]),
    Good("ids of both sides", "SELECT * FROM cities AS a JOIN cities AS b USING (name) WHERE a.id = 1",
         ["id", "name", "id"], [[1, "Zürich", 1]]),
    Good("columns of one name", "SELECT 1 AS a, 2 AS a", ["a", "a"], [[1, 2]]),
    Good("a view", "SELECT n FROM counted", ["n"], [[3]]),
    Good("unnest", "SELECT unnest([1, 2]) AS x", ["x"], [[1], [2]]),
    Good("unpivot", "UNPIVOT (SELECT 1 AS a, 2 AS b) ON a, b", ["name", "value"], [["a", 1], ["b", 2]]),
    Good("tablesample", "SELECT count(*) AS n FROM cities USING SAMPLE 100%", ["n"], [[3]]),
    Good("query of a select", "SELECT * FROM query('SELECT 1 AS x')", ["x"], [[1]]),
    Good("query_table", "SELECT count(*) AS n FROM query_table('cities')", ["n"], [[3]]),
    Good("information_schema", "SELECT table_name FROM information_schema.tables WHERE table_type = 'VIEW'",
         ["table_name"], [["counted"]]),
    Good("table", "TABLE counted", ["n"], [[3]]),
    _one("ilike", "SELECT 'ABC' ILIKE 'a%'", True),
    _one("double colon", "SELECT '5'::INTEGER", 5),
    _one("a date", "SELECT DATE '2024-02-29'", "2024-02-29"),
    _one("an interval", "SELECT DATE '2024-01-31' + INTERVAL 1 MONTH", "2024-02-29 00:00:00"),
    _one("a decimal", "SELECT 1.10::DECIMAL(5, 2)", 1.1),
    _one("a huge number", "SELECT 170141183460469231731687303715884105727::HUGEINT", 2**127 - 1),
    _one("infinity", "SELECT 'infinity'::DOUBLE", float("inf")),
    _one("a blob", "SELECT '\\xAA'::BLOB", b"\xaa"),
    _one("a list", "SELECT [1, 2, NULL]", [1, 2, None]),
    _one("a struct", "SELECT {'x': 1, 'y': [2]}", {"x": 1, "y": [2]}),
    _one("json", "SELECT '{\"a\": [1, 2]}'::JSON ->> '$.a[1]'", "2"),
    _one("a lambda", "SELECT list_transform([1, 2], lambda x: x + 1)", [2, 3]),
    _one("a regular expression", "SELECT regexp_extract('a12', '[0-9]+')", "12"),
    _one("an escaped quote", "SELECT E'\\'; DELETE FROM cities; --'", "'; DELETE FROM cities; --"),
    _one("a long decimal", "SELECT 12345678901234567890.12::DECIMAL(38, 2)", "12345678901234567890.12"),
    _one("a zone", "SELECT TIMESTAMPTZ '2024-01-01 00:00+00' = TIMESTAMPTZ '2024-01-01 01:00+01'", True),
    _one("letters beyond the plane", "SELECT '🙂;'", "🙂;"),
)  # fmt: skip


def build_duckdb(folder: Path) -> Path:
    """A small DuckDB file, beside files that hold the canary."""
    (folder / "canary.txt").write_text(CANARY, encoding="utf-8")
    (folder / "canary.csv").write_text(f"word\n{CANARY}\n", encoding="utf-8")
    with duckdb.connect(str(folder / "other.duckdb")) as other:
        other.execute(f"CREATE TABLE secrets AS SELECT '{CANARY}' AS word")
    path = folder / "shop.duckdb"
    with duckdb.connect(str(path)) as shop:
        shop.execute("CREATE TABLE cities (id INTEGER PRIMARY KEY, name TEXT NOT NULL)")
        shop.execute("INSERT INTO cities VALUES (1, 'Zürich'), (2, 'Oslo'), (3, 'Lima')")
        shop.execute('CREATE TABLE "delete" ("insert" TEXT)')
        shop.execute("INSERT INTO \"delete\" VALUES ('one')")
        shop.execute("CREATE VIEW counted AS SELECT count(*) AS n FROM cities")
        shop.execute("CREATE SEQUENCE numbers")
    return path
