"""Claude's memory tool."""

from memsluice.extras import require

require("`memsluice.adapters.anthropic`", "anthropic")

from memsluice.adapters.anthropic.tool import AsyncGatedMemoryTool, GatedMemoryTool  # noqa: E402 - names the extra

__all__ = ["AsyncGatedMemoryTool", "GatedMemoryTool"]
