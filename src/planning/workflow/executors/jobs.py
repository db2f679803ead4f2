"""A call as it travels to another process and back: bytes there, bytes here.

Whatever cannot be pickled, on either side, becomes an error that can.
"""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from typing import Any, NoReturn

import attrs

from planning.tools.context import ToolContext
from planning.tools.errors import StorageUnavailable, ToolError, classify_error
from planning.tools.guard import Retry
from planning.tools.outcome import text_of
from planning.tools.parameters.model import FreeModel
from planning.tools.parameters.signature import is_of_type, read_signature
from planning.tools.pipeline import CallPipeline
from planning.tools.result import safe_text
from planning.tools.tool import Tool, ToolSpec
from planning.workflow.failures import StepFailed, WorkerLost
from planning.workflow.values import MOST_BYTES, too_large

__all__ = ["Job", "reason", "run_job", "unpack"]

_LONGEST_REASON = 160
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

    def run(self) -> Callable[[], Any]:
        """Make the call in this process, in any thread; never raises."""
        try:
            outcome = CallPipeline(self.context, timeout=self.seconds).attempt(self.tool, self.params)
        except BaseException as error:  # noqa: BLE001 - it is raised again where the call was made
            return partial(_raise, error)
        return lambda: outcome

    def written(self, claim: Callable[[], bool] | None = None) -> bytes:
        """The call for another process, where ``run_job`` makes it.

        Args:
            claim: Whether the function may run, where the executor may run a job again by itself.

        Raises:
            StepFailed: The function or its parameters cannot be pickled.
        """
        tool, values = self.tool, dict(self.context.values)
        if not _takes_context(tool):
            values.pop("memory", None)
        function = _carried(tool.function)
        shape: Any = None if tool.parameters is None else FreeModel()
        if isinstance(tool.parameters, ToolSpec):
            shape = ToolSpec(tool.name, {}, "")
        call = (tool.name, function, shape, tool.retry, self.params, values, self.seconds, claim)
        try:
            return _dumps(call)
        except Exception as error:  # noqa: BLE001 - pickling runs the code of whatever is pickled
            what, why = f"the inputs of {tool.name}", f"({reason(error)}); give it plain values"
        try:
            _dumps(function)
        except Exception as error:  # noqa: BLE001 - the same
            remedy = "define its function at the top of a module, or run it without an executor"
            what, why = tool.name, f"({reason(error)}); {remedy}"
        raise StepFailed(f"{what} cannot be sent to another process {why}", "not_sent")

    def lost(self, times: int = 1) -> str:
        """The message of a ``WorkerLost``: so many workers that ran this job died, one after the other."""
        name = self.tool.name
        if not self.tool.idempotent:
            return _once(name)
        return f"the worker that ran {name} died {f'{times} times' if times > 1 else 'while it ran'}"


def _call(
    name: str,
    function: Callable[..., Any],
    parameters: Any,
    retry: Retry | None,
    params: Any,
    values: Mapping[str, Any],
    seconds: float | None,
    claim: Callable[[], bool] | None,
) -> Any:
    """Make the call of a job in another process."""
    if claim is not None and not claim():
        raise WorkerLost(_once(name))
    function = function() if isinstance(function, _Found) else function
    tool = Tool(name, "", function, parameters=parameters, timeout=seconds, retry=retry)
    attempt = partial(CallPipeline(ToolContext(None, values)).attempt, tool, params)
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


def _once(name: str) -> str:
    """The message for a call that must not be made again, of whose outcome nothing is known."""
    return f"the worker that ran {name} died; {name} may have taken effect, so it is not run again"


def run_job(written: bytes) -> bytes:
    """Run a call that was written down, and write down its outcome; what workers run. Never raises."""
    name = "the tool"
    try:
        try:
            call = pickle.loads(written)  # noqa: S301 - the program that started this worker wrote it
        except Exception as error:  # noqa: BLE001 - loading runs the code of whatever is loaded
            raise StepFailed(
                f"a worker could not load what it is to run ({reason(error)}); its modules must be "
                "installed where the workers run",
                "not_sent",
            ) from None
        name = call[0]
        value = _call(*call)
        try:
            packed = _dumps(value)
        except Exception as error:  # noqa: BLE001 - pickling runs the code of whatever is pickled
            text_of(name, value)  # what has no JSON form either is refused as it is in this program
            raise StepFailed(
                f"what {name} gave back cannot be sent ({reason(error)}); let it give back plain values",
                "not_sent",
            ) from None
        is_small = len(packed) <= 2 * MOST_BYTES  # it may take less in memory
        return b"V" + packed if is_small else _written_error(name, StepFailed(too_large(name), "too_large"))
    except BaseException as error:  # noqa: BLE001 - a tool may fail in any way
        return _written_error(name, error)


def _written_error(name: str, error: BaseException) -> bytes:
    """An exception as bytes; one that does not come back whole is replaced by what can be said of it."""
    ended = StepFailed(f"{name} ended with {type(error).__name__}", "interrupted")
    if not isinstance(error, Exception):  # it would end the worker, or the program that waits for it
        return b"E" + pickle.dumps(ended)
    try:
        error.__traceback__ = error.__cause__ = error.__context__ = None  # some libraries would send them too
        try:
            written = _dumps(error)
            if type(pickle.loads(written)) is type(error):  # noqa: S301 - it was written one line before
                return b"E" + written
        except Exception:  # noqa: BLE001, S110 - it cannot be pickled, or not read again
            pass
        if isinstance(error, ToolError):
            message = safe_text(getattr(error, "message", error)) or type(error).__name__
            return b"E" + pickle.dumps(StepFailed(message, classify_error(error)))
        kind = ConnectionError if isinstance(error, _TRANSIENT) else RuntimeError
        return b"E" + pickle.dumps(kind(f"{type(error).__name__}: {safe_text(error)}"[:1_000]))
    except BaseException as failure:  # noqa: BLE001 - an exception may fail in any way when it is asked
        return b"E" + pickle.dumps(StepFailed(f"{name} ended with {type(failure).__name__}", "interrupted"))


def unpack(written: bytes) -> Any:
    """What the call gave back.

    Raises:
        Exception: What it raised.
    """
    try:
        found = pickle.loads(written[1:])  # noqa: S301 - a worker of this program wrote it
    except Exception as error:  # noqa: BLE001 - loading runs the code of whatever is loaded
        message = f"what came back cannot be read here ({reason(error)}); let the tool give back plain values"
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


class _Found(partial[Any]):
    """Finds a function by its name."""


def _find(module: str, name: str) -> Any:
    """A function in its module, where its name may be a ``Tool``."""
    found: Any = import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found.function if isinstance(found, Tool) else found


def _carried(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function, or how it is found in its module: the decorator may have put a tool in its place."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or module == "__main__":
        return function
    try:
        return _Found(_find, module, name) if _find(module, name) is function else function
    except Exception:  # noqa: BLE001 - its module has no such name, or fails in any way
        return function


def reason(error: BaseException) -> str:
    """What an exception says, as a message may quote it: short, in ASCII, on one line."""
    text = " ".join(safe_text(error).split())
    return ascii(text[:_LONGEST_REASON])[1:-1]


def _takes_context(tool: Tool) -> bool:
    """Whether a tool's function may look at its context; when in doubt, yes."""
    parameters = read_signature(tool.function).parameters
    if tool.parameters is None:
        return any(is_of_type(tool.function, name, ToolContext) for name in parameters)
    return not parameters or len(parameters) > 1 + isinstance(tool.parameters, ToolSpec)


def _raise(error: BaseException) -> NoReturn:
    raise error
