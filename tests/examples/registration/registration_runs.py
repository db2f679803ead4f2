"""Calls of the registration desk's tools, beside mail servers that really answer.

A mail server runs in the event loop that also makes the calls: a tool that blocked it would hear nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing, suppress
from email import message_from_bytes
from email.message import EmailMessage, MIMEPart
from email.policy import default
from pathlib import Path
from typing import Any

from aiosmtpd.smtp import SMTP, Envelope

from examples.registration import RegistrationDesk, registration_tools
from planning.tools import ToolRegistry, execute_tools
from planning.tools.rate_limit import RateLimiter
from session import Session

Call = dict[str, Any]


class MailServer:
    """A mail server that keeps what it takes, and refuses what it is told to."""

    def __init__(self, **answers: str) -> None:
        """Answer a mail whose subject has a word; to any other it is ``250 OK``."""
        self.taken: list[Envelope] = []
        self.connections = 0
        self._answers = answers

    async def handle_EHLO(
        self, _server: Any, session: Any, _envelope: Any, hostname: str, responses: list[str]
    ) -> list[str]:
        self.connections += 1
        session.host_name = hostname
        return responses

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Envelope) -> str:
        subject = read(envelope)["Subject"]
        answer = next((answer for word, answer in self._answers.items() if word in subject), "250 OK")
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


class RawServer:
    """A server that does what a mail server must not do.

    It greets with the first answer, and has one for each command; a mail counts as one. At None it hangs,
    and after the last answer it breaks off, for good.
    """

    def __init__(self, *answers: str | None) -> None:
        self._left = list(answers)
        self._is_reached = asyncio.Event()

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[int]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        async with server:
            yield server.sockets[0].getsockname()[1]
            await self._is_reached.wait()  # a server that closes as it accepts leaves the connection open

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._is_reached.set()
        with closing(writer), suppress(ConnectionError):
            while self._left:
                answer = self._left.pop(0)
                if answer is None:
                    await reader.read()
                    return
                writer.write(f"{answer}\r\n".encode())
                await writer.drain()
                await (reader.readuntil(b"\r\n.\r\n") if answer.startswith("354") else reader.readline())


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


async def results(
    desk: RegistrationDesk, *calls: Call, session: Session | None = None
) -> list[dict[str, Any]]:
    """What the calls come to, with a registry of its own: no test counts against another's limit."""
    registry = ToolRegistry(registration_tools(desk), limiter=RateLimiter())
    state = await execute_tools({"tool_calls": list(calls)}, registry=registry, session=session)
    return list(state["tool_results"].values())


def mailed(
    database: Path,
    server: MailServer | RawServer,
    *calls: Call,
    timeout_s: float = 5.0,
    session: Session | None = None,
) -> list[dict[str, Any]]:
    """What the calls come to, beside a mail server."""

    async def run() -> list[dict[str, Any]]:
        async with server.listening() as port:
            desk = RegistrationDesk(database, smtp_port=port, timeout_s=timeout_s)
            return await results(desk, *calls, session=session)

    return asyncio.run(run())
