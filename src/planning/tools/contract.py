"""The tool contract: what a tool is, and what it is given when it runs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import attrs

from planning.errors import Problem, show
from planning.tools.envelopes import QueryResponses, execution_envelope
from planning.tools.errors import ContextInvalid
from planning.tools.parameters.signature import Signature, read_signature
from session import Session

if TYPE_CHECKING:
    from planning.tools.guard import CircuitBreaker, Retry
    from planning.tools.parameters.model import ParameterModel

__all__ = ["Tool", "ToolContext", "ToolExample"]

_LONGEST = 1_000_000
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
IDENTIFIERS = ("identifier", "email", "registration_id")


def _frozen(given: Mapping[str, Any]) -> Mapping[str, Any]:
    return MappingProxyType(dict(given))


@attrs.frozen
class ToolContext:
    """What a tool is given beside its parameters.

    Attributes:
        session: The session of the agent that calls; None outside any session.
        values: What the caller knows of the call, such as ``trace_id`` and ``conversation_id``.
    """

    session: Session | None = None
    values: Mapping[str, Any] = attrs.field(factory=dict, converter=_frozen, repr=False)

    @classmethod
    def of(cls, values: object, session: Session | None = None) -> ToolContext:
        """The context that a caller gives as a mapping; names that are no text are left out.

        Raises:
            ContextInvalid: It is no mapping.
        """
        if not isinstance(values, Mapping):
            raise ContextInvalid(f"its context must be a dict, got {type(values).__name__}")
        try:
            return cls(session, {name: value for name, value in values.items() if isinstance(name, str)})
        except Exception:  # noqa: BLE001 - a mapping of one's own may fail in any way
            told = f"its context cannot be read, a {type(values).__name__}"
        raise ContextInvalid(told)


@attrs.frozen
class ToolExample:
    """A worked example of one call.

    Attributes:
        arguments: What a model sends.
        message: What it reads then.
    """

    arguments: Mapping[str, Any]
    message: str


def check_name(_declaration: object, field: attrs.Attribute[Any], value: object) -> None:
    """Refuse a name that no provider takes; a validator of attrs.

    Raises:
        TypeError: It is not a string.
        ValueError: It is empty, too long, or has other characters than a name may have.
    """
    _is_text(_declaration, field, value)
    if not str(value).strip():
        raise ValueError("a tool needs a name: a model calls it by that")
    if not _NAME.fullmatch(str(value)):
        raise ValueError(f"{show(value)} cannot be a tool's name: use 1 to 64 letters, digits, _ and -")


def _is_text(_tool: object, field: attrs.Attribute[Any], value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(f"a tool's {field.name} must be text, got {type(value).__name__}")


def check_timeout(value: object) -> None:
    """Refuse a timeout that is neither None nor seconds that a thread can wait.

    Raises:
        ValueError: It is something else.
    """
    is_number = type(value) in {int, float}
    if value is not None and not (is_number and 0 < value <= _LONGEST):  # type: ignore[operator]  # a number by now
        raise ValueError(
            f"a timeout must be seconds of more than 0, at most {_LONGEST}, or None; got {value!r}"
        )


def _is_timeout(_tool: Tool, _field: attrs.Attribute[Any], value: object) -> None:
    check_timeout(value)


def _is_key(_tool: Tool, field: attrs.Attribute[Any], value: object) -> None:
    if value is not None and not (isinstance(value, str) and value.strip()):
        raise ValueError(f"a tool's {field.name} must be the name of a group, or None, got {value!r}")


def _names(given: str | Iterable[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _option(default: Any, **more: Any) -> Any:
    return attrs.field(default=default, kw_only=True, repr=False, **more)


@attrs.frozen(eq=False)
class Tool(QueryResponses):
    """Something a model can call.

    Attributes:
        name: What the model calls it by: 1 to 64 letters, digits, ``_`` and ``-``.
        description: What the model is told about it.
        function: What it does. With ``parameters`` it is called with the parameters, and with a
            ``ToolContext`` behind them if it takes two arguments. Without, it is called with keyword
            arguments, and what it takes is read from its signature; a parameter with the type
            ``ToolContext`` is given that. It may be a coroutine function. It returns a ``ToolResult``,
            or any value, which then becomes the result's ``value``. It may raise ``ToolError``.
        parameters: What arguments are decoded into, and what the schema is made from: a dataclass, an
            attrs class, a TypedDict, a pydantic model, or a ``ToolSpec``.
        examples: Worked examples.
        diagnose: Asked what else is wrong with arguments that cannot be decoded, so that a model
            hears of everything at once. A tool that has it checks texts itself.
        reduces: Whether the session reduces what the tool returns, as the event's ``value``.
        publishes: Whether the function publishes its own ``ToolInvoked``, because it does so within
            the transaction that it needs.
        returns_outcome: Whether the function returns ``{"success", "data", "error", "user_message"}``
            and must say whether it succeeded, as ``BaseTool.execute`` does.
        requires_identifier: Whether it is not called before the user has said whom it is about.
        identifiers: The arguments that say so; one of them is enough.
        input_request: What to ask the user when all of them are missing.
        returns_private_data: Whether its arguments and results are private: then no log, event, error
            or ledger has a part of them.
        rate_limit_key: The group of tools whose calls are counted together and limited.
        timeout: The seconds after which a call is given up, retries and waits included.
        retry: How often it is tried when it fails with an error that may pass.
        breaker: What leaves it alone for a while after it has failed several times in a row.
        blocking: Whether a plain function may take its time: then async callers run it in a thread.
        idempotent: Whether a call may be made once more when it is not known what came of the first, as
            after a worker died. A tool with effects that must not happen twice says False.
    """

    name: str = attrs.field(validator=check_name)
    description: str = attrs.field(validator=_is_text)
    function: Callable[..., Any] = attrs.field(repr=False)
    parameters: Any = _option(None)
    examples: tuple[ToolExample, ...] = _option(())
    diagnose: Callable[[Mapping[str, Any], ToolContext], Iterable[Problem]] | None = _option(None)
    reduces: bool = _option(False)
    publishes: bool = _option(False)
    returns_outcome: bool = _option(False)
    requires_identifier: bool = _option(False)
    identifiers: tuple[str, ...] = attrs.field(
        default=IDENTIFIERS, converter=_names, kw_only=True, repr=False
    )
    input_request: str | None = _option(None)
    returns_private_data: bool = _option(False)
    rate_limit_key: str | None = _option(None, validator=_is_key)
    timeout: float | None = _option(None, validator=_is_timeout)
    retry: Retry | None = _option(None)
    breaker: CircuitBreaker | None = _option(None)
    blocking: bool = _option(True)
    idempotent: bool = _option(True)
    _signature: Signature = attrs.field(init=False, repr=False)
    is_unguarded: bool = attrs.field(init=False, repr=False)
    is_direct: bool = attrs.field(init=False, repr=False)

    @_signature.default
    def _read(self) -> Signature:
        return read_signature(self.function)

    @is_unguarded.default
    def _is_unguarded(self) -> bool:
        """Whether nothing stands between a plain call and the function: no wait, no count, no secret."""
        return not (self._is_counted() or self._signature.is_async or self.timeout)

    @is_direct.default
    def _is_direct(self) -> bool:
        """The same of an awaited call, but for the timeout."""
        return self._signature.is_async and not self._is_counted()

    def _is_counted(self) -> bool:
        return any((self.rate_limit_key, self.retry, self.breaker, self.returns_private_data))

    def __attrs_post_init__(self) -> None:
        if self.requires_identifier and not self.identifiers:
            raise ValueError("a tool that requires an identifier must name the arguments that can be one")
        if self.retry is not None and self.retry.attempts > 1 and not self.idempotent:
            raise ValueError("a tool that is not idempotent is never called twice: leave its retry out")
        if self.returns_private_data and (self.reduces or self.publishes):
            raise ValueError(
                "a tool with private data neither reduces nor publishes: what it returns is in no event"
            )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function itself, past all checks: for code and tests that use it as a function."""
        return self.function(*args, **kwargs)

    @property
    def is_async(self) -> bool:
        """Whether the function is a coroutine function."""
        return self._signature.is_async

    def parameters_schema(self) -> dict[str, Any]:
        """The JSON Schema of the parameters: descriptions, limits, enums, no further properties.

        Each call returns a copy of its own.

        Raises:
            TypeError: A parameter has a type that JSON cannot carry.
        """
        schema = self.model.schema()
        if self.examples:
            schema["examples"] = [dict(example.arguments) for example in self.examples]
        return schema

    @cached_property
    def model(self) -> ParameterModel:
        """What arguments are checked against."""
        return self._bound[0]

    @cached_property
    def run(self) -> Callable[[Any, ToolContext], Any]:
        """The function as it is called with parameters and context, whatever it takes itself."""
        return self._bound[1]

    @cached_property
    def _bound(self) -> tuple[ParameterModel, Callable[[Any, ToolContext], Any]]:
        from planning.tools.binding import bind  # noqa: PLC0415 - it needs msgspec

        return bind(self, self._signature)

    def execute(self, /, **kwargs: Any) -> dict[str, Any]:
        """Call it from Python; never raises, but for KeyboardInterrupt and SystemExit.

        An async function is run to its end, which needs a thread without a running event loop.

        Returns:
            ``{"success", "tool", "result", "error", "elapsed"}``: the error is None on success, and the
            elapsed time is in seconds.
        """
        from planning.tools.path import Path  # noqa: PLC0415 - it knows this module

        try:
            return execution_envelope(self.name, Path().call(self, kwargs))
        finally:
            del kwargs  # what ends the program holds this frame, and must not lead to private data

    async def aexecute(self, /, **kwargs: Any) -> dict[str, Any]:
        """The same from async code."""
        from planning.tools.path import Path  # noqa: PLC0415 - it knows this module

        try:
            return execution_envelope(self.name, await Path().acall(self, kwargs))
        finally:
            del kwargs  # as in execute
