"""Middleware for LangChain's agents."""

from memsluice.adapters.langchain.middleware import GatedMemoryMiddleware

__all__ = ["GatedMemoryMiddleware"]
