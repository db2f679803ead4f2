"""A call that an executor makes, and how its outcome becomes that of a step.

To another process both are sent as bytes; whatever cannot be pickled, on either side, becomes an error that
can.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import pickle
from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from importlib import import_module
from operator import attrgetter
from typing import Any, Protocol, runtime_checkable

import attrs

from planning.errors import ToolError
from planning.tools.context import ToolContext
from planning.tools.errors import GIVEN_UP, StorageUnavailable, ToolTimeout, classify_error
from planning.tools.guard import Retry
from planning.tools.outcome import text_of
from planning.tools.parameters.model import FreeModel
from planning.tools.parameters.signature import is_of_type, read_signature
from planning.tools.pipeline import CallPipeline
from planning.tools.result import ToolResult, safe_text
from planning.tools.tool import Tool, ToolSpec
from planning.workflow.failures import StepFailed, WorkerLost
from session.json_form import json_form

_TRANSIENT = (StorageUnavailable, ConnectionError, TimeoutError)


@attrs.frozen
class Job:
    """One call of a tool's function, to be made once.

    Attributes:
        tool: Whose function.
        params: Its parameters, checked.
        context: What it is given beside them; in another process it has no session.
        seconds: How long the function has; the time before it begins does not count. None for no limit.
    """

    tool: Tool
    params: Any
    context: ToolContext
    seconds: float | None

    def run(self) -> Future[Any]:
        """Make the call in this process, in any thread; never raises."""
        outcome = Future[Any]()
        try:
            outcome.set_result(
                CallPipeline(self.context, timeout=self.seconds).attempt(self.tool, self.params)
            )
        except BaseException as error:  # noqa: BLE001 - it is raised again where the call was made
            outcome.set_exception(error)
        return outcome

    def written(self, claim: Callable[[], bool] | None = None) -> bytes:
        """The call for another process, where ``run_job`` makes it.

        Raises:
            StepFailed: The function or its parameters cannot be pickled.
        """
        tool = self.tool
        values = dict(self.context.values) if _takes_context(tool) else {}
        function = _carried(tool.function)
        is_spec = isinstance(tool.parameters, ToolSpec)
        takes = "names" if tool.parameters is None else "query" if is_spec else "whole"
        carried = (function, takes, tool.retry, self.seconds)
        call = (tool.name, carried, self.params, values, claim)
        try:
            return _dumps(call)
        except Exception as error:  # noqa: BLE001 - pickling runs the code of whatever is pickled
            raise StepFailed(
                f"{tool.name} cannot be sent to another process ({reason(error)}); define its function at "
                "the top of a module, give it plain values, or run it without an executor",
                "not_sent",
            ) from None

    def lost(self) -> str:
        """The message of a ``WorkerLost``."""
        name = self.tool.name
        return f"the worker that ran {name} died while it ran" if self.tool.idempotent else _once(name)


def _call(
    name: str,
    carried: tuple[Any, ...],
    params: Any,
    values: Mapping[str, Any],
    claim: Callable[[], bool] | None,
) -> Any:
    """Make the call of a job in another process."""
    if claim is not None and not claim():
        raise WorkerLost(_once(name))
    function, *how = carried
    if isinstance(function, _Named):
        function = function.find()
    return CallPipeline(ToolContext(None, values)).attempt(_tool(name, function, *how), params)


def _tool(name: str, function: Any, takes: str, retry: Retry | None, seconds: float | None) -> Tool:
    """The tool of a job in another process; what its arguments are was checked where the call was made."""
    parameters = {"names": None, "query": ToolSpec(name, {}, ""), "whole": FreeModel()}[takes]
    return Tool(name, "", function, parameters=parameters, timeout=seconds, retry=retry)


def _once(name: str) -> str:
    """The message for a call with an unknown outcome that must not be made again."""
    return f"the worker that ran {name} died; {name} may have taken effect, so it is not run again"


def run_job(written: bytes) -> bytes:
    """Run a call that was written down, and write down its outcome; what workers run. Never raises."""
    name = "the tool"
    try:
        try:
            call = pickle.loads(written)  # noqa: S301 - the program that started this worker wrote it
        except Exception as error:  # noqa: BLE001 - loading runs the code of whatever is loaded
            raise StepFailed(
                f"a worker could not load the function ({reason(error)}); its modules must be "
                "installed where the workers run",
                "not_sent",
            ) from None
        name = call[0]
        value = _call(*call)
        with suppress(Exception):  # what has no JSON form is refused where the call was made
            value = _send_back(value)
        try:
            return b"V" + _dumps(value)
        except Exception:  # noqa: BLE001 - pickling runs the code of whatever is pickled
            text_of(name, value)  # what has no JSON form either is refused as it is in this program
            return b"V" + pickle.dumps(json_form(value, strict=True))
    except BaseException as error:  # noqa: BLE001 - a tool may fail in any way
        return _written_error(name, error)


def _send_back(value: Any) -> Any:
    """The form in which a result goes back: its JSON form, but for what is text or a number there."""
    if isinstance(value, ToolResult):
        return attrs.evolve(value, value=_send_back(value.value))
    form = json_form(value, strict=True)
    return form if isinstance(form, (dict, list)) else value


def _written_error(name: str, error: BaseException) -> bytes:
    """An exception as bytes; one that does not come back whole is replaced by its text."""
    failure: Exception = StepFailed(f"{name} ended with {type(error).__name__}", "interrupted")
    if not isinstance(error, Exception):  # it would end the worker, or the program that waits for it
        return b"E" + pickle.dumps(failure)
    error.__traceback__ = error.__cause__ = error.__context__ = None  # some libraries would send them too
    with suppress(BaseException):  # an exception may do anything when it is pickled, or asked for its text
        written = _dumps(error)
        if type(pickle.loads(written)) is type(error):  # noqa: S301 - it was written one line before
            return b"E" + written
    with suppress(BaseException):
        text = f"{type(error).__name__}: {safe_text(error)}"[:1_000]
        failure = ConnectionError(text) if isinstance(error, _TRANSIENT) else RuntimeError(text)
        if isinstance(error, ToolError):
            message = safe_text(getattr(error, "message", error)) or type(error).__name__
            failure = StepFailed(message, classify_error(error))
    return b"E" + pickle.dumps(failure)


def unpack(written: bytes) -> Any:
    """The value that the call returned.

    Raises:
        Exception: What it raised.
    """
    try:
        found = pickle.loads(written[1:])  # noqa: S301 - a worker of this program wrote it
    except Exception as error:  # noqa: BLE001 - loading runs the code of whatever is loaded
        message = f"the result cannot be read here ({reason(error)}); let the tool return plain values"
        raise StepFailed(message, "not_sent") from None
    if written[:1] == b"V":
        return found
    raise found


def _dumps(value: Any) -> bytes:
    """Pickle a value; with cloudpickle, where it is installed, also what only a script defines."""
    try:
        import cloudpickle
    except ImportError:
        return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    written: bytes = cloudpickle.dumps(value)
    return written


@attrs.frozen
class _Named:
    """A function by its name, also where the decorator has put a tool in its place."""

    module: str
    name: str

    def find(self) -> Any:
        found = attrgetter(self.name)(import_module(self.module))
        return found.function if isinstance(found, Tool) else found


def _carried(function: Callable[..., Any]) -> Any:
    """A function, or its name where its module has it."""
    try:
        named = _Named(function.__module__, function.__qualname__)
        return named if named.module != "__main__" and named.find() is function else function
    except Exception:  # noqa: BLE001 - its module has no such name, or fails in any way
        return function


def reason(error: BaseException) -> str:
    """The text of an exception, as a message may quote it: short, in ASCII, on one line."""
    return ascii(" ".join(safe_text(error).split())[:160])[1:-1]


def _takes_context(tool: Tool) -> bool:
    """True if a tool's function may look at its context; when in doubt, yes."""
    parameters = read_signature(tool.function).parameters
    if tool.parameters is None:
        return any(is_of_type(tool.function, name, ToolContext) for name in parameters)
    return not parameters or len(parameters) > 1 + isinstance(tool.parameters, ToolSpec)


