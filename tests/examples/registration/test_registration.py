"""The registration desk: looking a registration up, sending its documents, and the desk as a whole."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from email import message_from_bytes
from email.message import EmailMessage, MIMEPart
from email.policy import default
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, Envelope
from syrupy.assertion import SnapshotAssertion

from examples.registration import LookupRegistration, RegistrationDesk, create_database, registration_tools
from planning.tools import (
    StorageUnavailable,
    ToolRegistry,
    execute_tools,
    get_tool,
    get_tool_descriptions,
    initialize_tools,
)
from planning.tools.rate_limit import RateLimiter

# Calls of the tools, beside a mail server in the event loop that also makes the calls: a tool that blocked it
# would hear nothing. Without a server, no mail server can be reached.

Call = dict[str, Any]


class MailServer:
    """A mail server that keeps what it takes, and refuses what it is told to."""

    def __init__(self, **answers: str) -> None:
        """Answer a mail whose subject has a word, or hang; the answer to any other is ``250 OK``."""
        self.taken: list[Envelope] = []
        self._answers = answers

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Envelope) -> str:
        subject = read(envelope)["Subject"]
        answer = next((answer for word, answer in self._answers.items() if word in subject), "250 OK")
        if answer == "hang":
            await asyncio.sleep(60)
        if answer.startswith("250"):
            self.taken.append(envelope)
        return answer

    @property
    def subjects(self) -> list[str]:
        return [read(envelope)["Subject"] for envelope in self.taken]

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: SMTP(self, hostname="localhost"), "127.0.0.1", 0)
        async with server:
            yield server.sockets[0].getsockname()[1]


def read(envelope: Envelope) -> EmailMessage:
    """A mail as its reader sees it."""
    assert isinstance(envelope.content, bytes)
    return message_from_bytes(envelope.content, EmailMessage, policy=default)


def text_of(part: MIMEPart) -> str:
    """A part of a mail with the line ends that Python has."""
    text: str = part.get_content()
    return text.replace("\r\n", "\n")


def lookup(**args: Any) -> Call:
    return {"tool": "lookup_registration", "args": args}


def sending(**args: Any) -> Call:
    return {"tool": "send_registration_email", "args": args}


def results(
    database: Path, *calls: Call, server: MailServer | None = None, timeout_s: float = 5.0
) -> list[dict[str, Any]]:
    """What the calls come to, with a registry of its own: no test counts against another's limit."""

    async def called(port: int) -> list[dict[str, Any]]:
        tools = registration_tools(RegistrationDesk(database, smtp_port=port, timeout_s=timeout_s))
        registry = ToolRegistry(tools, limiter=RateLimiter())
        state = await execute_tools({"tool_calls": list(calls)}, registry=registry)
        return list(state["tool_results"].values())

    async def run() -> list[dict[str, Any]]:
        if server is None:
            return await called(1)
        async with server.listening() as port:
            return await called(port)

    return asyncio.run(run())


@pytest.fixture
def database(tmp_path: Path) -> Path:
    create_database(tmp_path / "desk.db")
    return tmp_path / "desk.db"


# Looking up: one match is told, none and several are failures that say what to do


def in_json(value: object) -> str:
    return json.dumps(value, indent=2) + "\n"


def registration(*values: Any) -> dict[str, Any]:
    return dict(zip(("id", "name", "email", "conference", "status", "items"), values, strict=True))


ALL = ["badge", "invoice", "confirmation"]
ADA = registration("REG-1001", "Ada Example", "ada@example.org", "PyGrove 2026", "confirmed", ALL)
BEN = registration("REG-1002", "Ben Sample", "ben@example.org", "PyGrove 2026", "confirmed", ALL)


@pytest.mark.parametrize(
    ("args", "data"),
    [
        *(({"identifier": each}, ADA) for each in ("reg-1001", " REG-1001 ", " \tADA@Example.ORG\n")),
        ({"identifier": "REG-1001", "conference": "  "}, ADA),
        ({"identifier": "ben@example.org", "conference": " PYGROVE "}, BEN),
    ],
)
def test_a_registration_is_found_by_its_id_or_its_email_and_by_its_conference_where_there_are_several(
    database: Path, args: dict[str, str], data: dict[str, Any]
) -> None:
    (result,) = results(database, lookup(**args))
    assert result == {"success": True, "data": data, "error": None, "user_message": None}


