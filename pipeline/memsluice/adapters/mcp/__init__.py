"""A memory server for any MCP client."""

from memsluice.extras import require

require("`memsluice.adapters.mcp`", "mcp")

from memsluice.adapters.mcp.callers import Person  # noqa: E402 - where it is missing, the extra is named
from memsluice.adapters.mcp.reading import open_reading_gate  # noqa: E402
from memsluice.adapters.mcp.server import memory_server  # noqa: E402
from memsluice.adapters.mcp.tokens import AUDIENCE, RegistryTokens, SignedRequests  # noqa: E402

__all__ = ["AUDIENCE", "Person", "RegistryTokens", "SignedRequests", "memory_server", "open_reading_gate"]
