"""How every command is used: the help, and what wrong use and unreadable input are answered with."""

from __future__ import annotations

import os
import signal
from typing import Any, Final

import typer
from typer.core import TyperCommand, TyperGroup

from planning.errors import nearest, printable

__all__ = [
    "EXIT_CODES",
    "HELP_OPTIONS",
    "TOOLS_HELP",
    "Command",
    "Group",
    "Refused",
    "bad_option",
    "examples",
]

HELP_OPTIONS: Final = {"help_option_names": ["--help", "-h"]}

# \b keeps a paragraph as it is written.
EXIT_CODES: Final = """\b
Exit codes, the same for all commands:
  0    done; the plan is valid, the run is completed
  1    the answer is no: the plan has errors, the run failed or the
       question was not answered; or the output cannot be written
  2    nothing was done: wrong use, or input that cannot be read
  130  stopped by Ctrl-C
  143  stopped by a termination signal
"""

TOOLS_HELP: Final = """\b
Tools:
  --tools module:object imports the module, which runs its code, and
  takes the object: a registry, a toolbox, a mapping or a list, or a
  function that returns one. Name only modules that you trust. Of a kind
  that is not given, 'planning validate' checks no names.
"""


def examples(*commands: str) -> str:
    """Examples of a command for its help, as a paragraph that is kept as it is written."""
    return "\n".join(["\b\nExamples:", *(f"  planning {command}" for command in commands), ""])


class Refused(typer.BadParameter):
    """A command cannot start; the message says why. The exit code is 2."""

    def show(self, file: Any = None) -> None:
        """Print the message."""
        typer.echo(f"planning: {self.message}", file=file, err=file is None)

    def __str__(self) -> str:
        return self.message


def bad_option(name: str, message: object) -> typer.BadParameter:
    """The error for an option or argument that is given wrongly; its usage is printed too."""
    return typer.BadParameter(printable(str(message)), param_hint=f"'{name}'")


class Command(TyperCommand):
    """A command whose errors are in this project's words."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments."""
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            error.message = _reason(error)
            raise
        except typer.TyperException as error:
            error.message = error.message.replace("Got unexpected extra argument(s)", "Too many arguments")
            # An unknown option: only the nearest name is offered, and none where none is near.
            if (option := vars(error).get("option_name")) is not None and "possibilities" in vars(error):
                near = nearest(option, (name for param in self.params for name in param.opts))
                hint = "" if near is None else f"; did you mean {near}?"
                vars(error).update(possibilities=None, message=f"{error.message}{hint}")
            raise


class Group(TyperGroup):
    """All commands."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Find a command by its name."""
        try:
            return super().resolve_command(ctx, args)
        except typer.TyperException as error:
            near = nearest(args[0], self.commands)
            error.message = error.message.rstrip(".") + ("" if near is None else f"; did you mean {near}?")
            raise

    def invoke(self, ctx: Any) -> Any:
        """Run a command; it ends as any program does whose reader is gone, once everything is cleaned up."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGPIPE)
            raise


def _reason(error: typer.BadParameter) -> str:
    """Why a value was refused: the library's own reasons speak of its insides."""
    cause: Any = error.__cause__
    if not hasattr(cause, "errors"):
        return error.message
    problem = cause.errors()[0]
    given, limits = printable(repr(problem["input"])), problem.get("ctx", {})
    match problem["type"]:
        case "greater_than_equal":
            return f"{given} is too small; give at least {limits['ge']:g}"
        case "less_than_equal":
            return f"{given} is too large; give at most {limits['le']:g}"
        case "int_parsing" | "int_from_float" | "int_parsing_size":
            return f"{given} is not a whole number"
        case "float_parsing":
            return f"{given} is not a number"
        case _:
            return error.message.removeprefix("Value error, ").rstrip(".")
