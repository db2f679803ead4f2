"""Prompts: sections joined into one numbered text, and their tools."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import attrs

from planning.prompt.section import PromptRenderError, Section
from planning.tools.tool import Tool
from session import PromptRendered, Session


@attrs.frozen
class RenderedPrompt:
    """What goes to a model.

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
        given = self._by_type(params)
        parts: list[str] = []
        tools: dict[str, Tool] = {}
        for section in self.sections:
            values = given.get(section.params_type)
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
        given: dict[type | None, Any] = {}
        for instance in params:
            kind = type(instance)
            if not dataclasses.is_dataclass(instance) or isinstance(instance, type):
                raise PromptRenderError(f"parameters must be dataclass instances, got {instance!r}"[:200])
            if kind not in taken:
                raise PromptRenderError(f"no section of prompt {self.name!r} takes {kind.__name__}")
            if kind in given:
                raise PromptRenderError(f"{kind.__name__} was given twice; pass one instance")
            given[kind] = instance
        return given
