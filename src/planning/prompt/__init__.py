"""Prompts, their sections, and the planning section's strategies."""

from typing import TYPE_CHECKING

from planning.lazy import lazy_names
from planning.prompt.planning_section import PlanningToolsSection
from planning.prompt.section import MarkdownSection, PromptRenderError, Section
from planning.prompt.strategies import PlanningStrategy

if TYPE_CHECKING:
    from planning.prompt.prompt import Prompt, RenderedPrompt
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

_HOMES = {  # many programs have a prompt of their own
    "Prompt": "prompt",
    "RenderedPrompt": "prompt",
    "ToolAwarenessSection": "tool_section",
}

__getattr__, __dir__ = lazy_names(__name__, globals(), _HOMES, __all__)
