"""Prompts: sections with text from typed parameters and with tools, joined into one numbered text."""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from types import NoneType
from typing import Any, Generic, get_args

import attrs

from planning.tools.tool import Tool
from session import PromptRendered, Session

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
        """True if the section takes part.

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


@attrs.frozen
class RenderedPrompt:
    """The rendered prompt, as a model gets it.

    Attributes:
        text: The markdown.
        tools: The tools of its enabled sections, in order.
    """

    text: str
    tools: tuple[Tool, ...] = ()


class Prompt:
    """Sections in order, under one namespace and key."""

    def __init__(
        self, *, ns: str, key: str, sections: Iterable[Section[Any]] = (), name: str | None = None
    ) -> None:
        """Define a prompt.

        Args:
            ns: A namespace, such as ``agents/background``.
            key: A key that is unique in it.
            sections: In the order in which they are read.
            name: The prompt's name for people; the key by default.
        """
        self.ns = ns
        self.key = key
        self.name = key if name is None else name
        self.sections = tuple(sections)

    def render(self, *params: object, session: Session | None = None) -> RenderedPrompt:
        """Make the text, numbering the enabled sections from 1.

        Args:
            params: One dataclass instance for each type of parameters that enabled sections take.
            session: Where to publish ``PromptRendered``; None publishes nothing. A subscriber that fails
                is logged, and the prompt is rendered.

        Raises:
            PromptRenderError: Parameters are missing, given twice, or taken by no section; a
                placeholder cannot be filled; two sections offer tools of one name.
        """
        params_by_type = self._by_type(params)
        parts: list[str] = []
        tools: dict[str, Tool] = {}
        for section in self.sections:
            values = params_by_type.get(section.params_type)
            if not section.is_enabled(values):
                continue
            section.require(values)
            parts.append(f"## {len(parts) + 1}. {section.title}\n\n{section.body(values)}".rstrip())
            for tool in section.tools():
                if tools.setdefault(tool.name, tool) is not tool:
                    raise PromptRenderError(f"two sections offer a tool named {tool.name}")
        rendered = RenderedPrompt("\n\n".join(parts), tuple(tools.values()))
        if session is not None:
            session.publish(PromptRendered(self.ns, self.key, rendered.text))
        return rendered

    def _by_type(self, params: Iterable[object]) -> dict[type | None, Any]:
        taken = {section.params_type for section in self.sections}
        by_type: dict[type | None, Any] = {}
        for instance in params:
            kind = type(instance)
            if not dataclasses.is_dataclass(instance) or isinstance(instance, type):
                raise PromptRenderError(f"parameters must be dataclass instances, got {instance!r}"[:200])
            if kind not in taken:
                raise PromptRenderError(f"no section of prompt {self.name!r} takes {kind.__name__}")
            if kind in by_type:
                raise PromptRenderError(f"{kind.__name__} was given twice; pass one instance")
            by_type[kind] = instance
        return by_type
