"""The use of every command: the help, and the answers to wrong use and unreadable input."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand

from planning.errors import nearest, printable

HELP_OPTIONS: Final = {"help_option_names": ["--help", "-h"]}

DEFAULT_STORE: Final = ".planning/runs.db"
"""The file in which ``planning run`` keeps runs, in the current folder."""
LAST: Final = "--last"
"""The option that names the session that was changed last, and what a command gets for its id then."""


def exit_codes(command: str = "") -> str:
    """The exit codes of a command, or of all; a paragraph that is kept as it is written."""
    ends_well = command in {"view", "watch"}
    rest = "" if command else "; 'view' and 'watch' end with 0"
    return "\n".join([
        "\b\nExit codes:",
        f"  0    done{', also by Ctrl-C' if ends_well else '; the workflow is valid, the run is completed'}",
        "  1    the answer is no: the workflow has errors, the run failed, the",
        "       session is damaged, the question was not answered; or the output",
        "       cannot be written",
        "  2    nothing was done: wrong use, or input that cannot be read",
        *([] if ends_well else [f"  130  stopped by Ctrl-C{rest}"]),
        "  143  stopped by a termination signal",
        "",
    ])  # fmt: skip


TOOLS_HELP: Final = """\b
Tools:
  --tools module:object imports the module, which runs its code, and
  takes the object: a registry, a toolbox, a mapping or a list, or a
  function that returns one. Name only modules that you trust.
  'planning validate' checks only the names of the kinds that you give.
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


def suggest(error: Any, known: Iterable[Any]) -> None:
    """Say in the error for an unknown option which one of the parameters was probably meant."""
    if getattr(error, "possibilities", None) is not None:
        near = nearest(error.option_name, [name for each in known for name in each.opts if name[0] == "-"])
        error.possibilities = None
        error.message += "" if near is None else f". Did you mean {near}?"


class Command(TyperCommand):
    """A command that knows how it was called; where it takes a session, ``--last`` names one."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._arguments = [each for each in self.params if each.param_type_name == "argument"]
        wanted = {"argument": "SESSION", "option": "ID"}
        sessions = [each for each in self.params if each.metavar == wanted[each.param_type_name]]
        self._session: Any = next((each for each in sessions if each.nargs == 1), None)
        if self._session is not None:
            self.params.append(_last_option())

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; they are kept in the context as they were given."""
        ctx.obj = tuple(args)
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise
        except Exception as error:
            suggest(error, self.get_params(ctx))
            names = [str(each.metavar) for each in self._arguments]
            if getattr(error, "option_name", None) != "--session" or "SESSION" not in names:
                raise
            used = " ".join([ctx.command_path, *names[: names.index("SESSION") + 1]])
            raise Refused(f"the session is an argument, not an option: {used}") from None

    def make_parser(self, ctx: Any) -> Any:
        """A parser that takes a session without its store, and ``--last`` for a session."""
        parser: Any = super().make_parser(ctx)
        read = parser.parse_args

        def parse(args: list[str]) -> Any:
            values, rest, order = read(args)
            if self._session is not None:
                self._name_session(values, rest)
            return values, rest, order

        parser.parse_args = parse
        return parser

    def _name_session(self, values: dict[str, Any], rest: list[str]) -> None:
        """Put the session, and a store that is not given, among the values of the arguments."""
        is_last, name = bool(values.get("last")), self._session.name
        if self._session not in self._arguments:
            if is_last:
                values[name] = LAST
            return
        names = [str(each.name) for each in self._arguments]
        given = [values[each] for each in names if isinstance(values.get(each), str)] + rest
        at = names.index(name)
        has_room = len(given) + is_last < len(names)
        if names[0] != "file" and has_room and (is_last if not given else _is_session(given[0])):
            given.insert(0, DEFAULT_STORE)
        if is_last:
            given.insert(at, LAST)
        values.update(zip(names, given, strict=False))
        rest[:] = given[len(names) :]


def _last_option() -> Any:
    """The option ``--last``, which is only for ``Command``."""

    def made(
        *, last: Annotated[bool, typer.Option(LAST, help="Take the session that was changed last.")] = False
    ) -> None:
        del last

    maker = typer.Typer(add_completion=False, rich_markup_mode=None)
    maker.command()(made)
    option = typer.main.get_command(maker).params[0]
    option.expose_value = False
    return option


def _is_session(text: str) -> bool:
    """True if an argument does not name a place of sessions, but the store of ``planning run`` is there."""
    from session.address import is_address  # --help needs no sessions

    path = Path(text)
    is_path = "/" in text or path.suffix[1:].isalpha() or path.is_file() or path.is_fifo()
    return text != "-" and not is_path and not is_address(text) and os.path.lexists(DEFAULT_STORE)
