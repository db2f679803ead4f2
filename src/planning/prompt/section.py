"""Sections of a prompt: a title, text from typed parameters, and their tools."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import NoneType
from typing import Any, Generic, get_args

from planning.tools.tool import Tool

if sys.version_info >= (3, 13):
    from typing import TypeVar
else:  # before Python 3.13
    from typing_extensions import TypeVar

P = TypeVar("P", default=None)
Enabled = bool | Callable[..., bool]

_PLACEHOLDER = re.compile(r"(\$?)\$\{([^{}]*)(\}?)")


class PromptRenderError(ValueError):
    """A prompt cannot be rendered; the text names the section and what to change."""


class Section(ABC, Generic[P]):
    """One titled part of a prompt.

    ``Section[Params]`` takes its values from an instance of the dataclass ``Params``, which is
    given to ``Prompt.render``; a section without brackets takes none.
    """

    def __init__(self, *, title: str, enabled: Enabled = True) -> None:
        """Define the section.

        Args:
            title: Its heading.
            enabled: False, or a function that returns False, switches it off: then it renders
                nothing and offers no tool. A function with a parameter gets the section's
                parameters.
        """
        self.title = title
        self._enabled = enabled

    @property
    def params_type(self) -> type[P] | None:
        """The dataclass that the section is written for; None when it takes no parameters."""
        # Section[Params](...) leaves its arguments on the instance, class X(Section[Params]) on the class.
        bases = (getattr(self, "__orig_class__", None), *getattr(type(self), "__orig_bases__", ()))
        arguments = [argument for base in bases for argument in get_args(base)]
        return next(
            (argument for argument in arguments if isinstance(argument, type) and argument is not NoneType),
            None,
        )

    def is_enabled(self, params: P | None = None) -> bool:
        """Whether the section takes part.

        Raises:
            PromptRenderError: A function decides, from parameters that are missing.
        """
        if not callable(self._enabled):
            return self._enabled
        if not inspect.signature(self._enabled).parameters:
            return self._enabled()
        self.require(params)
        return self._enabled(params)

    def require(self, params: P | None) -> None:
        """Check that there are parameters for a section that takes some.

        Raises:
            PromptRenderError: There are none.
        """
        kind = self.params_type
        if kind is not None and params is None:
            raise PromptRenderError(
                f"section {self.title!r} takes {kind.__name__}; pass an instance to render()"
            )

    def tools(self) -> tuple[Tool, ...]:
        """The tools that the section offers while it is enabled."""
        return ()

    @abstractmethod
    def body(self, params: P | None) -> str:
        """The text below the heading.

        Raises:
            PromptRenderError: The parameters do not fit the text.
        """


class MarkdownSection(Section[P]):
    """Markdown with ``${name}`` placeholders, filled from the fields of a dataclass.

    ``$${name}`` is a literal ``${name}``. What a placeholder inserts is not expanded again.
    """

    def __init__(self, *, title: str, template: str, enabled: Enabled = True) -> None:
        """Define the section.

        Args:
            title: The heading.
            template: The text, with placeholders.
            enabled: See ``Section``.
        """
        super().__init__(title=title, enabled=enabled)
        self.template = template

    def body(self, params: P | None) -> str:
        """The template with its placeholders filled.

        Raises:
            PromptRenderError: A placeholder is malformed, or names no field of the parameters.
        """
        values = _values(params)

        def fill(match: re.Match[str]) -> str:
            escaped, name, closed = match.groups()
            if escaped:
                return match[0][1:]
            if not closed or not name.isidentifier():
                raise PromptRenderError(
                    f"section {self.title!r}: malformed placeholder {match[0][:40]!r}; write ${{name}},"
                    " or $${ for a literal ${"
                )
            if name not in values:
                known = ", ".join(values) or "none: write MarkdownSection[Params](...)"
                raise PromptRenderError(
                    f"section {self.title!r}: no value for placeholder ${{{name}}}; its fields are {known}"
                )
            return str(values[name])

        return _PLACEHOLDER.sub(fill, self.template).strip()


def _values(params: Any) -> dict[str, Any]:
    if params is None or not dataclasses.is_dataclass(params):
        return {}
    return {field.name: getattr(params, field.name) for field in dataclasses.fields(params)}
