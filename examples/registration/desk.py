"""Where the registration desk finds its database and its mail server."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from email.errors import MessageError
from email.headerregistry import Address
from pathlib import Path
from typing import Any

import attrs

from planning.tools import StorageUnavailable

__all__ = ["RegistrationDesk"]


def _is_port(_desk: object, _field: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, int) or not 0 < value < 65536:  # smtplib takes 0 for its own default
        raise ValueError("smtp_port must be a number from 1 to 65535, such as 25")


def _is_host(_desk: object, _field: attrs.Attribute[Any], value: str) -> None:
    if not value.strip():
        raise ValueError("smtp_host must be the name or the address of a mail server, such as 127.0.0.1")


def _is_address(_desk: object, _field: attrs.Attribute[Any], value: str) -> None:
    try:
        if Address(addr_spec=value).domain and value.isascii():
            return
    except (ValueError, IndexError, MessageError):  # that is how the library refuses one
        pass
    raise ValueError("sender must be one email address, such as desk@example.org")


def _is_time(_desk: object, _field: attrs.Attribute[Any], value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise ValueError("timeout_s must be seconds of more than 0, such as 10")


@attrs.frozen
class RegistrationDesk:
    """Where a desk finds what it works with.

    The mail server is a relay that takes mail from this machine: without TLS and without a password.

    Attributes:
        database: The SQLite file; it is only read.
        smtp_host: The mail server.
        smtp_port: Its port.
        sender: The address that mails come from.
        timeout_s: The seconds that the database has, and that the mail server has for all mails of a call.

    Raises:
        ValueError: A value is invalid.
    """

    database: Path = attrs.field(converter=Path)
    smtp_host: str = attrs.field(default="127.0.0.1", validator=_is_host)
    smtp_port: int = attrs.field(default=25, validator=_is_port)
    sender: str = attrs.field(default="registration@example.org", validator=_is_address)
    timeout_s: float = attrs.field(default=10.0, validator=_is_time)

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> RegistrationDesk:
        """The desk of ``REGISTRATION_DATABASE``, ``REGISTRATION_SMTP`` and ``REGISTRATION_SENDER``.

        The first is a path and must be set. The second is ``host:port``; an IPv6 host has brackets.

        Raises:
            StorageUnavailable: The first is not set, or another cannot be read. No value is in the message.
        """
        database = environment.get("REGISTRATION_DATABASE")
        if not database:
            raise StorageUnavailable(
                "REGISTRATION_DATABASE is not set; set it to the path of the registrations' SQLite file"
            )
        given: dict[str, Any] = {}
        try:
            if server := environment.get("REGISTRATION_SMTP"):
                host, _, port = server.rpartition(":")
                given |= {"smtp_host": host.removeprefix("[").removesuffix("]"), "smtp_port": int(port)}
            if sender := environment.get("REGISTRATION_SENDER"):
                given["sender"] = sender
            return cls(Path(database), **given)
        except ValueError:
            pass  # raised below and not here: what it says names no variable, and may hold a value
        raise StorageUnavailable(
            "REGISTRATION_SMTP must be host:port, such as 127.0.0.1:25, and REGISTRATION_SENDER "
            "one email address, such as desk@example.org"
        )
