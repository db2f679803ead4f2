"""Prompts, their sections, and the planning section's strategies."""

from typing import TYPE_CHECKING

from planning.lazy import lazy_names
from planning.prompt.planning_section import PlanningStrategy, PlanningToolsSection
from planning.prompt.section import MarkdownSection, Prompt, PromptRenderError, RenderedPrompt, Section

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

__getattr__, __dir__ = lazy_names(__name__, globals(), {"ToolAwarenessSection": "tool_section"}, __all__)