@pytest.mark.parametrize(
    "identifier",
    [
        "'; DROP TABLE registrations; --",
        "REG-100_",
        "ada@example.org, mallory@example.org",
        "\u0430da@example.org",  # a Cyrillic letter that looks like an a
    ],
)
def test_what_no_registration_has_is_not_found(database: Path, identifier: str) -> None:
    before = database.read_bytes()
    (result,) = results(database, lookup(identifier=identifier))
    assert (result["data"], result["code"]) == (None, "data_not_found")
    assert result["error"] == (
        "No registration has this email address or registration id. Nothing was done. Ask the user to check"
        " the spelling, or for the other of the two."
    )
    assert database.read_bytes() == before


def test_without_an_identifier_the_user_is_asked_and_nothing_is_read(snapshot: SnapshotAssertion) -> None:
    first, second = results(Path("/nowhere/desk.db"), lookup(), lookup(identifier=" "))
    assert in_json(first) == snapshot
    assert second == first


@pytest.mark.parametrize(
    "content", [None, b"This is the list of all who are registered: ada@example.org" * 100]
)
def test_an_unreadable_database_is_storage_and_tells_nothing(database: Path, content: bytes | None) -> None:
    database.unlink()
    if content is not None:
        database.write_bytes(content)
    tool = LookupRegistration(RegistrationDesk(database))
    with pytest.raises(StorageUnavailable) as caught:
        asyncio.run(tool.execute(tool.parameters(identifier="REG-1001"), {}))
    unavailable = "the registrations cannot be read now; try again later, or continue without them"
    assert (str(caught.value), caught.value.__context__) == (unavailable, None)
    assert database.exists() is (content is not None)


# Sending: to the address on file alone, and with the truth about each of the documents


def test_all_documents_on_file_are_sent_when_none_is_named_each_in_a_mail(
    database: Path, snapshot: SnapshotAssertion
) -> None:
    server = MailServer()
    (said,) = results(database, sending(identifier="ADA@example.org"), server=server)
    assert server.subjects == [f"Your {kind} for PyGrove 2026" for kind in ALL]
    ways = [(envelope.mail_from, *envelope.rcpt_tos) for envelope in server.taken]
    assert ways == [("registration@example.org", "ada@example.org")] * 3
    mail = read(server.taken[0])
    told = {name: str(value) for name, value in mail.items()}
    assert parsedate_to_datetime(told.pop("Date")).tzinfo is not None
    assert told.pop("Message-ID").endswith("@example.org>")
    assert told.pop("Content-Type").startswith("multipart/mixed")
    body, attached = mail.iter_parts()
    parts = [text_of(body), attached.get_filename(), text_of(attached)]
    assert f"{in_json(said)}{in_json(told)}{in_json(parts)}" == snapshot


REFUSING = MailServer(badge="550 No badges", invoice="452 No room for ada@example.org")
TOLD: dict[str, tuple[Call, MailServer | None, list[str]]] = {
    "several registrations have the email": (lookup(identifier="ben@example.org"), None, []),
    "a part is delivered": (sending(identifier="REG-1001"), REFUSING, ["confirmation"]),
    "not on file": (sending(identifier="REG-2018", documents=["badge"]), None, []),
    "one is not on file": (
        sending(identifier="REG-2018", documents=["badge", "invoice"]),
        MailServer(),
        ["invoice"],
    ),
    "the server hangs over one": (sending(identifier="REG-1001"), MailServer(badge="hang"), []),
}


@pytest.mark.parametrize("name", TOLD)
def test_what_was_done_and_what_was_not_is_told(
    name: str, database: Path, snapshot: SnapshotAssertion
) -> None:
    call, server, sent = TOLD[name]
    patience = 0.2 if "hangs" in name else 5.0
    assert in_json(results(database, call, server=server, timeout_s=patience)) == snapshot
    assert [each.split()[1] for each in (server.subjects if server else [])] == sent


