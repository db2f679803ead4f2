"""Mail servers that are away, hang, break off or change their mind; what is known of it is told."""

from __future__ import annotations

from pathlib import Path

import pytest
from registration_runs import RawServer, account, mailed, sending

from examples.registration import create_database

OUT_OF_REACH = {
    "success": False,
    "data": None,
    "error": "Tool 'send_registration_email' encountered an error",
    "user_message": "I ran into a problem looking that up. Could you try again?",
    "code": "storage",
}
NOT_CONFIRMED = "the mail server did not confirm it: it may have gone out or not"
NOT_REACHED = "the mail server could not be reached in time"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    create_database(tmp_path / "desk.db")
    return tmp_path / "desk.db"


@pytest.mark.parametrize(
    ("answers", "timeout_s"),
    [
        ((), 5.0),
        (("554 Go away",), 5.0),
        (("220 Hello",), 5.0),
        (("220 Hello", "550 No", "550 No"), 5.0),
        ((None,), 0.5),
        (("220 Hello", None), 0.5),
    ],
)
def test_a_server_that_does_not_greet_or_hangs_in_its_greeting_is_storage(
    database: Path, answers: tuple[str | None, ...], timeout_s: float
) -> None:
    call = sending(identifier="REG-1001")
    assert mailed(database, RawServer(*answers), call, timeout_s=timeout_s) == [OUT_OF_REACH]


BEFORE = ("220 Hello", "250 Hello", "250 Sender", "250 Recipient")


@pytest.mark.parametrize("answers", [BEFORE, (*BEFORE, "354 Go"), (*BEFORE, "354 Go", "what?")])
def test_a_server_that_breaks_off_leaves_the_mail_unconfirmed(
    database: Path, answers: tuple[str, ...]
) -> None:
    (result,) = mailed(database, RawServer(*answers), sending(identifier="REG-1001", documents=["badge"]))
    assert result == {
        "success": False,
        "data": account(unconfirmed=["badge"], reasons={"badge": NOT_CONFIRMED}),
        "error": f"Sent: none. badge: {NOT_CONFIRMED}. To try again, name only what was not sent.",
        "user_message": "I cannot tell whether your badge went out; please look into your mailbox.",
        "code": "tool",
    }


def test_a_server_that_hangs_over_a_mail_leaves_it_unconfirmed_and_the_rest_unsent(database: Path) -> None:
    server = RawServer(*BEFORE, "354 Go", None)
    (result,) = mailed(database, server, sending(identifier="REG-1001"), timeout_s=0.2)
    assert result["data"] == account(
        failed=["invoice", "confirmation"],
        unconfirmed=["badge"],
        reasons={"badge": NOT_CONFIRMED, "invoice": NOT_REACHED, "confirmation": NOT_REACHED},
    )
