"""The context of a call: what a tool is given beside its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import attrs

from planning.tools.errors import ContextInvalid
from session import Session

__all__ = ["ToolContext"]


def _frozen(given: Mapping[str, Any]) -> Mapping[str, Any]:
    return MappingProxyType(dict(given))


@attrs.frozen
class ToolContext:
    """What a tool receives beside its parameters.

    Attributes:
        session: The session of the agent that calls; None outside any session.
        values: Values from the caller, such as ``trace_id`` and ``conversation_id``.
    """

    session: Session | None = None
    values: Mapping[str, Any] = attrs.field(factory=dict, converter=_frozen, repr=False)

    @classmethod
    def of(cls, values: object, session: Session | None = None) -> ToolContext:
        """The context that a caller gives as a mapping; names that are not text are omitted.

        Raises:
            ContextInvalid: It is not a mapping.
        """
        if not isinstance(values, Mapping):
            raise ContextInvalid(f"its context must be a dict, got {type(values).__name__}")
        try:
            return cls(session, {name: value for name, value in values.items() if isinstance(name, str)})
        except Exception:  # noqa: BLE001 - a custom mapping may fail in any way
            message = f"its context cannot be read, a {type(values).__name__}"
        raise ContextInvalid(message)
