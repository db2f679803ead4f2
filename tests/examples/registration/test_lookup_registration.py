"""Looking a registration up: one match is told, none and several are failures that say what to do."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from registration_runs import lookup, results

from examples.registration import LookupRegistration, RegistrationDesk, create_database
from planning.tools import StorageUnavailable


def registration(*values: Any) -> dict[str, Any]:
    return dict(zip(("id", "name", "email", "conference", "status", "items"), values, strict=True))


ITEMS = ["badge", "invoice", "confirmation"]
ADA = registration("REG-1001", "Ada Example", "ada@example.org", "PyGrove 2026", "confirmed", ITEMS)
BEN = registration("REG-1002", "Ben Sample", "ben@example.org", "PyGrove 2026", "confirmed", ITEMS)
CLEO = registration("REG-2018", "Cleo Mock", "cleo@example.org", "Data Harbour 2026", "unpaid", ["invoice"])
IDS = ["REG-1001", "reg-1001", " REG-1001 "]
EMAILS = ["ada@example.org", "ADA@Example.ORG", " \tada@example.org\n"]
CONFERENCES = ["PyGrove 2026", "pygrove", " PYGROVE "]
NOT_FOUND = {
    "success": False,
    "data": None,
    "error": "No registration has this email address or registration id. Nothing was done. Ask the user to "
    "check the spelling, or for the other of the two.",
    "user_message": "I could not find a registration with that. Could you check the spelling, or give me the "
    "other one of your registration email and registration ID?",
    "code": "data_not_found",
}
UNAVAILABLE = "the registrations cannot be read now; try again later, or continue without them"


@pytest.fixture
def desk(tmp_path: Path) -> RegistrationDesk:
    create_database(tmp_path / "desk.db")
    return RegistrationDesk(tmp_path / "desk.db")


@pytest.mark.parametrize(
    ("args", "data"),
    [
        *(({"identifier": each}, ADA) for each in [*IDS, *EMAILS]),
        ({"identifier": "REG-1001", "conference": "  "}, ADA),
        *(({"identifier": "ben@example.org", "conference": each}, BEN) for each in CONFERENCES),
        ({"identifier": "REG-2018"}, CLEO),
    ],
)
def test_a_registration_is_found_by_its_id_or_its_email_and_by_its_conference_where_there_are_several(
    desk: RegistrationDesk, args: dict[str, str], data: dict[str, Any]
) -> None:
    assert results(desk, lookup(**args)) == [
        {"success": True, "data": data, "error": None, "user_message": None}
    ]


@pytest.mark.parametrize(
    "identifier",
    [
        "nobody@example.org",
        "REG-100",
        "' OR '1'='1",
        "x' UNION SELECT id, name, email, conference, status FROM registrations --",
        "'; DROP TABLE registrations; --",
        "%",
        "REG-100_",
        "ada@example.org, mallory@example.org",
        "\u0430da@example.org",  # a Cyrillic letter that looks like an a
        "ada@example.org\x00",
        "a" * 320,
    ],
)
def test_what_no_registration_has_is_not_found(desk: RegistrationDesk, identifier: str) -> None:
    before = desk.database.read_bytes()
    assert results(desk, lookup(identifier=identifier)) == [NOT_FOUND]
    assert desk.database.read_bytes() == before


def test_one_email_with_several_registrations_is_a_question(desk: RegistrationDesk) -> None:
    question = (
        "I found 2 registrations: Data Harbour 2026 (ID ending in 017) and PyGrove 2026 (ID ending in 002). "
        "Which conference is it, or what is the full registration ID?"
    )
    assert results(desk, lookup(identifier="ben@example.org")) == [
        {
            "success": False,
            "data": {
                "matches": [
                    {"conference": "Data Harbour 2026", "id_ends_with": "017"},
                    {"conference": "PyGrove 2026", "id_ends_with": "002"},
                ]
            },
            "error": "It is not clear which registration is meant. Nothing was done. Ask the user: "
            f"{question} Call again with the answer as conference, or with the id as identifier.",
            "user_message": question,
            "code": "needs_user_input",
            "needs_user_input": True,
            "input_request": question,
        }
    ]


@pytest.mark.parametrize("args", [{}, {"identifier": ""}, {"identifier": " "}, {"identifier": None}])
def test_without_an_identifier_the_user_is_asked_and_nothing_is_read(args: dict[str, Any]) -> None:
    question = "I'd be happy to help! Could you provide your registration email or registration ID?"
    assert results(RegistrationDesk(Path("/nowhere/desk.db")), lookup(**args)) == [
        {
            "success": False,
            "data": None,
            "error": f"lookup_registration was not called: ask the user first. {question}",
            "user_message": question,
            "code": "needs_user_input",
            "needs_user_input": True,
            "input_request": question,
        }
    ]


@pytest.mark.parametrize(
    "content", [None, b"This is the list of all who are registered: ada@example.org" * 100]
)
def test_a_database_that_cannot_be_read_is_storage_and_tells_nothing(
    desk: RegistrationDesk, content: bytes | None
) -> None:
    desk.database.unlink()
    if content is not None:
        desk.database.write_bytes(content)
    tool = LookupRegistration(desk)
    with pytest.raises(StorageUnavailable) as caught:
        asyncio.run(tool.execute(tool.parameters(identifier="REG-1001"), {}))
    assert (str(caught.value), caught.value.__context__) == (UNAVAILABLE, None)
    assert desk.database.exists() is (content is not None)
