"""What the plan may call: the tool that reads the SQLite file, two handlers, and an analyst.

``tools`` makes the file and the tool on it, so that the command line can name it:
``planning run ... --tools examples.filings.tools:tools``.
"""

from __future__ import annotations

import atexit
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from typing import Any, Final, Literal

import attrs

from examples.filings.facts import create_database
from planning.tools import DataNotFound, QueryResponses, StorageUnavailable, ToolSpec

__all__ = ["FilingsReader", "agents", "filings_tools", "handlers", "tools"]

Metric = Literal["Revenue", "NetIncome", "ResearchAndDevelopment"]
Figures = Mapping[str, float]
"""By fiscal year."""

_FACTS: Final = """
SELECT metric, fiscal_year, period_end, usd_millions, form FROM facts
WHERE ticker = :ticker AND period_end BETWEEN :start_date AND :end_date
AND form = coalesce(:filing_type, form) ORDER BY period_end, metric
"""
_TICKER: Final = {"description": "The symbol of its shares, such as AAPL", "min_length": 1, "max_length": 10}


def _not_a_date(text: str) -> list[str]:
    try:
        is_date = date.fromisoformat(text).isoformat() == text
    except ValueError:
        is_date = False
    return [] if is_date else [f"{text!r} is not a date; write YYYY-MM-DD, such as 2022-12-31"]


@dataclass(frozen=True, slots=True)
class FinancialFacts:
    """Which figures to look up: of the fiscal years that end between two dates, both included."""

    ticker: str = field(metadata=_TICKER)
    metrics: list[Metric] = field(metadata={"description": "Which figures", "min_items": 1})
    start_date: str = field(metadata={"description": "The first day, YYYY-MM-DD", "check": _not_a_date})
    end_date: str = field(metadata={"description": "The last day, YYYY-MM-DD", "check": _not_a_date})
    filing_type: Literal["10-K"] | None = field(
        default=None, metadata={"description": "From which form; from any when left out"}
    )

    def __post_init__(self) -> None:
        """Refuse a time that ends before it begins."""
        if self.end_date < self.start_date:
            raise ValueError(
                f"end_date {self.end_date} is before start_date {self.start_date}; exchange them"
            )


@dataclass(frozen=True, slots=True)
class CompanyInfo:
    """Which company to look up."""

    ticker: str = field(metadata=_TICKER)


@attrs.frozen
class FilingsReader(QueryResponses):
    """Answers queries from the SQLite file, which it only reads.

    It holds a path and no connection, so that a worker process can have a copy.

    Attributes:
        database: The file.
    """

    database: Path
    name = "sec_financial_data"

    def answer(self, query_type: str, asked: FinancialFacts | CompanyInfo) -> dict[str, Any]:
        """Answer one query.

        Returns:
            The envelope of the query, with ``data`` beside ``results``: what is known of the company, or its
            figures by metric and fiscal year, in millions of US dollars.

        Raises:
            StorageUnavailable: The file is not there, or cannot be read.
        """
        try:
            results, data = self._read(asked)
        except DataNotFound as error:
            return self.format_error_response(
                query_type,
                asdict(asked),
                error.message,
                code="data_not_found",
                user_message=f"I found nothing: {error.message}.",
            )
        except sqlite3.Error:
            pass  # raised below and not here: its text may hold a path
        else:
            return self.format_success_response(query_type, asdict(asked), results, data=data)
        raise StorageUnavailable("the file of company facts cannot be read now; try again later")

    def _read(self, asked: FinancialFacts | CompanyInfo) -> tuple[list[Any], dict[str, Any]]:
        address = f"{self.database.absolute().as_uri()}?mode=ro"
        with closing(sqlite3.connect(address, uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            companies = {row["ticker"]: dict(row) for row in connection.execute("SELECT * FROM companies")}
            company = companies.get(asked.ticker.upper())
            if company is None:
                raise DataNotFound(
                    f"no company has the ticker {asked.ticker}; known are {', '.join(companies)}"
                )
            if isinstance(asked, CompanyInfo):
                return [company], company
            rows = [dict(row) for row in connection.execute(_FACTS, {**asdict(asked), **company})]
        results = [row for row in rows if row["metric"] in asked.metrics]
        data: dict[str, dict[str, int]] = {metric: {} for metric in asked.metrics}
        for row in results:
            data[row["metric"]][str(row["fiscal_year"])] = row["usd_millions"]
        missing = " and no ".join(metric for metric, figures in data.items() if not figures)
        if missing:
            years = f"from {asked.start_date} to {asked.end_date}"
            raise DataNotFound(f"{company['name']} reported no {missing} {years}")
        return results, data


def filings_tools(database: Path) -> list[ToolSpec]:
    """The tool on a file that is there."""
    reader = FilingsReader(database)
    return [
        ToolSpec(
            reader.name,
            {"financial_facts": FinancialFacts, "company_info": CompanyInfo},
            "financial_data",
            "Look up what companies reported to the SEC: figures of fiscal years, in millions of US dollars.",
            function=reader.answer,
        )
    ]


def tools() -> list[ToolSpec]:
    """The tool on its own file, which is deleted when the program ends."""
    folder = Path(tempfile.mkdtemp(prefix="filings-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    create_database(folder / "filings.db")
    return filings_tools(folder / "filings.db")


def share(part: Figures, whole: Figures) -> dict[str, float]:
    """How much of the whole a part is, in percent with one decimal, for each year that both have."""
    return {year: round(100 * value / whole[year], 1) for year, value in part.items() if year in whole}


def rank(companies: Mapping[str, Mapping[str, Figures]], year: str) -> list[dict[str, Any]]:
    """The companies by the share of their revenue that they spent on research, largest first."""
    shares = {
        company: share(figures["ResearchAndDevelopment"], figures["Revenue"])[year]
        for company, figures in companies.items()
    }
    ordered = sorted(shares, key=lambda company: -shares[company])
    return [{"company": company, "percent": shares[company]} for company in ordered]


async def analyst(
    question: str, company: str, spent: int, revenue: int, trend: str, ranking: Sequence[Mapping[str, Any]]
) -> dict[str, str]:
    """Write the answer; an agent that asks a model has this place and these inputs."""
    found = f"{company} spent {spent:,} of {revenue:,} million US dollars on research. {trend}"
    compared = ", ".join(f"{each['company']} {each['percent']}%" for each in ranking)
    return {"question": question, "text": f"{found} Compared: {compared}."}


handlers: Final[Mapping[str, Callable[..., Any]]] = {"share": share, "rank": rank}
agents: Final[Mapping[str, Callable[..., Any]]] = {"analyst": analyst}
