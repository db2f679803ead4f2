"""The two tools of the registration desk: look a registration up, and send its documents again."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from examples.registration.desk import RegistrationDesk
from examples.registration.mail import NOT_ON_FILE, UNREACHED, Delivery, Fate, one_line
from examples.registration.records import DOCUMENTS, Document, Registration, find_registrations
from planning.tools import BaseTool, StorageUnavailable

__all__ = ["LookupRegistration", "SendRegistrationEmail", "registration_tools"]

_ASK: Final = "I'd be happy to help! Could you provide your registration email or registration ID?"
_IDENTIFIER: Final[Mapping[str, Any]] = {
    "description": "The registration's email address or its registration id, as the user gave it",
    "min_length": 1,
    "max_length": 320,
}
_CONFERENCE: Final[Mapping[str, Any]] = {
    "description": "Its conference, or a part of the name, once the user has said which of several is meant",
    "max_length": 200,
}
_MOST_HINTS: Final = 10


@dataclass(frozen=True, slots=True)
class Lookup:
    """Which registration to look up."""

    identifier: str = field(metadata=_IDENTIFIER)
    conference: str | None = field(default=None, metadata=_CONFERENCE)


@dataclass(frozen=True, slots=True)
class Sending:
    """Which documents of which registration to send."""

    identifier: str = field(metadata=_IDENTIFIER)
    documents: tuple[Document, ...] | None = field(
        default=None,
        metadata={"description": "Which documents; all that are on file when left out", "min_items": 1},
    )
    conference: str | None = field(default=None, metadata=_CONFERENCE)


class _DeskTool(BaseTool):
    """What both have in common: whose data it is, and that there must be exactly one registration."""

    requires_identifier = True
    returns_private_data = True
    input_request = _ASK
    timeout = 30.0

    def __init__(self, desk: RegistrationDesk | None = None) -> None:
        """Take a desk; without one, each call reads the environment: see ``RegistrationDesk``."""
        self._desk = desk
        if desk is not None:  # the last resort: the database and the mail server have ended by then
            self.timeout = 3 * desk.timeout_s

    async def execute(self, args: Lookup | Sending, context: dict[str, Any]) -> dict[str, Any]:  # noqa: ARG002 - the base class has it
        """See ``BaseTool``.

        Returns:
            Not found, and several matches, are failures; with several, ``data`` has ``matches``, and the
            user is asked which.

        Raises:
            StorageUnavailable: The database or the mail server is not there. Nothing was sent: it may be
                called again.
        """
        try:
            desk = self._desk or RegistrationDesk.from_environment()
        except (
            StorageUnavailable
        ) as error:  # raised, its text would be withheld: this one has no private word
            return _failure(error.message, "That does not work at the moment.", code="storage")
        found = await asyncio.to_thread(find_registrations, desk, args.identifier)
        wanted = (args.conference or "").strip().casefold()
        meant = [each for each in found if wanted in each.conference.casefold()]
        if not found:
            return _failure(
                "No registration has this email address or registration id. Nothing was done. Ask the user "
                "to check the spelling, or for the other of the two.",
                "I could not find a registration with that. Could you check the spelling, or give me the "
                "other one of your registration email and registration ID?",
                code="data_not_found",
            )
        if not meant:
            return _which(found, "I found no registration for that conference. I found")
        if len(meant) > 1:
            return _which(meant, f"I found {len(meant)} registrations:")
        return await self._serve(desk, meant[0], args)

    @abstractmethod
    async def _serve(self, desk: RegistrationDesk, registration: Registration, args: Any) -> dict[str, Any]:
        """Do it, now that the one registration is found."""


class LookupRegistration(_DeskTool):
    """Finds a registration by email address or registration id."""

    name = "lookup_registration"
    description = (
        "Look up a conference registration by its email address or registration id: name, email, "
        "conference, status, and which documents (badge, invoice, confirmation) are on file."
    )
    parameters = Lookup

    async def _serve(self, _desk: RegistrationDesk, registration: Registration, _args: Any) -> dict[str, Any]:
        names = ("id", "name", "email", "conference", "status")
        data: dict[str, Any] = {name: getattr(registration, name) for name in names}
        data["items"] = [kind for kind in DOCUMENTS if kind in registration.documents]
        return {"success": True, "data": data, "error": None, "user_message": None}


class SendRegistrationEmail(_DeskTool):
    """Sends documents of a registration to the email address that is on file for it."""

    name = "send_registration_email"
    description = (
        "Send the badge, invoice or confirmation of a registration again. They go to the email address "
        "that is on file for the registration, and to no other."
    )
    parameters = Sending
    rate_limit_key = "email_send"

    async def _serve(
        self, desk: RegistrationDesk, registration: Registration, args: Sending
    ) -> dict[str, Any]:
        kinds = [kind for kind in DOCUMENTS if kind in (args.documents or registration.documents)]
        if not kinds:
            return _failure(
                "This registration has no documents on file. Nothing was sent.",
                "There are no documents for your registration yet.",
            )
        delivery = Delivery(desk, registration, kinds)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(desk.timeout_s):
                    await asyncio.to_thread(delivery.run)
        finally:
            fates = delivery.give_up()  # also where the task is cancelled: nothing is sent after it
        return _account(fates)


def registration_tools(desk: RegistrationDesk | None = None) -> tuple[BaseTool, ...]:
    """Both tools; without a desk, each call reads it from the environment: see ``RegistrationDesk``."""
    return LookupRegistration(desk), SendRegistrationEmail(desk)


def _failure(error: str, user_message: str, data: Any = None, *, code: str = "tool") -> dict[str, Any]:
    return {"success": False, "data": data, "error": error, "user_message": user_message, "code": code}


def _which(matches: Sequence[Registration], lead: str) -> dict[str, Any]:
    """Ask which one is meant, with hints that reveal nothing to a user who does not know the answer."""
    hints = [
        {"conference": one_line(each.conference), "id_ends_with": _end(each.id)}
        for each in matches[:_MOST_HINTS]
    ]
    shown = [f"{hint['conference']} (ID ending in {hint['id_ends_with']})" for hint in hints]
    more = len(matches) - len(hints)
    listed = _and([*shown, f"{more} more"] if more else shown)
    question = f"{lead} {listed}. Which conference is it, or what is the full registration ID?"
    failure = _failure(
        f"It is not clear which registration is meant. Nothing was done. Ask the user: {question} Call again "
        "with the answer as conference, or with the id as identifier.",
        question,
        {"matches": hints},
        code="needs_user_input",
    )
    return {**failure, "needs_user_input": True, "input_request": question}


def _end(number: str) -> str:
    return number[len(number) - min(3, len(number) // 2) :]


def _account(fates: Mapping[str, Fate]) -> dict[str, Any]:
    """The outcome of the documents, as the tool's result.

    Raises:
        StorageUnavailable: The mail server could not be reached, and nothing was sent.
    """
    by_fate: dict[str, list[str]] = {
        state: [kind for kind, fate in fates.items() if fate.state == state]
        for state in ("sent", "failed", "unconfirmed")
    }
    reasons = {kind: fate.reason for kind, fate in fates.items() if fate.reason}
    data = {**by_fate, "reasons": reasons}
    sent, unconfirmed = _and(by_fate["sent"]), _and(by_fate["unconfirmed"])
    said = [f"I sent your {sent} to the email address of your registration."] if sent else []
    if not reasons:
        return {"success": True, "data": data, "error": None, "user_message": said[0]}
    if UNREACHED in fates.values() and {*fates.values()} <= {UNREACHED, NOT_ON_FILE}:
        raise StorageUnavailable("the mail server cannot be reached now; nothing was sent, try again later")
    for reason in dict.fromkeys(reasons[kind] for kind in by_fate["failed"]):
        alike = [kind for kind in by_fate["failed"] if reasons[kind] == reason]
        said.append(f"I could not send your {_and(alike)}: {reason}.")
    if unconfirmed:
        said.append(f"I cannot tell whether your {unconfirmed} went out; please look into your mailbox.")
    lines = [f"Sent: {sent or 'none'}."]
    lines += [f"{kind}: {reason}." for kind, reason in reasons.items()]
    return _failure(" ".join([*lines, "To try again, name only what was not sent."]), " ".join(said), data)


def _and(words: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
