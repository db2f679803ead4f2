"""A database whose dates are text in many spellings, with numbers as text, and views of them."""

from __future__ import annotations

import datetime
import sqlite3
from contextlib import closing
from pathlib import Path

_TABLES = Path(__file__).with_name("orders.sql").read_text(encoding="utf-8")


def make_orders(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as shop:
        shop.executescript(_TABLES)
        for n in range(1, 301):
            day = datetime.date(2022, 1, 1) + datetime.timedelta(days=n * 3)
            sent, seconds = day + datetime.timedelta(days=n % 9), 1_640_995_200 + n * 3 * 86_400
            row = (
                n, n % 40 + 1, str(day), f"{sent} 10:{n % 60:02}:00" if n % 7 else None, n * 1.5, n % 13,
                ["open", "closed", "void"][n % 3], f"{n * 317 % 100_000:05}", str(day.year),
                n - 1 if n % 5 else None, f"{day}T08:00:00Z", seconds, day.strftime("%m/%d/%Y"),
                day.strftime("%Y%m%d"), str(n) if n % 2 else None, n % 2, n / 7, str(n) if n % 10 else "N/A",
                f"{n} kg", f"{n % 24:02}:15:00", f"A{n}", seconds * 1_000, None, int(day.strftime("%Y%m%d")),
            )  # fmt: skip
            shop.execute(f"INSERT INTO orders VALUES ({', '.join('?' * len(row))})", row)  # noqa: S608 - marks
        for n in range(1, 41):
            person = (
                n, f"F{chr(65 + n % 26)}a", f"L{chr(65 + n % 20)}b", f"{1960 + n}-0{n % 9 + 1}-1{n % 9}",
                ["Oslo", "Bergen", "Rome"][n % 3], f"{n * 37:05}", n % 4, ["yes", "no"][n % 2],
                f"+47 22 {n:02} 33", n % 2, n - 1 if n > 1 else None,
            )  # fmt: skip
            shop.execute(f"INSERT INTO customers VALUES ({', '.join('?' * len(person))})", person)  # noqa: S608 - marks
        for year in range(2020, 2026):
            shop.execute("INSERT INTO years VALUES (?, ?, ?)", (year, f"Y{year}", str(year)))
        for n in range(1, 101):
            day = datetime.date(2023, 1, 1) + datetime.timedelta(days=n)
            shop.execute(
                'INSERT INTO "Order Items" VALUES (?, ?, ?, ?, ?)',
                (n, n % 50 + 1, n / 2, n % 5 + 1, str(day)),
            )
        for n in range(1, 51):
            value = str(n) if n % 2 else f"2024-02-{n // 2 + 1:02}"
            times = (f"{9 + n % 8:02}:{n % 60:02}", f"{17 + n % 3}:{n % 60:02}")
            shop.execute(
                "INSERT INTO events VALUES (?, ?, ?, ?, ?)", (n, ["date", "num"][n % 2], value, *times)
            )
        shop.commit()
    return path
