"""A vector store for mem0."""

from memsluice.extras import require

require("`memsluice.adapters.mem0`", "mem0")

from memsluice.adapters.mem0.attaching import attach  # noqa: E402 - where it is missing, the extra is named
from memsluice.adapters.mem0.store import GatedVectorStore  # noqa: E402

__all__ = ["GatedVectorStore", "attach"]
