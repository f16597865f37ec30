"""Run hooks and tools for the OpenAI Agents SDK."""

from memsluice.extras import require

require("`memsluice.adapters.openai_agents`", "openai-agents")

from memsluice.adapters.openai_agents.hooks import GatedRunHooks  # noqa: E402 - names the extra where it is missing

__all__ = ["GatedRunHooks"]
