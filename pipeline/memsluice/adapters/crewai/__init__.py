"""A storage for CrewAI's memory."""

from memsluice.extras import require

require("`memsluice.adapters.crewai`", "crewai")

from memsluice.adapters.crewai.attaching import attach  # noqa: E402 - where it is missing, the extra is named
from memsluice.adapters.crewai.questions import embedder  # noqa: E402
from memsluice.adapters.crewai.storage import GatedStorage  # noqa: E402

__all__ = ["GatedStorage", "attach", "embedder"]
