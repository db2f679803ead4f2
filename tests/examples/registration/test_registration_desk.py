"""The configuration of the registration desk: given, or read from the environment when a call is made."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from examples.registration import (
    LookupRegistration,
    RegistrationDesk,
    SendRegistrationEmail,
    create_database,
    registration_tools,
)
from planning.tools import StorageUnavailable

UNSET = "REGISTRATION_DATABASE is not set; set it to the path of the registrations' SQLite file"
UNREADABLE = (
    "REGISTRATION_SMTP must be host:port, such as 127.0.0.1:25, and REGISTRATION_SENDER "
    "one email address, such as desk@example.org"
)


@pytest.mark.parametrize("environment", [{}, {"REGISTRATION_DATABASE": ""}])
def test_a_database_that_is_not_set_is_named(environment: dict[str, str]) -> None:
    with pytest.raises(StorageUnavailable) as caught:
        RegistrationDesk.from_environment(environment)
    assert str(caught.value) == UNSET


@pytest.mark.parametrize(
    ("environment", "desk"),
    [
        ({}, ("127.0.0.1", 25, "registration@example.org")),
        (
            {"REGISTRATION_SMTP": "mail.example.org:587", "REGISTRATION_SENDER": "desk@example.org"},
            ("mail.example.org", 587, "desk@example.org"),
        ),
        ({"REGISTRATION_SMTP": "[::1]:2525"}, ("::1", 2525, "registration@example.org")),
    ],
)
def test_the_environment_names_server_and_sender_or_leaves_them_as_they_are(
    environment: dict[str, str], desk: tuple[str, int, str]
) -> None:
    found = RegistrationDesk.from_environment({"REGISTRATION_DATABASE": "desk.db", **environment})
    assert found == RegistrationDesk(Path("desk.db"), *desk, 10.0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("REGISTRATION_SMTP", "mail.example.org"),
        ("REGISTRATION_SMTP", "mail.example.org:"),
        ("REGISTRATION_SMTP", ":25"),
        ("REGISTRATION_SMTP", "mail.example.org:0"),
        ("REGISTRATION_SMTP", "mail.example.org:65536"),
        ("REGISTRATION_SMTP", "mail.example.org:" + "9" * 5000),
        ("REGISTRATION_SENDER", "secret"),
    ],
)
def test_what_cannot_be_read_is_said_without_its_value(name: str, value: str) -> None:
    with pytest.raises(StorageUnavailable) as caught:
        RegistrationDesk.from_environment({"REGISTRATION_DATABASE": "desk.db", name: value})
    assert (str(caught.value), caught.value.__context__) == (UNREADABLE, None)


@pytest.mark.parametrize(
    "sender",
    [
        "",
        "desk",
        "Desk <desk@example.org>",
        "desk@example.org, other@example.org",
        "desk@example.org\r\nBcc: other@example.org",
        "d\u00e9sk@example.org",
    ],
)
def test_a_sender_is_one_plain_address(sender: str) -> None:
    with pytest.raises(ValueError) as caught:
        RegistrationDesk(Path("desk.db"), sender=sender)
    assert str(caught.value) == "sender must be one email address, such as desk@example.org"


def test_the_environment_is_read_when_a_call_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    create_database(tmp_path / "desk.db")
    tool = LookupRegistration()
    monkeypatch.setenv("REGISTRATION_DATABASE", str(tmp_path / "desk.db"))
    result = asyncio.run(tool.safe_execute({"identifier": "REG-1001"}, {}))
    assert (result["success"], result["data"]["name"]) == (True, "Ada Example")


@pytest.mark.parametrize("tool", registration_tools(), ids=lambda tool: tool.name)
def test_a_call_without_configuration_says_what_to_set(
    tool: LookupRegistration | SendRegistrationEmail, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("REGISTRATION_DATABASE", raising=False)
    assert asyncio.run(tool.safe_execute({"identifier": "REG-1001"}, {})) == {
        "success": False,
        "data": None,
        "error": UNSET,
        "user_message": "That does not work at the moment.",
        "code": "storage",
    }
