"""A store for LangGraph."""

from memsluice.adapters.langgraph.sessions import session_of_config
from memsluice.adapters.langgraph.store import GatedStore

__all__ = ["GatedStore", "session_of_config"]
