"""A store for LangGraph."""

from memsluice.extras import require

require("`memsluice.adapters.langgraph`", "langgraph")

from memsluice.adapters.langgraph.sessions import session_of_config  # noqa: E402
from memsluice.adapters.langgraph.store import GatedStore  # noqa: E402 - where it is missing, the extra is named

__all__ = ["GatedStore", "session_of_config"]
