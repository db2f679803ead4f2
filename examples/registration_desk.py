"""A registration desk: what a planner writes for three requests, and the answers to the user."""

import asyncio
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # the repository, from wherever it is run

from examples.registration import RegistrationDesk, create_database, registration_tools
from planning.tools import ToolRegistry, execute_tools, parse_planner_output, should_execute_tools

try:
    from aiosmtpd.smtp import SMTP
except ImportError:
    raise SystemExit("this example runs its own mail server: pip install aiosmtpd") from None

CONVERSATION = [
    (
        "My badge never came. Can you send it again?",
        """The user has to tell me who they are first.
        {"intent": "registration_data_request", "needs_user_input": true,
         "input_request": "I'd be happy to help! Could you provide your registration email or ID?"}""",
    ),
    (
        "It is ADA@example.org.",
        """```json
        {"intent": "registration_data_request", "needs_tools": true, "queries": [],
         "tool_calls": [{"tool": "lookup_registration", "args": {"identifier": "ADA@example.org"},
                         "reason": "Find the registration"}]}
        ```""",
    ),
    (
        "Yes, that is me. Please send all of it.",
        """{"tool_calls": [{"tool": "send_registration_email", "args": {"identifier": "REG-1001"},
                            "reason": "Send the badge, and the rest with it"}]}""",
    ),
]


class MailServer:
    """Takes mails, but has no room for invoices today."""

    def __init__(self) -> None:
        self.taken: list[str] = []

    async def handle_DATA(self, _server: Any, _session: Any, envelope: Any) -> str:  # noqa: N802 - aiosmtpd calls it so
        """Take a mail, or say why not."""
        headers = dict(line.split(": ", 1) for line in envelope.content.decode().splitlines()[:3])
        if "invoice" in headers["Subject"]:
            return "452 No room"
        self.taken.append(f"to {', '.join(envelope.rcpt_tos)}: {headers['Subject']}")
        return "250 Taken"


async def main(folder: Path) -> None:
    """Answer the conversation, with a database and a mail server that are real."""
    create_database(folder / "registrations.db")
    mailbox = MailServer()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: SMTP(mailbox, hostname="localhost"), "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        desk = RegistrationDesk(folder / "registrations.db", smtp_port=port)
        registry = ToolRegistry(registration_tools(desk))
        for request, text in CONVERSATION:
            output = parse_planner_output(text)
            route = should_execute_tools(output)
            print(f"\nUser: {request}\n  -> {route}")
            if route == "generate_response":
                print(f"Assistant: {output.input_request}")
            state = await execute_tools(output, registry=registry)
            for name, result in state["tool_results"].items():
                print(f"  {name}, success={result['success']}: {result['data']}")
                print(f"Assistant: {result['user_message'] or 'I found your registration.'}")
    print("\nMails taken:", *mailbox.taken, sep="\n  ")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(Path(folder)))
