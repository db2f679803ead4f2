"""Prompts, their sections, and the planning section's strategies."""

from typing import TYPE_CHECKING, Any

from planning.prompt.planning_section import PlanningToolsSection
from planning.prompt.prompt import Prompt, RenderedPrompt
from planning.prompt.section import MarkdownSection, PromptRenderError, Section
from planning.prompt.strategies import PlanningStrategy

if TYPE_CHECKING:
    from planning.prompt.tool_section import ToolAwarenessSection

__all__ = [
    "Prompt",
    "Section",
    "MarkdownSection",
    "RenderedPrompt",
    "PromptRenderError",
    "PlanningToolsSection",
    "PlanningStrategy",
    "ToolAwarenessSection",
]


def __getattr__(name: str) -> Any:
    if name != "ToolAwarenessSection":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from planning.prompt.tool_section import ToolAwarenessSection  # noqa: PLC0415 - few prompts have one

    return ToolAwarenessSection


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
