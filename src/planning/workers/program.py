"""What worker processes run."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing import spawn
from pathlib import Path

__all__ = ["Program", "calling"]


@dataclass(frozen=True, slots=True)
class Program:
    """What the worker processes of a pool run.

    Attributes:
        command: Gives the interpreter and its options, each time when a process is started.
        folder: The folder in which ``module`` is found: modules of the standard library alone.
        module: The module whose ``serve(channel, given)`` answers requests. It sends one message, whatever
            that is, when it is ready.
        given: Gives its second argument, each time when a process is started.
        is_silent: Whether what a process writes to stdout and stderr goes nowhere.
    """

    command: Callable[[], Sequence[str]]
    folder: str
    module: str
    given: Callable[[], bytes]
    is_silent: bool = False


def calling(function: Callable[[bytes], bytes], name: str) -> Program:
    """A program that answers each request by calling a function, in a fresh interpreter.

    A fork would copy the locks that other threads hold. So the interpreter gets this program's options,
    paths and main module, as ``multiprocessing`` gives them to the processes that it spawns, and finds the
    function in its module.

    Args:
        function: Takes the bytes of a request and gives those of its answer; it never raises.
        name: What ``multiprocessing.current_process().name`` says in the processes.
    """
    folder = Path(__file__).parent
    return Program(_command, str(folder), "inside.calls", partial(_environment, function, name))


def _command() -> Sequence[str]:
    return spawn.get_command_line()[:-3]  # without its last options: -c, a text, and a word for that


def _environment(function: Callable[[bytes], bytes], name: str) -> bytes:
    environment = spawn.get_preparation_data(name)
    environment["authkey"] = bytes(environment["authkey"])  # as it is, it lets nothing but Process pickle it
    return pickle.dumps((environment, pickle.dumps(function)))
