"""A guardrail for LiteLLM's proxy."""

from memsluice.extras import require

require("`memsluice.adapters.litellm`", "litellm")

from memsluice.adapters.litellm.guardrail import GatedGuardrail  # noqa: E402 - where it is missing, the extra is named

__all__ = ["GatedGuardrail"]
