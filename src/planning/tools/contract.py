"""The tool contract: everything that is known about a tool before it is called."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import attrs

from planning.errors import Problem
from planning.tools.context import SessionOfCall, SessionSource, ToolContext
from planning.tools.parameters.model import ParameterModel
from planning.tools.parameters.schema import strict_schema
from planning.tools.parameters.signature import (
    Signature,
    behind,
    is_of_type,
    read_docstring,
    read_signature,
    signature_fields,
)
from planning.tools.spec import (
    QueryCall,
    QueryModel,
    QueryTypes,
    check_name,
    check_text,
    error_types,
    model_of,
)

if TYPE_CHECKING:
    from planning.tools.guard import CircuitBreaker, Retry
    from session import Session

Run = Callable[[Any, ToolContext], Any]
_Bound = tuple[ParameterModel, Run, bool]
_VARIABLE = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def bind(
    name: str, function: Callable[..., Any], parameters: Any, signature: Signature, *, rules: bool
) -> _Bound:
    """Decide what a tool's arguments are checked against, how its function is called, if with a context."""
    if parameters is None:
        return _function_run(name, function, signature)
    if isinstance(parameters, QueryTypes):
        takes = _takes_context(name, function, signature, 2)

        def run(call: QueryCall, context: ToolContext) -> Any:
            return function(call.query_type, call.parameters, *(context,) * takes)

        return QueryModel(parameters), run, takes
    model = model_of(parameters, rules=rules)
    if _takes_context(name, function, signature, 1):
        return model, function, True
    return model, lambda params, _context: function(params), False


def _function_run(name: str, function: Callable[..., Any], signature: Signature) -> _Bound:
    """For a tool whose parameters are those of its function."""
    from planning.tools.parameters.typed import TypedModel  # noqa: PLC0415 - it needs pydantic

    _, descriptions = read_docstring(inspect.getdoc(behind(function)))
    fields, contexts, others = signature_fields(function, signature, ToolContext)
    model = TypedModel.of_fields(name, fields, descriptions, others, contexts)
    if not contexts:
        return model, lambda params, _context: function(**params), False
    return model, lambda params, context: function(**params, **dict.fromkeys(contexts, context)), True


def _takes_context(name: str, function: Callable[..., Any], signature: Signature, given: int) -> bool:
    """True if a function takes the context after so many arguments: it must, or a parameter is called so."""
    if not signature.takes(given + 1):
        if signature.takes(given):
            return False
        wanted = "its parameters" if given == 1 else "a query type and its parameters"
        raise TypeError(f"the function of {name} must take {wanted} by position, and then at most a context")
    parameters = [name for name, each in signature.parameters.items() if each.kind not in _VARIABLE]
    if len(parameters) <= given or not signature.takes(given):
        return True
    name = parameters[given]
    return name.endswith("context") or is_of_type(function, name, ToolContext)


_LONGEST = 1_000_000
IDENTIFIERS = ("identifier", "email", "registration_id")


@attrs.frozen
class ToolExample:
    """A worked example of one call.

    Attributes:
        arguments: What a model sends.
        message: What it reads then.
    """

    arguments: Mapping[str, Any]
    message: str


def check_timeout(value: object) -> None:
    """Refuse a timeout that is neither None nor seconds that a thread can wait."""
    is_number = type(value) in {int, float}
    if value is not None and not (is_number and 0 < value <= _LONGEST):  # type: ignore[operator]  # a number
        raise ValueError(
            f"a timeout must be seconds of more than 0, at most {_LONGEST}, or None; got {value!r}"
        )


