"""Statements that reach for other files, settings, locks, and functions that do more than read."""

# ruff: noqa: S608 - the statements are the subject of these tests

from __future__ import annotations

from collections.abc import Mapping

from sql_cases import FOLDER, cases

_FILES: dict[str, object] = {
    "attach another database": f"ATTACH '{FOLDER}/other.db' AS other",
    "attach a new file": f"ATTACH DATABASE '{FOLDER}/new.db' AS n",
    "attach by URI": f"ATTACH 'file:{FOLDER}/new.db?mode=rwc' AS n",
    "attach memory": "ATTACH ':memory:' AS m",
    "attach nothing": "ATTACH '' AS t",
    "attach an expression": f"ATTACH (SELECT '{FOLDER}' || '/new.db') AS n",
    "attach in a comment's clothes": f"/* SELECT */ attach/**/'{FOLDER}/new.db'/**/AS/**/n",
    "detach": "DETACH DATABASE main",
    "detach temp": "DETACH temp",
    "vacuum": "VACUUM",
    "vacuum main": "VACUUM main",
    "vacuum into": f"VACUUM INTO '{FOLDER}/copy.db'",
    "vacuum main into": f"VACUUM main INTO '{FOLDER}/copy.db'",
    "vacuum into a URI": f"VACUUM INTO 'file:{FOLDER}/copy.db?mode=rwc'",
    "a file as a table": f"SELECT * FROM '{FOLDER}/canary.txt'",
    "a file as a schema": f'SELECT * FROM "{FOLDER}/other.db".secrets',
    "another schema": "SELECT * FROM other.secrets",
    "shell command": f".read {FOLDER}/canary.txt",
    "shell output": f".output {FOLDER}/new.txt",
    "copy": f"COPY customers TO '{FOLDER}/new.csv'",
    "outfile": f"SELECT * FROM customers INTO OUTFILE '{FOLDER}/new.csv'",
    "load data": f"LOAD DATA INFILE '{FOLDER}/canary.txt' INTO TABLE customers",
}
_FUNCTIONS: dict[str, object] = {
    "load_extension": f"SELECT load_extension('{FOLDER}/evil')",
    "load_extension with an entry": f"SELECT load_extension('{FOLDER}/evil', 'sqlite3_evil_init')",
    "load_extension in a where": f"SELECT 1 FROM customers WHERE LOAD_EXTENSION('{FOLDER}/evil')",
    "load_extension quoted": f"SELECT \"load_extension\"('{FOLDER}/evil')",
    "load_extension in brackets": f"SELECT [load_extension] /* */ ('{FOLDER}/evil')",
    "load_extension in a CTE": f"WITH x AS (SELECT load_extension('{FOLDER}/evil')) SELECT * FROM x",
    "load_extension in an order": f"SELECT 1 ORDER BY load_extension('{FOLDER}/evil')",
    "readfile": f"SELECT readfile('{FOLDER}/canary.txt')",
    "writefile": f"SELECT writefile('{FOLDER}/new.txt', 'x')",
    "edit": "SELECT edit('x', 'touch new.txt')",
    "fsdir": f"SELECT * FROM fsdir('{FOLDER}')",
    "lsmode": "SELECT lsmode(33188)",
    "zipfile": f"SELECT * FROM zipfile('{FOLDER}/canary.txt')",
    "csv": f"SELECT * FROM csv('{FOLDER}/canary.txt')",
    "tokenizer address": "SELECT fts3_tokenizer('simple')",
    "tokenizer set": "SELECT fts3_tokenizer('simple', x'4141414141414141')",
    "optimize of a full-text table": "SELECT optimize(archive) FROM archive",
    "collation from a file": "SELECT icu_load_collation('de_DE', 'german')",
    "system": "SELECT system('touch new.txt')",
    "shell": "SELECT shell('touch new.txt')",
    "getenv": "SELECT getenv('HOME')",
    "pg_read_file": f"SELECT pg_read_file('{FOLDER}/canary.txt')",
    "load_file": f"SELECT load_file('{FOLDER}/canary.txt')",
    "sqlite_log": "SELECT sqlite_log(1, 'x')",
    "sqlite_rename_table": (
        "SELECT sqlite_rename_table('main', 'table', 'x', 'CREATE TABLE customers (x)', 'customers', 'y', 0)"
    ),
    "database pages": "SELECT data FROM sqlite_dbpage",
    "prepared statements": "SELECT * FROM sqlite_stmt",
    "memory of the program": "SELECT * FROM memstat",
}
_PRAGMAS: Mapping[str, object] = {
    name: f"PRAGMA {name}"
    for name in (
        "writable_schema = 1",
        "journal_mode = WAL",
        "journal_mode = DELETE",
        "user_version = 5",
        "user_version",
        "application_id = 1",
        "query_only = OFF",
        "trusted_schema = ON",
        "foreign_keys = ON",
        "schema_version = 99",
        "encoding = 'UTF-16'",
        "auto_vacuum = FULL",
        "incremental_vacuum",
        "wal_checkpoint(TRUNCATE)",
        "locking_mode = EXCLUSIVE",
        "cache_size = -100000000",
        "mmap_size = 1000000000",
        "temp_store = FILE",
        "temp_store_directory = '/'",
        "hard_heap_limit = 0",
        "soft_heap_limit = 0",
        "threads = 8",
        "case_sensitive_like = 1",
        "recursive_triggers = 1",
        "optimize",
        "integrity_check",
        "database_list",
        "table_info(customers)",
        "main.table_info('customers')",
        "compile_options",
        "function_list",
        "key = 'x'",
    )
} | {
    "between comments": "/**/PRAGMA/**/query_only/**/=/**/0",
    "lower case": "pragma query_only(0)",
    "explained": "EXPLAIN PRAGMA user_version = 5",
    "as a table of databases": "SELECT file FROM pragma_database_list",
    "as a quoted table": 'SELECT * FROM "pragma_database_list"',
    "as a table in a schema": "SELECT * FROM main.pragma_database_list",
    "as a table in mixed case": "SELECT * FROM Pragma_Database_List",
    "as a table in a CTE": "WITH x AS (SELECT file FROM pragma_database_list) SELECT * FROM x",
    "as a table within an expression": "SELECT (SELECT group_concat(file) FROM pragma_database_list)",
    "as a table of functions": "SELECT name FROM pragma_function_list",
    "as a table of modules": "SELECT name FROM pragma_module_list",
    "as a table of options": "SELECT * FROM pragma_compile_options",
    "as a table of integrity": "SELECT * FROM pragma_integrity_check",
    "as a table that optimizes": "SELECT * FROM pragma_optimize",
    "as a table of the journal": "SELECT * FROM pragma_journal_mode('WAL')",
    "as a table of columns": "SELECT * FROM pragma_table_info('customers')",
    "as a joined table of columns": (
        "SELECT m.name, p.name FROM sqlite_master AS m, pragma_table_info(m.name) AS p WHERE m.type = 'table'"
    ),
}
_TRANSACTIONS: Mapping[str, object] = {
    sql.lower(): sql
    for sql in (
        "BEGIN",
        "BEGIN IMMEDIATE",
        "BEGIN EXCLUSIVE TRANSACTION",
        "COMMIT",
        "END TRANSACTION",
        "ROLLBACK",
        "SAVEPOINT s",
        "RELEASE s",
        "ROLLBACK TO SAVEPOINT s",
        "START TRANSACTION",
        "LOCK TABLES customers WRITE",
    )
}
_UPKEEP: dict[str, object] = {
    "analyze": "ANALYZE",
    "analyze a table": "ANALYZE main.customers",
    "reindex": "REINDEX",
    "reindex a collation": "REINDEX NOCASE",
    "reindex a table": "REINDEX main.customers",
    "grant": "GRANT ALL ON customers TO PUBLIC",
    "call": "CALL delete_everything()",
    "set": "SET foreign_keys = 1",
    "use": "USE other",
    "kill": "KILL 1",
    "explain": "EXPLAIN SELECT * FROM customers",
    "explain query plan": "EXPLAIN QUERY PLAN SELECT * FROM customers",
}

REACH = cases(
    {
        "files": _FILES,
        "functions": _FUNCTIONS,
        "pragma": _PRAGMAS,
        "transactions": _TRANSACTIONS,
        "upkeep": _UPKEEP,
    }
)
