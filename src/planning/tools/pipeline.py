"""The path of every call: decode, check identifiers, limit, run, classify, publish, record.

The toolbox finds the tool. Whatever is wrong is an exception, and only here it becomes a result.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import cache, partial
from time import perf_counter, sleep
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

import attrs

from planning.errors import ToolError, ToolValidationError
from planning.tools.context import BEGAN, Gate, Refusal, SessionOfCall, ToolContext
from planning.tools.contract import ToolContract
from planning.tools.errors import (
    PASSING,
    ContextInvalid,
    ErrorKind,
    ResultInvalid,
    ResultNotStored,
    UserInputNeeded,
    type_name,
)
from planning.tools.guard import BLAMELESS, Admission
from planning.tools.once import RunningCalls, claim, doubt, find_repeat, fingerprint_of
from planning.tools.outcome import (
    failed,
    is_cancelling,
    kept,
    may_pass,
    question_of,
    redacted,
    settled,
    withholding,
)
from planning.tools.parameters.arguments import decode, read_arguments
from planning.tools.parameters.model import FreeModel
from planning.tools.rate_limit import DEFAULT_LIMITS, RateLimiter
from planning.tools.result import ToolResult, copied
from planning.tools.spec import QueryTypes
from session import Session, SessionBusyError, StoreError, ToolFailed, ToolInvoked

if TYPE_CHECKING:
    from logging import Logger

T = TypeVar("T")

PATIENCE = 0.2
"""The seconds that a read or a refusal waits for a writer to be recorded."""
_DEBUG, _INFO, _ERROR = 10, 20, 40  # as in logging, which the first call loads

_NO_CONTEXT = ToolContext()
_NOT_STORED = (
    "{} ran, but the session could not store its result. Check what it did before you call it again."
)


Runner = Callable[[ToolContract, Any, float | None, Callable[[], Awaitable[Any]]], Awaitable[Any]]
"""Runs a tool's function somewhere: given the tool, its parameters, the seconds that it has, and how it would
be run here; returns what the function returns, and raises what it raises."""


class CallPipeline:
    """Makes calls, for one session and within its limits.

    Attributes:
        context: What the tools are given.
    """

    __slots__ = ("_fingerprint", "_gated", "_key", "_limiter", "_runner", "_tell", "_timeout", "context")

    def __init__(
        self,
        context: ToolContext = _NO_CONTEXT,
        *,
        limiter: Callable[[], RateLimiter] | None = None,
        timeout: float | None = None,
        runner: Runner | None = None,
        tell: Callable[[ToolInvoked], object] | None = None,
        gated: bool = False,
    ) -> None:
        """Configure the calls."""
        self.context = context
        self._timeout = timeout
        self._runner = runner
        self._key = context.idempotency_key
        self._fingerprint: str | None = None  # a call with a key has a pipeline of its own
        self._limiter = DEFAULT_LIMITS if limiter is None else limiter
        self._tell = tell
        self._gated = gated

    def call(self, tool: ToolContract, arguments: Any) -> ToolResult:
        """Make a model's call, which always has a result.

        KeyboardInterrupt, SystemExit, GeneratorExit and the cancelling of a task pass.
        """
        started, has_begun = perf_counter(), False
        try:
            params = self._decode(tool, arguments)
            has_begun = True
            return (self._walk if self._key is None else self._once)(tool, params, started)
        except BaseException as error:
            result = self._note(tool, error, started, has_begun=has_begun)
            if result is None or is_cancelling(error):
                raise
            return result

    def invoke(self, tool: ToolContract, arguments: Any) -> ToolResult:
        """Make a call of Python code, which may give an instance of the parameters."""
        started, has_begun = perf_counter(), False
        try:
            params = self._accept(tool, arguments)
            has_begun = True
            return (self._walk if self._key is None else self._once)(tool, params, started)
        except BaseException as error:
            self._note(tool, error, started, has_begun=has_begun)
            raise

    async def acall(self, tool: ToolContract, arguments: Any, *, raises: bool = False) -> ToolResult:
        """Make a call in async code, as ``call`` or, with ``raises``, as ``invoke`` does."""
        stored = self._find_stored(tool)
        if stored is not None and tool.publishes == "own" and not tool.is_async:
            if raises:
                return await stored.run_in_worker(partial(self.invoke, tool, arguments))
            return await self.in_worker(tool.name, stored, partial(self.call, tool, arguments))
        started, has_begun = perf_counter(), False
        try:
            arguments = self._accept(tool, arguments) if raises else self._decode(tool, arguments)
            has_begun = True
            if self._key is None:
                return await self._awalk(tool, arguments, started)
            return await self._aonce(tool, arguments, started)
        except BaseException as error:
            result = self._failure(tool, error, started, has_begun=has_begun)
            if result is not None:
                record = partial(self._record, tool.name, result, error, tool.session)
                await self.in_worker(tool.name, stored, record)
            if raises or result is None or is_cancelling(error):
                raise
            return result

    def answer_unfound(self, name: str, error: ToolValidationError) -> ToolResult:
        """The result of a call to a tool that does not exist."""
        error.nothing_changed = True
        result = failed(name, error, perf_counter(), code=ErrorKind.UNKNOWN_TOOL)
        self._record(name, result, error)
        return result

    def answer_bad_context(self, name: str, error: ContextInvalid | StoreError) -> ToolResult:
        """The result of a call whose context is not a mapping, or whose session is not to be had."""
        failure: Exception = error
        if isinstance(error, ContextInvalid):
            failure = ContextInvalid(f"{name} was not called: {error.message}")
        result = failed(name, failure, perf_counter())
        self._record(name, result, failure)
        return result

    # Stages

    def _accept(self, tool: ToolContract, arguments: object) -> Any:
        """Take parameters from Python: an instance of the parameter type, or what to make one from."""
        kind = tool.model.kind
        if type(arguments) is kind or (tool.session is not None and type(arguments) in kind.__mro__[:-1]):
            if tool.requires_identifier:
                check_identifiers(tool, {name: getattr(arguments, name, None) for name in tool.identifiers})
            return arguments
        if type(arguments) is not dict and arguments is not None and not isinstance(arguments, Mapping):
            message = f"{tool.name} takes {tool.model.name}, got {type(arguments).__name__}"
            raise ToolValidationError(message)
        return self._decode(tool, arguments)

    def _decode(self, tool: ToolContract, arguments: object) -> Any:
        diagnose, is_private = tool.diagnose, tool.returns_private_data
        further = None if diagnose is None else lambda given: diagnose(given, self.context)
        if not (is_private or tool.requires_identifier):
            return tool.model.convert(read_arguments(arguments), further)
        with withholding(tool, but=(ToolValidationError, UserInputNeeded)):
            if tool.requires_identifier:
                arguments = with_identifier(tool, arguments)
            return decode(tool.model, arguments, further, is_private=is_private)

    def _find_stored(self, tool: ToolContract) -> Session | None:
        """The session of a call whose store must not hold the event loop; None without one."""
        session = self.context.session
        if session is None and tool.session is not None:
            session = tool.session.fixed
        return None if session is None or session.store is None else session

    def _once(self, tool: ToolContract, params: Any, started: float) -> ToolResult:
        """Make a call with a key, unless it was made before; the planning tools look for themselves."""
        session, key = self.context.session, self._key
        if key is None or session is None or (tool.publishes == "own" and tool.session is not None):
            return self._walk(tool, params, started)
        with session.local_object(RunningCalls).alone(tool.name, key) as call:
            for pause in call.pauses():
                sleep(pause)
            found = self._find_repeat(session, tool, params, key)
            return self._walk(tool, params, started) if found is None else found

    async def _aonce(self, tool: ToolContract, params: Any, started: float) -> ToolResult:
        """Make a call once, in async code."""
        session, key = self.context.session, self._key
        if key is None or session is None or (tool.publishes == "own" and tool.session is not None):
            return await self._awalk(tool, params, started)
        with session.local_object(RunningCalls).alone(tool.name, key) as call:
            for pause in call.pauses(is_async=True):
                await background().asyncio.sleep(pause)
            found = await session.run_in_worker(partial(self._find_repeat, session, tool, params, key))
            return await self._awalk(tool, params, started) if found is None else found

    def _find_repeat(self, session: Session, tool: ToolContract, params: Any, key: str) -> ToolResult | None:
        self._fingerprint = fingerprint_of(params, key, is_private=tool.returns_private_data)
        return find_repeat(session, tool.name, key, self._fingerprint)

    def _walk(self, tool: ToolContract, params: Any, started: float) -> ToolResult:
        shown, began, gate = self._begin(tool, params)
        if gate is not None:
            _refuse(gate())
        if tool.is_direct and (self._timeout is None or not tool.blocking):
            result = settled(tool, tool.run(params, self.context), started)
        else:
            with Admission(tool.breaker, tool.name) as admission:
                self._admit(tool, started)
                admission.is_running = True
                result = admission.result = self._run(tool, params, started)
        return result if tool.publishes == "own" else self._publish(tool, shown, began, result)

    async def _awalk(self, tool: ToolContract, params: Any, started: float) -> ToolResult:
        shown, began, gate = self._begin(tool, params)
        session = self.context.session
        if gate is not None and session is not None:
            _refuse(await session.run_in_worker(gate))
        if tool.is_direct and not tool.blocking and self._runner is None:
            result = settled(tool, tool.run(params, self.context), started)
        elif tool.is_async and not tool.is_guarded and self._runner is None:
            seconds = self._seconds(tool)
            call = tool.run(params, self.context)
            if seconds is not None:
                call = background().await_within(call, tool.name, seconds, perf_counter() - started)
            result = settled(tool, await call, started)
        else:
            with Admission(tool.breaker, tool.name) as admission:
                await self._aadmit(tool, started)
                admission.is_running = True
                result = admission.result = await self._arun(tool, params, started)
        if tool.publishes == "own":
            return result
        if session is None or session.store is None or self._tell is not None:
            return self._publish(tool, shown, began, result)
        try:
            return await session.run_in_worker(partial(self._publish, tool, shown, began, result))
        except StoreError as error:  # no thread can be started
            raise ResultNotStored(_NOT_STORED.format(tool.name)) from error

    def _admit(self, tool: ToolContract, started: float) -> None:
        """The last checks: from here on the tool may have taken effect."""
        if tool.rate_limit_key is not None:  # waiting for a server is a part of the call's time
            limiter, seconds = self._limiter(), self._seconds(tool)
            hit = partial(limiter.hit, tool.rate_limit_key)
            if limiter.is_local or seconds is None:
                hit()
            else:
                background().run_in_thread(hit, tool.name, seconds, perf_counter() - started)
        begun = self._claim(tool)
        if begun is not None:
            begun()

    async def _aadmit(self, tool: ToolContract, started: float) -> None:
        if tool.rate_limit_key is not None:
            limiter, seconds = self._limiter(), self._seconds(tool)
            hit = partial(limiter.hit, tool.rate_limit_key)
            if limiter.is_local:
                hit()
            else:
                await background().run_off_loop(hit, tool.name, seconds, perf_counter() - started)
        begun, session = self._claim(tool), self.context.session
        if begun is not None and session is not None:
            await session.run_in_worker(begun)

    def _claim(self, tool: ToolContract) -> Callable[[], None] | None:
        """The claim on a call that must not be made twice; None if that is not needed."""
        session, key = self.context.session, self._key
        if tool.idempotent or key is None or session is None:
            return None
        return partial(claim, session, tool.name, key, self._fingerprint)

    def _begin(self, tool: ToolContract, params: Any) -> tuple[Any, int | None, Refusal | None]:
        """The arguments of a call for its event, its moment for ``BEGAN``, and what may block it."""
        session, shown, began = self.context.session, None, None
        if session is None:
            return None, None, None
        if tool.publishes != "own":
            session.require_free()
            shown = None if tool.returns_private_data else copied(params)
            moment = session.local_object(Gate).moment
            began = None if moment is None else moment(session)
        if tool.session is not None or tool.read_only or not self._gated:
            return shown, began, None
        return shown, began, Gate.of(session, tool.name)

    def _publish(self, tool: ToolContract, shown: Any, began: int | None, result: ToolResult) -> ToolResult:
        session = self.context.session
        if session is not None:
            published = redacted(tool.name, result) if result.is_private else kept(result)
            value = published.value if tool.publishes == "value" and result.success else None
            of_events = self.context.of_events
            event = ToolInvoked(
                tool.name, shown, published, value, fingerprint=self._fingerprint, **of_events
            )
            token = BEGAN.set(began)
            try:
                (self._tell or session.publish)(event)
            except (StoreError, SessionBusyError) as error:
                raise ResultNotStored(_NOT_STORED.format(tool.name)) from error
            finally:
                BEGAN.reset(token)
        if logger().isEnabledFor(_DEBUG):
            self._log(_DEBUG, "tool_called", tool.name, result)
        return result

    # Running the function

    def attempt(self, tool: ToolContract, params: Any) -> Any:
        """Run a tool's function, its timeout and its tries included, and nothing else of the path.

        For the far end of an executor: everything else is done where the call was made.
        """
        if tool.is_async:
            return background().run_coroutine(partial(self._here, tool, params, perf_counter()), tool.name)
        return self._try(tool, params, perf_counter())

    async def in_worker(self, name: str, session: Session | None, answer: Callable[[], T]) -> T | ToolResult:
        """Answer a call of a tool in async code: a session's store must not hold the event loop."""
        if session is None or session.store is None:
            return answer()
        try:
            return await session.run_in_worker(answer)
        except StoreError as error:  # no thread can be started, and nothing was done
            return failed(name, error, perf_counter())

    def _run(self, tool: ToolContract, params: Any, started: float) -> ToolResult:
        if tool.is_async:
            coroutine = partial(self._arun, tool, params, started)
            result: ToolResult = background().run_coroutine(coroutine, tool.name)
            return result
        with withholding(tool):
            return settled(tool, self._try(tool, params, started), started)

    async def _arun(self, tool: ToolContract, params: Any, started: float) -> ToolResult:
        with withholding(tool):
            return settled(tool, await self._atry(tool, params, started), started)

    def _try(self, tool: ToolContract, params: Any, started: float) -> Any:
        seconds = self._seconds(tool)
        if seconds is not None:
            attempts = self._attempts(tool, params)
            return background().run_in_thread(attempts, tool.name, seconds, perf_counter() - started)
        return self._attempts(tool, params)()

    async def _atry(self, tool: ToolContract, params: Any, started: float) -> Any:
        here = partial(self._here, tool, params, started)
        if self._runner is None:
            return await here()
        return await self._runner(tool, params, self._seconds(tool), here)

    async def _here(self, tool: ToolContract, params: Any, started: float) -> Any:
        seconds = self._seconds(tool)
        if tool.is_async:
            call = self._one(tool, params)
            coroutine = (
                call() if tool.retry is None else tool.retry.arun(call, tool.name, partial(may_pass, tool))
            )
            return await background().await_within(coroutine, tool.name, seconds, perf_counter() - started)
        if tool.blocking or seconds is not None:
            attempts = self._attempts(tool, params)
            return await background().run_off_loop(attempts, tool.name, seconds, perf_counter() - started)
        return self._try(tool, params, started)

    def _seconds(self, tool: ToolContract) -> float | None:
        """The time limit of a call. A tool that does not block is not put into a thread to be timed."""
        if tool.timeout is None and (tool.blocking or tool.is_async):
            return self._timeout
        return tool.timeout

    def _attempts(self, tool: ToolContract, params: Any) -> Callable[[], Any]:
        call = self._one(tool, params)
        return (
            call if tool.retry is None else partial(tool.retry.run, call, tool.name, partial(may_pass, tool))
        )

    def _one(self, tool: ToolContract, params: Any) -> Callable[[], Any]:
        """One attempt; there is no other once the caller has stopped waiting."""
        call = partial(tool.run, params, self.context)
        if tool.retry is None:
            return call

        def call_unless_given_up() -> Any:
            if background().is_given_up():
                raise ToolError(f"the caller no longer waits for {tool.name}")
            return call()

        return call_unless_given_up

    # Failures

    def _note(
        self, tool: ToolContract, error: BaseException, started: float, *, has_begun: bool
    ) -> ToolResult | None:
        """Record a call that failed, and return its result; None where the exception ends the program."""
        result = self._failure(tool, error, started, has_begun=has_begun)
        if result is not None:
            self._record(tool.name, result, error, tool.session)
        return result

    def _failure(
        self, tool: ToolContract, error: BaseException, started: float, *, has_begun: bool
    ) -> ToolResult | None:
        """The result of a call that failed; None where the exception ends the program."""
        if tool.returns_private_data:  # what led to the error knows more
            error.__traceback__ = error.__context__ = error.__cause__ = None
        if issubclass(type(error), PASSING):
            return None
        code = ErrorKind.PARAMETER if type(error) is ToolValidationError else None
        if issubclass(type(error), ToolValidationError):
            error.nothing_changed = not has_begun or tool.publishes == "own"  # type: ignore[attr-defined]  # it was asked just now
        elif not has_begun and not issubclass(type(error), ToolError):
            code = ErrorKind.UNKNOWN  # a check of the arguments failed, and not the tool's storage
        return failed(tool.name, error, started, tool=tool, code=code)

    def _record(
        self, name: str, result: ToolResult, error: BaseException, bound: SessionOfCall | None = None
    ) -> None:
        """Record and publish a call that failed; a failure to record it is only logged."""
        if self._key is not None and issubclass(type(error), ToolValidationError):
            doubt(self.context.session, name, self._key)
        level = _INFO if result.code in BLAMELESS else _ERROR
        # The cause of a defect names only types.
        more = {"reason": getattr(error, "cause", "")} if issubclass(type(error), ResultInvalid) else {}
        if logger().isEnabledFor(level):
            self._log(level, "tool_failed", name, result, error=type_name(error), **more)
        context = self.context
        if context.session is None and bound is not None:
            with suppress(ContextInvalid, StoreError):  # a call without a session
                context = attrs.evolve(context, session=bound.find())
        if context.session is not None:
            try:
                event = ToolFailed(name, result, **context.of_events)
                context.session.publish(event, timeout=PATIENCE)
            except Exception as refusal:  # noqa: BLE001 - a bus or a foreign transaction may refuse in any way
                fields = {"tool": name, "error": type(refusal).__name__}
                logger().error("call_not_recorded", extra=fields)

    def _log(self, level: int, event: str, name: str, result: ToolResult, **more: str) -> None:
        code = None if result.code is None else str(result.code)
        extra: dict[str, Any] = {"tool": name, "code": code, "elapsed": result.elapsed, **more}
        trace_id = self.context.values.get("trace_id")
        logger().log(level, event, extra=extra if trace_id is None else {**extra, "trace_id": trace_id})


