"""The text of the strategies as MCP has it: a server's instructions, and its prompts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import attrs
import mcp_types as types
from mcp.shared.exceptions import MCPError

from planning.errors import show
from planning.policy.policy import PlanPolicy
from planning.prompt.planning_section import PlanningStrategy, section_body

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

__all__ = ["Strategies"]

_PROMPTS: Final = {
    "react": (PlanningStrategy.REACT, "Keep a plan: reason, act, observe, repeat."),
    "plan-act-reflect": (PlanningStrategy.PLAN_ACT_REFLECT, "Keep a plan: outline, act, reflect."),
    "goal-decompose-route-synthesise": (
        PlanningStrategy.GOAL_DECOMPOSE_ROUTE_SYNTHESISE,
        "Keep a plan: restate the goal, split it, choose tools, combine the results.",
    ),
}


@attrs.frozen
class Strategies:
    """The strategies of a server.

    Attributes:
        tools: The names of the planning tools that it offers; without any there is no text.
        policy: What the host demands of the plan.
    """

    tools: tuple[str, ...]
    policy: PlanPolicy | None

    def text(self, strategy: PlanningStrategy) -> str | None:
        """What a model reads of a strategy, which names only the tools that are offered."""
        if not self.tools:
            return None
        return section_body(strategy, attrs.evolve(self.policy or PlanPolicy(), tools=self.tools))

    async def list_prompts(self, _ctx: ServerRequestContext, _params: object) -> types.ListPromptsResult:
        """The strategies, when the planning tools are offered."""
        offered = _PROMPTS if self.tools else {}
        prompts = [types.Prompt(name=name, description=each[1]) for name, each in offered.items()]
        return types.ListPromptsResult(prompts=prompts)

    async def get_prompt(
        self, _ctx: ServerRequestContext, params: types.GetPromptRequestParams
    ) -> types.GetPromptResult:
        """A strategy's text."""
        strategy, description = _PROMPTS.get(params.name, (None, None))
        text = None if strategy is None else self.text(strategy)
        if text is None:
            raise MCPError(types.INVALID_PARAMS, f"no prompt is named {show(params.name)}; list them")
        message = types.PromptMessage(role="user", content=types.TextContent(type="text", text=text))
        return types.GetPromptResult(description=description, messages=[message])
