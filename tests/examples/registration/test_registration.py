"""The registration desk as a whole: in the registry, through the pipeline, and as a program."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
from pathlib import Path
from runpy import run_path

import pytest
from registration_runs import MailServer, lookup, mailed, sending
from syrupy.assertion import SnapshotAssertion

from examples.registration import (
    LookupRegistration,
    RegistrationDesk,
    SendRegistrationEmail,
    create_database,
    registration_tools,
)
from planning.tools import StorageUnavailable, ToolRegistry, get_tool, get_tool_descriptions, initialize_tools
from planning.tools.ledger import tool_calls
from session import InProcessEventBus, Session, SessionEvent

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
    registry = ToolRegistry(registration_tools())
    told = [
        {**registry.get_tool_descriptions()[n], **tool.parameters_schema()} for n, tool in enumerate(registry)
    ]
    assert json.dumps(told, indent=2) + "\n" == snapshot


def test_the_security_of_the_tools_is_declared() -> None:
    declared = [
        (tool.name, tool.requires_identifier, tool.returns_private_data, tool.rate_limit_key)
        for tool in registration_tools()
    ]
    assert declared == [
        ("lookup_registration", True, True, None),
        ("send_registration_email", True, True, "email_send"),
    ]


def test_nothing_private_is_in_any_log_or_event(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    create_database(tmp_path / "desk.db")
    bus = InProcessEventBus()
    events: list[SessionEvent] = []
    bus.subscribe(SessionEvent, events.append)
    session = Session(bus=bus)
    caplog.set_level(logging.DEBUG)
    told = mailed(
        tmp_path / "desk.db",
        MailServer(data={"invoice": "452 No room for ada@example.org"}),
        lookup(identifier="ada@example.org"),
        lookup(identifier="ben@example.org"),
        lookup(identifier="mallory@example.org"),
        lookup(identifier="ada@example.org", email="ada@example.org"),
        sending(identifier="REG-1001"),
        session=session,
    )
    assert [result["success"] for result in told] == [True, False, False, False, False]
    assert len(events) == 5
    # The mail server runs in this process too, and tells of what it is sent.
    records = [repr(vars(record)) for record in caplog.records if record.name != "mail.log"]
    assert len(records) >= 5
    shown = "\n".join([*records, *map(repr, events), *map(repr, tool_calls(session)), repr(session)])
    for private in ("ada@", "Ada Ex", "ben@", "mallory", "REG-1001", "PyGrove", "Harbour", "invoice"):
        assert private not in shown


def test_the_example_runs(snapshot: SnapshotAssertion) -> None:
    done = subprocess.run([sys.executable, PROGRAM], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == snapshot


def test_the_example_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "aiosmtpd.smtp", None)
    monkeypatch.setattr(sys, "path", [*sys.path])  # which the program changes
    with pytest.raises(SystemExit, match=r"^this example runs its own mail server: pip install aiosmtpd$"):
        run_path(PROGRAM)


# The configuration: given, or read from the environment when a call is made


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
