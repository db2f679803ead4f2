"""The configuration of the registration desk: given, or read from the environment when a call is made."""

from __future__ import annotations

import asyncio

import pytest

from examples.registration import (
    LookupRegistration,
    RegistrationDesk,
    SendRegistrationEmail,
    registration_tools,
)
from planning.tools import StorageUnavailable

UNSET = "REGISTRATION_DATABASE is not set; set it to the path of the registrations' SQLite file"
UNREADABLE = (
    "REGISTRATION_SMTP must be host:port, such as 127.0.0.1:25, and REGISTRATION_SENDER "
    "one email address, such as desk@example.org"
)


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