def with_identifier(tool: ToolContract, arguments: object) -> dict[str, Any]:
    """The arguments, read as far as it takes to see that they say whom the call is about.

    It comes before the parameter model is asked, which would only say that a field is missing.
    """
    given: dict[str, Any] = decode(FreeModel(), arguments, is_private=tool.returns_private_data)
    check_identifiers(tool, given)
    return given


def check_identifiers(tool: ToolContract, arguments: Mapping[str, Any]) -> None:
    """Reject a call without an identifier."""
    if isinstance(tool.parameters, QueryTypes):
        inner = arguments.get("parameters")
        if isinstance(inner, (str, bytes, bytearray)):
            with suppress(ToolValidationError):  # it is refused later, with what is wrong
                inner = read_arguments(inner)
        arguments = inner if isinstance(inner, Mapping) else {}
    if any(_names_someone(arguments.get(name)) for name in tool.identifiers):
        return
    question = question_of(tool)
    raise UserInputNeeded(f"{tool.name} was not called: ask the user first. {question}", question)


def _names_someone(value: object) -> bool:
    """True if a value can be an identifier: None, a boolean, blank text and empty values cannot."""
    if isinstance(value, str):
        return any(character.isprintable() and not character.isspace() for character in value)
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return is_number or (not isinstance(value, bool) and bool(value))


@cache
def background() -> ModuleType:
    """The part that needs asyncio, which most calls do not load."""
    from planning.tools import background  # noqa: PLC0415 - it needs asyncio

    return background


@cache
def logger() -> Logger:
    """Load logging with the first call, and keep stderr clean if logging is not configured."""
    import logging  # noqa: PLC0415 - the planning tools may never log

    logger = logging.getLogger("planning.tools")
    logger.addHandler(logging.NullHandler())
    return logger


def _refuse(reason: str | None) -> None:
    if reason is not None:
        raise ToolError(reason)
