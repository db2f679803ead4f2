"""Figures from the annual reports of five companies, and the SQLite file that is made of them.

``python examples/filings/facts.py FILE`` makes the file, to look into it.
"""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import Final

__all__ = ["create_database"]

_COMPANIES: Final = (
    # ticker, name, number at the SEC (CIK), last month of the fiscal year
    ("AAPL", "Apple Inc.", 320193, "September"),
    ("AMZN", "Amazon.com, Inc.", 1018724, "December"),
    ("GOOGL", "Alphabet Inc.", 1652044, "December"),
    ("META", "Meta Platforms, Inc.", 1326801, "December"),
    ("MSFT", "Microsoft Corporation", 789019, "June"),
)
_REPORTED: Final = (
    # ticker, form, fiscal year, its last day; in millions of US dollars: revenue, net income, research and
    # development. None: Amazon's statements have no such line, but one for "technology and content".
    ("AAPL", "10-K", 2020, "2020-09-26", 274_515, 57_411, 18_752),
    ("AAPL", "10-K", 2021, "2021-09-25", 365_817, 94_680, 21_914),
    ("AAPL", "10-K", 2022, "2022-09-24", 394_328, 99_803, 26_251),
    ("AAPL", "10-K", 2023, "2023-09-30", 383_285, 96_995, 29_915),
    ("AMZN", "10-K", 2020, "2020-12-31", 386_064, 21_331, None),
    ("AMZN", "10-K", 2021, "2021-12-31", 469_822, 33_364, None),
    ("AMZN", "10-K", 2022, "2022-12-31", 513_983, -2_722, None),
    ("AMZN", "10-K", 2023, "2023-12-31", 574_785, 30_425, None),
    ("GOOGL", "10-K", 2020, "2020-12-31", 182_527, 40_269, 27_573),
    ("GOOGL", "10-K", 2021, "2021-12-31", 257_637, 76_033, 31_562),
    ("GOOGL", "10-K", 2022, "2022-12-31", 282_836, 59_972, 39_500),
    ("GOOGL", "10-K", 2023, "2023-12-31", 307_394, 73_795, 45_427),
    ("META", "10-K", 2020, "2020-12-31", 85_965, 29_146, 18_447),
    ("META", "10-K", 2021, "2021-12-31", 117_929, 39_370, 24_655),
    ("META", "10-K", 2022, "2022-12-31", 116_609, 23_200, 35_338),
    ("META", "10-K", 2023, "2023-12-31", 134_902, 39_098, 38_483),
    ("MSFT", "10-K", 2020, "2020-06-30", 143_015, 44_281, 19_269),
    ("MSFT", "10-K", 2021, "2021-06-30", 168_088, 61_271, 20_716),
    ("MSFT", "10-K", 2022, "2022-06-30", 198_270, 72_738, 24_512),
    ("MSFT", "10-K", 2023, "2023-06-30", 211_915, 72_361, 27_195),
)
_SCHEMA: Final = """
CREATE TABLE companies (
    ticker TEXT PRIMARY KEY COLLATE NOCASE,
    name TEXT NOT NULL,
    cik INTEGER NOT NULL,
    year_ends TEXT NOT NULL
);
CREATE TABLE facts (
    ticker TEXT NOT NULL COLLATE NOCASE REFERENCES companies (ticker),
    form TEXT NOT NULL,
    fiscal_year INTEGER NOT NULL,
    period_end TEXT NOT NULL,
    metric TEXT NOT NULL,
    usd_millions INTEGER NOT NULL,
    PRIMARY KEY (ticker, metric, period_end, form)
);
"""


def create_database(path: Path) -> None:
    """Make the SQLite file.

    Raises:
        FileExistsError: Something is there already.
    """
    path.open("xb").close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.executescript(_SCHEMA)
        connection.executemany("INSERT INTO companies VALUES (?, ?, ?, ?)", _COMPANIES)
        for *source, revenue, net_income, research in _REPORTED:
            figures = {"Revenue": revenue, "NetIncome": net_income, "ResearchAndDevelopment": research}
            rows = [(*source, metric, value) for metric, value in figures.items() if value is not None]
            connection.executemany("INSERT INTO facts VALUES (?, ?, ?, ?, ?, ?)", rows)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: python facts.py FILE")
    try:
        create_database(Path(sys.argv[1]))
    except OSError as error:
        raise SystemExit(f"{sys.argv[1]} cannot be made: {error.strerror}; name another file") from None
