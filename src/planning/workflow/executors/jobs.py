"""A call as it travels to another process and back: bytes there, bytes here.

Whatever cannot be pickled, on either side, becomes an error that can.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Mapping
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from functools import partial
from importlib import import_module
from typing import Any, Protocol

import attrs

from planning.tools.context import ToolContext
from planning.tools.errors import ErrorKind, StorageUnavailable, ToolError, classify_error
from planning.tools.guard import Retry
from planning.tools.outcome import text_of
from planning.tools.parameters.model import FreeModel
from planning.tools.pipeline import CallPipeline
from planning.tools.result import safe_text
from planning.tools.tool import Tool, ToolSpec
from planning.workflow.failures import StepFailed, WorkerLost
from planning.workflow.values import Copier, too_large

__all__ = [
    "Claim",
    "NotStarted",
    "RemoteError",
    "dumps",
    "lost_message",
    "pack",
    "reason",
    "run_job",
    "unpack",
]

Dumps = Callable[[Any], bytes]

_LONGEST_REASON = 160
_TRANSIENT = (StorageUnavailable, ConnectionError, TimeoutError)
_HOME = __name__.partition(".")[0]


class Claim(Protocol):
    """The right to run a job, which is given once."""

    def take(self) -> bool:
        """Whether it is given now."""
        ...


class NotStarted(BrokenExecutor):
    """No worker could be started: the job did not begin."""


class RemoteError(Exception):
    """Replaces an exception that could not be sent back from another process.

    Attributes:
        kind: What sort of failure it was.
    """

    def __init__(self, text: str, kind: ErrorKind) -> None:
        super().__init__(text, kind)
        self.kind = kind

    def __str__(self) -> str:
        return str(self.args[0])


class _RemotePassing(RemoteError, ConnectionError):
    """Replaces a transient exception, so that the call is retried as it would be for the original."""


@attrs.frozen
class _ByName:
    """A function that is found in its module, where its name is a ``Tool``."""

    module: str
    name: str

    def function(self) -> Callable[..., Any]:
        found: Any = import_module(self.module)
        for part in self.name.split("."):
            found = getattr(found, part)
        return found.function if isinstance(found, Tool) else found


@attrs.frozen
class _Job:
    """What is needed of a tool, and of one call of it, to run its function elsewhere.

    Attributes:
        shape: How the function takes its parameters: by ``name``, as one ``model``, or as a ``query``.
    """

    name: str
    function: Callable[..., Any] | _ByName
    shape: str
    retry: Retry | None
    params: Any
    values: Mapping[str, Any]
    seconds: float | None
    claim: Claim | None

    def run(self) -> Any:
        if self.claim is not None and not self.claim.take():
            raise WorkerLost(_once(self.name))
        function = self.function.function() if isinstance(self.function, _ByName) else self.function
        parameters = {"query": ToolSpec(self.name, {}, ""), "model": FreeModel()}.get(self.shape)
        tool = Tool(self.name, "", function, parameters=parameters, timeout=self.seconds, retry=self.retry)
        attempt = partial(CallPipeline(ToolContext(None, self.values)).attempt, tool, self.params)
        if not (tool.is_async and _in_loop()):
            return attempt()
        with ThreadPoolExecutor(1) as thread:  # an executor that runs its jobs where they are handed in
            return thread.submit(attempt).result()


def _in_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def pack(
    tool: Tool,
    params: Any,
    values: Mapping[str, Any],
    seconds: float | None,
    *,
    write: Dumps,
    claim: Claim | None = None,
) -> bytes:
    """Write a call down.

    Args:
        tool: What is called.
        params: With what, checked already.
        values: What its context says.
        seconds: How long it has, its retries included; None for no limit.
        write: What pickles.
        claim: Taken before the function runs, where the executor may run a job again by itself.

    Raises:
        StepFailed: Its function or its inputs cannot be pickled.
    """
    shape = (
        "query" if isinstance(tool.parameters, ToolSpec) else "name" if tool.parameters is None else "model"
    )
    function = _carried(tool)
    try:
        write(function)
    except Exception as error:  # noqa: BLE001 - pickling runs the code of whatever is pickled
        raise StepFailed(
            f"{tool.name} cannot be sent to another process ({reason(error)}); define its function at the "
            "top of a module, or run it without an executor",
            "not_sent",
        ) from None
    try:
        return write(_Job(tool.name, function, shape, tool.retry, params, dict(values), seconds, claim))
    except Exception as error:  # noqa: BLE001 - the same
        raise StepFailed(
            f"the inputs of {tool.name} cannot be sent to another process ({reason(error)}); give it plain "
            "values",
            "not_sent",
        ) from None


def lost_message(tool: Tool, times: int = 1) -> str:
    """The message for a step whose worker died, or so many workers one after the other."""
    if not tool.idempotent:
        return _once(tool.name)
    how = f"{times} times" if times > 1 else "while it ran"
    return f"the worker that ran {tool.name} died {how}"


def _once(name: str) -> str:
    return f"the worker that ran {name} died; {name} may have taken effect, so it is not run again"


def run_job(written: bytes) -> bytes:
    """Run a call that was written down, and write down what comes of it; what workers run. Never raises."""
    try:
        return _carried_out(written)
    except BaseException as error:  # noqa: BLE001 - an exception may fail in any way when it is written down
        return _ended("the tool", error)


def _carried_out(written: bytes) -> bytes:
    name = "the tool"
    try:
        try:
            job: _Job = pickle.loads(written)  # noqa: S301 - the other end is the program that sent it
        except Exception as error:  # noqa: BLE001 - loading runs the code of whatever is loaded
            raise StepFailed(
                f"a worker could not load what it is to run ({reason(error)}); its modules must be "
                "installed where the workers run",
                "not_sent",
            ) from None
        name = job.name
        value = job.run()
        Copier(f"{name} returned", too_large(name)).copy(value)  # refused here, it need not be sent
        try:
            return b"V" + dumps(value)
        except Exception as error:  # noqa: BLE001 - pickling runs the code of whatever is pickled
            text_of(name, value)  # what has no JSON form either is refused as it is in this program
            raise StepFailed(
                f"what {name} gave back cannot be sent ({reason(error)}); let it give back plain values",
                "not_sent",
            ) from None
    except Exception as error:  # noqa: BLE001 - a tool may fail in any way
        return b"E" + _written_error(error)
    except BaseException as error:  # noqa: BLE001 - it would end the worker, or the program that waits for it
        return _ended(name, error)


def _ended(name: str, error: BaseException) -> bytes:
    return b"E" + pickle.dumps(StepFailed(f"{name} ended with {type(error).__name__}", "interrupted"))


def unpack(written: bytes) -> Any:
    """What the call gave back.

    Raises:
        Exception: What it raised.
    """
    try:
        found = pickle.loads(written[1:])  # noqa: S301 - a worker of the program's own wrote it
    except Exception as error:  # noqa: BLE001 - loading runs the code of whatever is loaded
        message = f"what came back cannot be read here ({reason(error)}); let the tool give back plain values"
        raise StepFailed(message, "not_sent") from None
    if written[:1] == b"V":
        return found
    raise found


def dumps(value: Any) -> bytes:
    """Pickle a value; with cloudpickle, where it is installed, what pickle alone cannot."""
    try:
        return pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception:
        try:
            import cloudpickle
        except ImportError:
            cloudpickle = None
        if cloudpickle is None:
            raise
    written: bytes = cloudpickle.dumps(value)
    return written


def _carried(tool: Tool) -> Callable[..., Any] | _ByName:
    """A tool's function, by its name where the decorator put the tool in its place."""
    function = tool.function
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or module == "__main__":
        return function
    named = _ByName(module, name)
    try:
        return named if named.function() is function else function
    except Exception:  # noqa: BLE001 - it is none of its module's, or that fails in any way
        return function


