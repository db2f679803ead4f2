"""Sending documents: to the address on file alone, and with the truth about each of them."""

from __future__ import annotations

from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest
from registration_runs import MailServer, RawServer, account, change, mailed, read, sending, text_of

from examples.registration import create_database

ALL = ["badge", "invoice", "confirmation"]


@pytest.fixture
def database(tmp_path: Path) -> Path:
    create_database(tmp_path / "desk.db")
    return tmp_path / "desk.db"


def test_all_documents_on_file_are_sent_when_none_is_named(database: Path) -> None:
    server = MailServer()
    assert mailed(database, server, sending(identifier="ADA@example.org")) == [
        {
            "success": True,
            "data": account(sent=ALL),
            "error": None,
            "user_message": "I sent your badge, invoice and confirmation to the email address of your "
            "registration.",
        }
    ]
    assert server.subjects == [f"Your {kind} for PyGrove 2026" for kind in ALL]
    assert [envelope.rcpt_tos for envelope in server.taken] == [["ada@example.org"]] * 3


def test_a_mail_has_its_headers_a_text_and_the_document(database: Path) -> None:
    server = MailServer()
    mailed(database, server, sending(identifier="REG-1001", documents=["badge"]))
    (envelope,) = server.taken
    mail = read(envelope)
    assert (envelope.mail_from, envelope.rcpt_tos) == ("registration@example.org", ["ada@example.org"])
    told = {name: str(value) for name, value in mail.items()}
    assert parsedate_to_datetime(told.pop("Date")).tzinfo is not None
    assert told.pop("Message-ID").endswith("@example.org>")
    assert told.pop("Content-Type").startswith("multipart/mixed")
    assert told == {
        "From": "Registration desk <registration@example.org>",
        "To": "Ada Example <ada@example.org>",
        "Subject": "Your badge for PyGrove 2026",
        "Auto-Submitted": "auto-generated",
        "MIME-Version": "1.0",
    }
    body, attached = mail.iter_parts()
    assert text_of(body) == "Attached is the badge of your registration REG-1001.\n"
    assert (attached.get_filename(), text_of(attached)) == (
        "badge.txt",
        "The badge of Ada Example for PyGrove 2026.\n",
    )


def test_partial_delivery_says_what_went_out_and_what_did_not(database: Path) -> None:
    server = MailServer(data={"badge": "550 No badges", "invoice": "452 No room for ada@example.org"})
    assert mailed(database, server, sending(identifier="REG-1001")) == [
        {
            "success": False,
            "data": account(
                sent=["confirmation"],
                failed=["badge", "invoice"],
                reasons={
                    "badge": "the mail server refused it, code 550",
                    "invoice": "the mail server refused it for now, code 452",
                },
            ),
            "error": "Sent: confirmation. badge: the mail server refused it, code 550. "
            "invoice: the mail server refused it for now, code 452. "
            "To try again, name only what was not sent.",
            "user_message": "I sent your confirmation to the email address of your registration. "
            "I could not send your badge: the mail server refused it, code 550. "
            "I could not send your invoice: the mail server refused it for now, code 452.",
            "code": "tool",
        }
    ]
    assert server.subjects == ["Your confirmation for PyGrove 2026"]


@pytest.mark.parametrize(("more", "sent", "connections"), [([], [], 0), (["invoice"], ["invoice"], 1)])
def test_a_document_that_is_not_on_file_is_said_and_needs_no_mail_server_and_the_others_are_sent(
    database: Path, more: list[str], sent: list[str], connections: int
) -> None:
    server = MailServer()
    (result,) = mailed(database, server, sending(identifier="REG-2018", documents=["badge", *more]))
    assert (result["success"], result["code"], server.connections) == (False, "tool", connections)
    assert result["error"] == (
        f"Sent: {''.join(sent) or 'none'}. badge: none is on file. To try again, name only what was not sent."
    )
    assert result["data"] == account(sent=sent, failed=["badge"], reasons={"badge": "none is on file"})


NOT_CALLED: list[tuple[dict[str, Any], str]] = [
    *(
        ({"identifier": "REG-1001", "documents": each}, "parameter")
        for each in (["badge", "ticket"], [], "all")
    ),
    *(({"identifier": "REG-1001", each: "mallory@example.org"}, "parameter") for each in ("email", "to")),
    ({"identifier": "REG-1001, mallory@example.org"}, "data_not_found"),
    ({"identifier": "ada@example.org\r\nBcc: mallory@example.org"}, "data_not_found"),
    ({"identifier": "nobody@example.org"}, "data_not_found"),
    ({"identifier": "ben@example.org"}, "needs_user_input"),
    ({"documents": ["badge"]}, "needs_user_input"),
]


@pytest.mark.parametrize(("args", "code"), NOT_CALLED)
def test_without_one_registration_or_with_anything_else_than_its_documents_nothing_is_sent(
    database: Path, args: dict[str, Any], code: str
) -> None:
    server = MailServer()
    (result,) = mailed(database, server, sending(**args))
    assert (result["success"], result["code"], server.connections) == (False, code, 0)


# The address


def test_a_stored_line_break_becomes_no_header_and_no_recipient(database: Path) -> None:
    change(
        database,
        "UPDATE registrations SET name = ?, conference = ? WHERE id = 'REG-1001'",
        'Eve, "x" <mallory@example.org>\r\nBcc: mallory@example.org\u2028',
        "PyGrove\nBcc: mallory@example.org\r\n\r\nA text",
    )
    server = MailServer()
    (result,) = mailed(database, server, sending(identifier="REG-1001", documents=["badge"]))
    (envelope,) = server.taken
    mail = read(envelope)
    assert result["success"] is True
    assert envelope.rcpt_tos == ["ada@example.org"]
    assert mail.get_all("To") == ["Eve x mallory example org Bcc mallory example org <ada@example.org>"]
    assert mail.get_all("Subject") == ["Your badge for PyGrove Bcc: mallory@example.org A text"]
    assert (mail["Bcc"], mail["Cc"]) == (None, None)


@pytest.mark.parametrize(
    "stored",
    [
        "",
        "ada",
        "<ada@example.org>",
        "ada@example.org, mallory@example.org",
        "ada@example.org\r\nRCPT TO:<mallory@example.org>",
        "ada@ex\u00e4mple.org",
    ],
)
def test_a_stored_address_that_is_not_one_plain_address_gets_nothing(database: Path, stored: str) -> None:
    change(database, "UPDATE registrations SET email = ? WHERE id = 'REG-1001'", stored)
    server = MailServer()
    (result,) = mailed(database, server, sending(identifier="REG-1001"))
    reason = "no mail can be sent to the email address on file"
    assert result["data"] == account(failed=ALL, reasons=dict.fromkeys(ALL, reason))
    assert server.connections == 0


# Servers that are away, hang, break off or change their mind


OUT_OF_REACH = {
    "success": False,
    "data": None,
    "error": "Tool 'send_registration_email' encountered an error",
    "user_message": "I ran into a problem looking that up. Could you try again?",
    "code": "storage",
}
NOT_CONFIRMED = "the mail server did not confirm it: it may have gone out or not"
NOT_REACHED = "the mail server could not be reached in time"


@pytest.mark.parametrize(
    ("answers", "timeout_s"),
    [
        ((), 5.0),
        (("554 Go away",), 5.0),
        (("220 Hello",), 5.0),
        (("220 Hello", "550 No", "550 No"), 5.0),
        ((None,), 0.1),
        (("220 Hello", None), 0.1),
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
