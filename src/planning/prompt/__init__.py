"""Prompts, their sections, and the planning section's strategies."""

from planning.prompt.planning_section import PlanningToolsSection
from planning.prompt.prompt import Prompt, RenderedPrompt
from planning.prompt.section import MarkdownSection, PromptRenderError, Section
from planning.prompt.strategies import PlanningStrategy

__all__ = [
    "Prompt",
    "Section",
    "MarkdownSection",
    "RenderedPrompt",
    "PromptRenderError",
    "PlanningToolsSection",
    "PlanningStrategy",
]
