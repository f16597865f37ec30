"""A memory block for LlamaIndex."""

from memsluice.extras import require

require("`memsluice.adapters.llama_index`", "llama-index")

from memsluice.adapters.llama_index.block import GatedMemoryBlock  # noqa: E402 - names the extra where it is missing

__all__ = ["GatedMemoryBlock"]
