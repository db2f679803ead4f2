"""The names that a wrong name probably means."""

from __future__ import annotations

import pytest

from planning.agent.sql.diagnosis import closest

COLUMNS = {
    "Artist": ["ArtistId", "Name"],
    "Album": ["AlbumId", "Title", "ArtistId"],
    "Track": ["TrackId", "Name", "AlbumId", "Milliseconds", "UnitPrice"],
    "Customer": ["CustomerId", "FirstName", "LastName", "Country", "Email", "SupportRepId"],
    "Invoice": ["InvoiceId", "CustomerId", "InvoiceDate", "BillingCity", "BillingCountry", "Total"],
}


@pytest.mark.parametrize(
    ("table", "name", "meant"),
    [
        ("Track", "album_id", ["AlbumId"]),
        ("Album", "artist_id", ["ArtistId"]),
        ("Artist", "album_id", []),
        ("Album", "genre_id", []),
        ("Artist", "ArtistName", ["Name"]),
        ("Artist", "ArtistNme", ["Name"]),
        ("Artist", "ArtistCountry", []),
        ("Customer", "CustomerName", ["FirstName", "LastName"]),
        ("Customer", "state", []),
        ("Invoice", "country", ["BillingCountry"]),
        ("Invoice", "total_amount", ["Total"]),
        ("Invoice", "custmer_id", ["CustomerId"]),
        ("Track", "id", ["TrackId"]),
        ("Track", "unitprices", ["UnitPrice"]),
        ("Track", "x" * 101, []),
    ],
)
def test_a_column_is_meant_by_its_words_and_then_by_its_spelling(
    table: str, name: str, meant: list[str]
) -> None:
    assert closest(name, [(table, COLUMNS[table])]) == [(0, each) for each in meant]


def test_the_words_of_one_table_go_before_the_spelling_of_another() -> None:
    groups = [("Album", COLUMNS["Album"]), ("Artist", COLUMNS["Artist"])]
    assert closest("artist_name", groups) == [(1, "Name")]


def test_names_that_are_as_near_in_two_tables_are_both_meant() -> None:
    groups = [("Artist", COLUMNS["Artist"]), ("Track", COLUMNS["Track"])]
    assert closest("nmae", groups) == [(0, "Name"), (1, "Name")]


@pytest.mark.parametrize("name", ["custmers", "customers", "CUSTOMER"])
def test_a_table_is_found_in_the_singular_and_misspelled(name: str) -> None:
    assert closest(name, [("", COLUMNS)]) == [(0, "Customer")]