def _written_error(error: Exception) -> bytes:
    """An exception as bytes; where it does not come back whole, another that says of it what can be said."""
    error.__traceback__ = error.__cause__ = error.__context__ = None  # some libraries would send them too
    try:
        written = dumps(error)
        back = pickle.loads(written)  # noqa: S301 - it was written one line before
        if type(back) is type(error):
            return written
    except Exception:  # noqa: BLE001 - it cannot be pickled, or not read again
        written = b""
    if isinstance(error, ToolError):
        return pickle.dumps(_bare(error))
    kind = _RemotePassing if isinstance(error, _TRANSIENT) else RemoteError
    return pickle.dumps(kind(f"{type(error).__name__}: {safe_text(error)}"[:1_000], classify_error(error)))


def _bare(error: ToolError) -> ToolError:
    """An error of the nearest type of this package's own, with what is text or a number in it."""
    kinds = (each for each in type(error).__mro__ if issubclass(each, ToolError))
    kind: type[ToolError] = next(each for each in kinds if each.__module__.partition(".")[0] == _HOME)
    message = safe_text(getattr(error, "message", error))
    bare = ToolError.__new__(kind, message)
    plain = {name: value for name, value in vars(error).items() if isinstance(value, (str, int, float))}
    bare.__dict__.update(plain, message=message, details={})
    return bare


def reason(error: BaseException) -> str:
    """What an exception says, as it may stand in a message: short, in ASCII, on one line."""
    text = " ".join(safe_text(error).split())
    return ascii(text[:_LONGEST_REASON])[1:-1]
