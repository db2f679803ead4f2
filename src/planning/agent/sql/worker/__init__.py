"""The program of a worker process: the boundary behind which statements run.

It needs nothing but the standard library (and duckdb, for a DuckDB file), and nothing of this package, so
that a process is there within some 20 ms.
"""
