"""Middleware for LangChain's agents."""

from memsluice.extras import require

require("`memsluice.adapters.langchain`", "langchain")

from memsluice.adapters.langchain.middleware import GatedMemoryMiddleware  # noqa: E402 - names the extra where missing

__all__ = ["GatedMemoryMiddleware"]