def _names(given: str | Iterable[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _option(default: Any, **more: Any) -> Any:
    return attrs.field(default=default, kw_only=True, repr=False, **more)


@attrs.frozen(eq=False)
class ToolContract:
    """A tool as it is declared, bound where it is declared: as data, without a way to call it.

    Attributes:
        name: What the model calls it by: 1 to 128 letters, digits, ``_``, ``-``, ``.`` and ``/``, as in
            MCP. A provider's definitions may refuse a name that the provider does not take.
        description: Its description for the model.
        function: What it does. With ``parameters`` it is called with the parameters, and with a
            ``ToolContext`` after them if it takes two arguments. Without, it is called with keyword
            arguments, and what it takes is read from its signature; a parameter with the type
            ``ToolContext`` is given that. It may be a coroutine function. It returns a ``ToolResult``,
            or any value, which then becomes the result's ``value``. It may raise ``ToolError``.
        parameters: What arguments are decoded into, and what the schema is made from: a dataclass, an
            attrs class, a TypedDict, a pydantic model, a ``ToolSpec``, or a JSON Schema as a mapping, with
            which arguments stay a dict.
        examples: Worked examples.
        diagnose: Asked what else is wrong with arguments that cannot be decoded, so that a model
            hears of everything at once. A tool that has it checks strings itself.
        publishes: What the session is sent of a call that succeeded: only its ``ToolInvoked`` (``"call"``),
            one whose ``value`` is what the tool returned, so that it is reduced (``"value"``), or nothing,
            because the function publishes within its own transaction (``"own"``).
        requires_identifier: Whether it is not called before the user has said whom it is about.
        identifiers: The arguments that say so; one of them is enough.
        input_request: What to ask the user when all of them are missing.
        returns_private_data: Whether its arguments and results are private: then no log, event, error
            or ledger has a part of them.
        rate_limit_key: The group of tools whose calls are counted together and limited.
        timeout: The seconds after which a call times out, retries and waits included.
        retry: How often it is tried when it fails with an error that may pass.
        breaker: What pauses it for a while after it has failed several times in a row.
        blocking: Whether a plain function may take its time: then async callers run it in a thread.
        visible_errors: The types of exceptions whose text the model reads, beside ``ToolError``. The text of
            any other exception is in no message. A tool with private data has none.
        narrow: Asked for the definition of one request: given the schema and the session, the schema for
            that request, or None where the tool is not offered. Without a session it finds its own.
        session: The session that it is bound to, for a tool that publishes within its own transaction, and
            looks there for an earlier call with its idempotency key.
        read_only: Whether it changes nothing: then it may run while a plan waits for approval.
        idempotent: Whether a call may be repeated when the outcome of the first is unknown, as
            after a worker died. A tool with effects that must not happen twice says False.
        is_async: Whether the function is a coroutine function.
        is_guarded: Whether something is between a call and the function: a limit, retries, a breaker,
            private data to keep, or that it must not be called twice.
        is_direct: Whether the function is simply called: it is plain, not guarded, and has no timeout.
        takes_context: Whether the function is given the context.
        model: What arguments are checked against.
        run: The function as it is called with parameters and context, whatever it takes itself.

    Raises:
        TypeError: The function cannot be called as declared, or JSON cannot carry a parameter's type.
        ValueError: A name, a limit or a combination of options makes no sense; the message says what does.
    """

    name: str = attrs.field(validator=check_name)
    description: str = attrs.field(validator=check_text)
    function: Callable[..., Any] = attrs.field(repr=False)
    parameters: Any = _option(None)
    examples: tuple[ToolExample, ...] = _option(())
    diagnose: Callable[[Mapping[str, Any], ToolContext], Iterable[Problem]] | None = _option(None)
    publishes: Literal["call", "value", "own"] = _option("call")
    requires_identifier: bool = _option(False)
    identifiers: tuple[str, ...] = attrs.field(
        default=IDENTIFIERS, converter=_names, kw_only=True, repr=False
    )
    input_request: str | None = _option(None)
    returns_private_data: bool = _option(False)
    rate_limit_key: str | None = _option(None)
    timeout: float | None = _option(None, validator=lambda _tool, _field, value: check_timeout(value))
    retry: Retry | None = _option(None)
    breaker: CircuitBreaker | None = _option(None)
    blocking: bool = _option(True)
    read_only: bool = _option(False)
    idempotent: bool = _option(True)
    visible_errors: tuple[type[Exception], ...] = attrs.field(
        default=(), converter=error_types, kw_only=True, repr=False
    )
    narrow: Callable[[dict[str, Any], Session | None], dict[str, Any] | None] | None = _option(None)
    session: SessionOfCall | None = _option(None)
    is_async: bool = attrs.field(init=False, repr=False)
    is_guarded: bool = attrs.field(init=False, repr=False)
    is_direct: bool = attrs.field(init=False, repr=False)
    takes_context: bool = attrs.field(init=False, repr=False)
    model: ParameterModel = attrs.field(init=False, repr=False)
    run: Run = attrs.field(init=False, repr=False)

    @is_guarded.default
    def _is_guarded(self) -> bool:
        guards = (self.rate_limit_key, self.retry, self.breaker, self.returns_private_data)
        return any(guards) or not self.idempotent

    def __attrs_post_init__(self) -> None:
        if self.requires_identifier and not self.identifiers:
            raise ValueError("a tool that requires an identifier must name the arguments that can be one")
        if self.retry is not None and self.retry.attempts > 1 and not self.idempotent:
            raise ValueError("a tool that is not idempotent is never called twice: remove its retry")
        if self.returns_private_data and self.visible_errors:
            raise ValueError("a tool with private data cannot have visible_errors: their text may be private")
        if self.returns_private_data and self.publishes != "call":
            raise ValueError("a tool with private data cannot publish its value: its result is in no event")
        rules = self.diagnose is None
        signature = read_signature(self.function)
        model, run, takes_context = bind(self.name, self.function, self.parameters, signature, rules=rules)
        object.__setattr__(self, "is_async", signature.is_async)
        is_free = not (self.is_guarded or signature.is_async)
        object.__setattr__(self, "is_direct", is_free and self.timeout is None)
        object.__setattr__(self, "takes_context", takes_context)
        object.__setattr__(self, "model", model)
        object.__setattr__(self, "run", run)

    def parameters_schema(self) -> dict[str, Any]:
        """The JSON Schema of the parameters: descriptions, limits, enums, no further properties.

        Each call returns a new copy.
        """
        schema = self.model.schema()
        if self.examples:
            schema["examples"] = [dict(example.arguments) for example in self.examples]
        return schema

    def strict_schema(self) -> dict[str, Any]:
        """The schema for a provider's strict mode: every property is required, optional ones may be null.

        Raises:
            ValueError: A strict schema cannot describe the parameters; the message names the part.
        """
        return strict_schema(self.model.published, self.name)


def session_of(tools: Iterable[ToolContract]) -> SessionSource | None:
    """The session that tools are bound to; None when none of them is."""
    bound = [(tool.name, tool.session.source) for tool in tools if tool.session is not None]
    if not bound:
        return None
    first, source = bound[0]
    for name, other in bound:
        if other != source:
            raise ValueError(
                f"{first} and {name} are bound to different sessions; make one Toolbox for each session"
            )
    return source
