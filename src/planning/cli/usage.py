"""The use of every command: the help, and the answers to wrong use and unreadable input."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import typer
from typer.core import TyperCommand

from planning.errors import nearest, printable

HELP_OPTIONS: Final = {"help_option_names": ["--help", "-h"]}

DEFAULT_STORE: Final = ".planning/runs.db"
"""The file in which ``planning run`` keeps runs, in the current folder."""
LAST: Final = "--last"
"""The word for the session that was changed last, which a user writes in place of its id."""

# \b keeps a paragraph as it is written.
EXIT_CODES: Final = """\b
Exit codes:
  0    done; the workflow is valid, the run is completed
  1    the answer is no: the workflow has errors, the run failed, a
       session is damaged, or the question was not answered; or the
       output cannot be written
  2    nothing was done: wrong use, or input that cannot be read
  130  stopped by Ctrl-C; 'view' and 'watch' end with 0 then
  143  stopped by a termination signal
"""

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


_SUFFIXES: Final = {".db", ".sqlite", ".json", ".jsonl"}  # an id may have another one


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
    """A command that knows how it was called; where it takes a session, ``--last`` is one."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the arguments; they are kept in the context as they were given."""
        ctx.obj = tuple(args)
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix("Value error, ")
            raise
        except Exception as error:
            wrong: Any = error
            if getattr(wrong, "possibilities", None) is not None:
                known = [name for each in self.get_params(ctx) for name in each.opts if name[0] == "-"]
                near, wrong.possibilities = nearest(wrong.option_name, known), None
                wrong.message += "" if near is None else f". Did you mean {near}?"
            names = [str(each.metavar) for each in self._arguments()]
            if getattr(error, "option_name", None) != "--session" or "SESSION" not in names:
                raise
            used = " ".join([ctx.command_path, *names[: names.index("SESSION") + 1]])
            raise Refused(f"the session is an argument, not an option: {used}") from None

    def make_parser(self, ctx: Any) -> Any:
        """A parser that takes a session without its store, and ``--last`` for one."""
        parser: Any = super().make_parser(ctx)
        read, metavars = parser.parse_args, {str(each.metavar): each.nargs for each in self.params}
        before = "--" if "SESSION" in metavars else "--session" if "ID" in metavars else None

        def parse(args: list[str]) -> Any:
            others, is_last = [each for each in args if each != LAST], LAST in args
            if metavars.get("SESSION") != 1:
                return read([*others, before, LAST] if is_last and before else args)
            values, rest, order = read(others)
            self._name_session(values, rest, is_last=is_last)
            return values, rest, order

        parser.parse_args = parse
        return parser

    def _arguments(self) -> list[Any]:
        return [each for each in self.params if each.param_type_name == "argument"]

    def _name_session(self, values: dict[str, Any], rest: list[str], *, is_last: bool) -> None:
        """Put the last session, and a store that is not given, among the values of the arguments."""
        names, metavars = zip(*((str(each.name), each.metavar) for each in self._arguments()), strict=True)
        given = [values[each] for each in names if isinstance(values.get(each), str)] + rest
        has_room = len(given) + is_last < len(names)
        takes_store = names[0] != "file"
        if has_room and (takes_store and _is_session(given[0]) if given else is_last):
            given.insert(0, DEFAULT_STORE if takes_store else "-")
        if is_last:
            given.insert(metavars.index("SESSION"), LAST)
        values.update(zip(names, given, strict=False))
        rest[:] = given[len(names) :]


def _is_session(text: str) -> bool:
    """True if an argument does not name a place of sessions, but the store of ``planning run`` is there."""
    from session.address import is_address  # --help needs no sessions

    path = Path(text)
    is_path = "/" in text or path.suffix in _SUFFIXES or path.is_file() or path.is_fifo()
    return text != "-" and not is_path and not is_address(text) and os.path.lexists(DEFAULT_STORE)
