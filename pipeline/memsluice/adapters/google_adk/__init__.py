"""A memory service and a plugin for Google's Agent Development Kit (ADK)."""

from memsluice.extras import require

require("`memsluice.adapters.google_adk`", "google-adk")

from memsluice.adapters.google_adk.plugin import GatedPlugin  # noqa: E402 - where it is missing, the extra is named
from memsluice.adapters.google_adk.service import GatedMemoryService  # noqa: E402

__all__ = ["GatedMemoryService", "GatedPlugin"]