class ExecutorUnavailable(Exception):
    """An executor cannot be opened; the message says why, on one line."""


@runtime_checkable
class JobExecutor(Protocol):
    """An executor of this package: it ends a job at its time, and runs it again where its worker died.

    The result of the future is what ``job.run()`` or ``run_job(job.written())`` returns. It fails with
    ``WorkerLost`` if the worker died, ``TimeoutError`` if the job took longer than ``job.seconds``, and
    ``BrokenExecutor`` if the executor will run nothing any more.
    """

    def submit_job(self, job: Job) -> Future[Any]:
        """Hand over a job, and return at once."""
        ...


AnyExecutor = JobExecutor | concurrent.futures.Executor
"""An executor, as ``run_workflow(executor=...)`` takes it."""


def check_executor(executor: object) -> None:
    """Refuse what is not an executor.

    Raises:
        TypeError: It has neither ``submit_job`` nor ``submit``.
    """
    if not (hasattr(executor, "submit_job") or hasattr(executor, "submit")):
        raise TypeError(f"executor must be a concurrent.futures.Executor, got {type(executor).__name__}")


def submit(executor: AnyExecutor, job: Job) -> Future[Any]:
    """Hand a job to an executor.

    Raises:
        StepFailed: The call cannot be sent, or the executor does not take it.
    """
    try:
        if isinstance(executor, ThreadPoolExecutor):
            return executor.submit(copy_context().run, job.run)
        if isinstance(executor, JobExecutor):
            return executor.submit_job(job)
        return executor.submit(run_job, job.written())
    except StepFailed:
        raise
    except Exception as error:  # noqa: BLE001 - an executor may refuse in any way
        why = f"the executor takes no jobs ({reason(error)}); resume with another"
        raise WorkerLost(f"{job.tool.name} was not run: {why}") from None


async def outcome_of(future: Future[Any], job: Job) -> Any:
    """The value or the exception of a job's function.

    Raises:
        StepFailed: The worker or the executor is lost.
    """
    name = job.tool.name
    try:
        outcome = await asyncio.wrap_future(future)
    except BrokenExecutor:
        raise WorkerLost(f"{job.lost()}; the executor is broken, resume with another") from None
    except WorkerLost:
        raise
    except TimeoutError:
        after = "" if job.seconds is None else f" than {job.seconds:g} s"
        raise ToolTimeout(f"{name} took longer{after} and {GIVEN_UP}") from None
    except Exception as error:  # noqa: BLE001 - an executor may fail in any way
        raise StepFailed(f"the executor could not run {name} ({reason(error)})", "not_sent") from None
    return unpack(outcome) if isinstance(outcome, bytes) else outcome.result()