@pytest.mark.parametrize(
    ("args", "code"),
    [
        ({"identifier": "REG-1001", "documents": ["badge", "ticket"]}, "parameter"),
        ({"identifier": "REG-1001", "documents": []}, "parameter"),
        ({"identifier": "REG-1001", "email": "mallory@example.org"}, "parameter"),
        ({"identifier": "ada@example.org\r\nBcc: mallory@example.org"}, "data_not_found"),
        ({"identifier": "ben@example.org"}, "needs_user_input"),
        ({"documents": ["badge"]}, "needs_user_input"),
        ({"identifier": "REG-1001"}, "storage"),  # no mail server can be reached
    ],
)
def test_without_one_registration_or_with_anything_else_than_its_documents_nothing_is_sent(
    database: Path, args: dict[str, Any], code: str
) -> None:
    (result,) = results(database, sending(**args))
    assert (result["success"], result["code"]) == (False, code)


def change(database: Path, statement: str, *values: object) -> None:
    """Change the data, as another program would."""
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(statement, values)


def test_a_stored_line_break_becomes_no_header_and_no_recipient(database: Path) -> None:
    change(
        database,
        "UPDATE registrations SET name = ?, conference = ? WHERE id = 'REG-1001'",
        'Eve, "x" <mallory@example.org>\r\nBcc: mallory@example.org\u2028',
        "PyGrove\nBcc: mallory@example.org\r\n\r\nA text",
    )
    server = MailServer()
    results(database, sending(identifier="REG-1001", documents=["badge"]), server=server)
    (envelope,) = server.taken
    mail = read(envelope)
    assert envelope.rcpt_tos == ["ada@example.org"]
    assert mail.get_all("To") == ["Eve x mallory example org Bcc mallory example org <ada@example.org>"]
    assert mail.get_all("Subject") == ["Your badge for PyGrove Bcc: mallory@example.org A text"]
    assert (mail["Bcc"], mail["Cc"]) == (None, None)


@pytest.mark.parametrize(
    "stored",
    [
        "",
        "ada@example.org, mallory@example.org",
        "ada@example.org\r\nRCPT TO:<mallory@example.org>",
        "ada@ex\u00e4mple.org",
    ],
)
def test_a_stored_address_that_is_not_one_plain_address_gets_nothing(database: Path, stored: str) -> None:
    change(database, "UPDATE registrations SET email = ? WHERE id = 'REG-1001'", stored)
    (result,) = results(database, sending(identifier="REG-1001"))
    reasons = dict.fromkeys(ALL, "no mail can be sent to the email address on file")
    assert result["data"] == {"sent": [], "failed": ALL, "unconfirmed": [], "reasons": reasons}


# The desk as a whole: in the registry, through the pipeline, and as a program

ROOT = Path(__file__).parents[3]
PROGRAM = str(ROOT / "examples" / "registration_desk.py")


# The two tests that the tools were specified with; here the application names the tools.


@pytest.mark.usefixtures("own_default")
def test_tool_registry() -> None:
    """Tools should be retrievable by name."""
    initialize_tools(registration_tools())
    assert get_tool("lookup_registration") is not None


@pytest.mark.usefixtures("own_default")
def test_planner_tool_descriptions() -> None:
    """Tool descriptions should be formatted for the planner prompt."""
    initialize_tools(registration_tools())
    descriptions = get_tool_descriptions()
    assert len(descriptions) >= 2
    assert all("name" in d for d in descriptions)


def test_a_planner_is_told_what_the_tools_do_and_what_they_take(snapshot: SnapshotAssertion) -> None:
    tools = registration_tools()
    descriptions = ToolRegistry(tools).get_tool_descriptions()
    told = [
        {
            **description,
            "returns_private_data": tool.returns_private_data,
            "rate_limit_key": tool.rate_limit_key,
            **tool.parameters_schema(),
        }
        for description, tool in zip(descriptions, tools, strict=True)
    ]
    assert in_json(told) == snapshot


def test_the_example_runs(snapshot: SnapshotAssertion) -> None:
    done = subprocess.run([sys.executable, PROGRAM], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == snapshot


def test_a_call_without_configuration_says_what_to_set(
    monkeypatch: pytest.MonkeyPatch, snapshot: SnapshotAssertion
) -> None:
    monkeypatch.delenv("REGISTRATION_DATABASE", raising=False)
    tool, _ = registration_tools()
    assert in_json(asyncio.run(tool.safe_execute({"identifier": "REG-1001"}, {}))) == snapshot
