"""How every command is used: the help, and what wrong use and unreadable input are answered with."""

from __future__ import annotations

from typing import Any, Final

import typer
from typer.core import TyperCommand

from planning.errors import printable

HELP_OPTIONS: Final = {"help_option_names": ["--help", "-h"]}

# \b keeps a paragraph as it is written.
EXIT_CODES: Final = """\b
Exit codes, the same for all commands:
  0    done; the workflow is valid, the run is completed
  1    the answer is no: the workflow has errors, the run failed
       or the question was not answered; or the output cannot be written
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
    """A command that knows how it was called."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; they are kept in the context as they were given."""
        ctx.obj = tuple(args)
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise
        except Exception as error:
            names = [str(each.metavar) for each in self.params if each.param_type_name == "argument"]
            if getattr(error, "option_name", None) != "--session" or "SESSION" not in names:
                raise
            used = " ".join([ctx.command_path, *names[: names.index("SESSION") + 1]])
            raise Refused(f"the session is an argument, not an option: {used}") from None
