"""Mailing documents, one mail each, with an honest report of the outcome of each."""

from __future__ import annotations

import smtplib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import localtime, make_msgid
from socket import SHUT_RDWR
from threading import Lock
from time import monotonic
from typing import Final, Literal

import attrs

from examples.registration.desk import RegistrationDesk
from examples.registration.records import Registration

__all__ = ["NOT_ON_FILE", "SENT", "UNREACHED", "Delivery", "Fate", "compose", "one_line"]

_POLICY: Final = SMTP.clone(cte_type="7bit")  # every server takes it
_MOST_LETTERS: Final = 100
# What means something in a header with addresses: without it a name needs no quotes and cannot lose them.
_NO_NAME: Final = str.maketrans(dict.fromkeys('()<>[]:;@\\,."', " "))


@attrs.frozen
class Fate:
    """The outcome of a document.

    Attributes:
        state: Whether it went out; ``unconfirmed`` when the server broke off before it said so.
        reason: Why it did not.
    """

    state: Literal["sent", "failed", "unconfirmed"]
    reason: str = ""


SENT: Final = Fate("sent")
UNREACHED: Final = Fate("failed", "the mail server could not be reached in time")
_UNCONFIRMED: Final = Fate("unconfirmed", "the mail server did not confirm it: it may have gone out or not")
NOT_ON_FILE: Final = Fate("failed", "none is on file")
_BAD_ADDRESS: Final = Fate("failed", "no mail can be sent to the email address on file")


class _GivenUpError(Exception):
    """Nobody waits any more: nothing further may be sent."""


class Delivery:
    """The mails of one call.

    ``run`` blocks, so it has a thread; ``give_up`` may be called at any time from another. What each
    document's fate would be, should the thread be given up now, is noted before every step: so none is
    called unsent that may have gone out.
    """

    def __init__(self, desk: RegistrationDesk, registration: Registration, kinds: Iterable[str]) -> None:
        """Plan the mails; nothing is sent.

        Args:
            desk: The mail server, and how long all of it may take from now on.
            registration: Whose documents. They go to the address that is on file there, and nowhere else.
            kinds: Which documents.
        """
        self._desk = desk
        self._registration = registration
        self._until = monotonic() + desk.timeout_s
        self._lock = Lock()
        self._is_given_up = False
        self._server: smtplib.SMTP | None = None
        on_file = registration.documents
        self._fates = {kind: UNREACHED if kind in on_file else NOT_ON_FILE for kind in kinds}

    def run(self) -> None:
        """Send one mail after the other; a server that cannot be reached is not asked again."""
        with suppress(_GivenUpError):
            for kind, (recipient, message) in self._messages().items():
                if not self._send(kind, recipient, message):
                    break

    def give_up(self) -> Mapping[str, Fate]:
        """End it, whether the thread is done or not, and give the fate of each document."""
        with self._lock:
            self._is_given_up = True
            fates = dict(self._fates)
            connection = None if self._server is None else self._server.sock
        if connection is not None:
            with suppress(OSError):
                connection.shutdown(SHUT_RDWR)  # whatever the thread waits for there ends now
        return fates

    def _note(self, kind: str, fate: Fate) -> None:
        with self._lock:
            if self._is_given_up:
                raise _GivenUpError  # pragma: no cover - whether the thread still comes here is a race
            self._fates[kind] = fate

    def _messages(self) -> Mapping[str, tuple[str, bytes]]:
        """All mails with their recipients, made before the first is sent: so none fails half way."""
        kinds = [kind for kind, fate in self._fates.items() if fate is UNREACHED]
        try:
            messages = {kind: compose(self._desk, self._registration, kind) for kind in kinds}
            return {kind: (mail["To"].addresses[0].addr_spec, bytes(mail)) for kind, mail in messages.items()}
        except (ValueError, IndexError, MessageError):  # that is how the library refuses an address
            for kind in kinds:
                self._note(kind, _BAD_ADDRESS)
            return {}

    def _send(self, kind: str, recipient: str, message: bytes) -> bool:
        """Send one; False when the server cannot be reached."""
        server = self._connected()
        if server is None:
            return False
        try:
            self._note(kind, _UNCONFIRMED)
            # The server goes by these two alone, however the headers may be read.
            server.sendmail(self._desk.sender, [recipient], message)
            self._note(kind, SENT)
        except smtplib.SMTPRecipientsRefused as error:
            ((code, _),) = error.recipients.values()
            self._note(kind, _refused(code))
        except smtplib.SMTPResponseException as error:
            self._note(kind, _refused(error.smtp_code))
        except OSError:
            pass  # it broke off, and so it stays unconfirmed
        finally:
            if not self._is_given_up:
                with suppress(OSError):
                    server.quit()
            server.close()
        return True

    def _connected(self) -> smtplib.SMTP | None:
        """A connection that has got as far as the greetings: nothing is sent by then."""
        left = self._until - monotonic()
        if left <= 0:
            return None
        server = smtplib.SMTP(local_hostname=_domain(self._desk), timeout=left)
        with self._lock:
            self._server = server
        with suppress(OSError, UnicodeError):  # the latter for a host that is not a name
            code, _ = server.connect(self._desk.smtp_host, self._desk.smtp_port)
            if code == 220:
                server.ehlo_or_helo_if_needed()
                return server
        server.close()
        return None


def compose(desk: RegistrationDesk, registration: Registration, kind: str) -> EmailMessage:
    """The mail with one document.

    Raises:
        ValueError: The address on file cannot be mailed to; or IndexError or MessageError.
    """
    conference = one_line(registration.conference)
    name = " ".join(one_line(registration.name).translate(_NO_NAME).split())
    recipient = Address(name, addr_spec=registration.email.strip())
    if not (recipient.domain and recipient.addr_spec.isascii()):
        raise ValueError("the address on file is not complete, or needs a server that takes SMTPUTF8")
    message = EmailMessage(_POLICY)
    message["From"] = Address("Registration desk", addr_spec=desk.sender)
    message["To"] = recipient
    message["Subject"] = f"Your {kind} for {conference}"
    message["Date"] = localtime()
    message["Message-ID"] = make_msgid(domain=_domain(desk))  # without a domain it asks the network
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(f"Attached is the {kind} of your registration {one_line(registration.id)}.\n")
    message.add_attachment(registration.documents[kind], filename=f"{kind}.txt")
    return message


def one_line(text: str) -> str:
    """A stored text as one line of printable characters, not too long."""
    return " ".join("".join(each if each.isprintable() else " " for each in text).split())[:_MOST_LETTERS]


def _domain(desk: RegistrationDesk) -> str:
    return desk.sender.rpartition("@")[2]


def _refused(code: int) -> Fate:
    if 400 <= code < 500:
        return Fate("failed", f"the mail server refused it for now, code {code}")
    return Fate("failed", f"the mail server refused it, code {code}") if 500 <= code < 600 else _UNCONFIRMED
