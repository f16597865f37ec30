"""A causal model of the library ``transformers`` as :class:`.paths.Model`."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from memsluice.recall.contamination.divergence import LogProbabilities


class TransformersModel:
    """``model`` is an ``AutoModelForCausalLM`` in evaluation mode; ``encode`` gives a text's tokens; ``end`` is the
    token that ends an answer, None where there is none."""

    def __init__(self, model: Any, encode: Callable[[str], Sequence[int]], end: int | None = None) -> None:
        self._model = model
        self._encode = encode
        self._end = end

    def answer(self, prompt: str, length: int) -> Sequence[int]:
        """Return the tokens of the likeliest answer, decoded greedily; the end token is left out."""
        given, found, kept = self._ids(self._encode(prompt)), list[int](), None
        with torch.inference_mode():
            while len(found) < length:
                out = self._model(input_ids=given, past_key_values=kept, use_cache=True)
                token = int(out.logits[0, -1].argmax())
                if token == self._end:
                    break
                found.append(token)
                given, kept = self._ids([token]), out.past_key_values
        return found

    def log_probabilities(self, prompt: str, answer: Sequence[int]) -> LogProbabilities:
        """Return the logarithms of the next token's probabilities along an answer, shape (T, V)."""
        before = list(self._encode(prompt))
        with torch.inference_mode():
            logits = self._model(input_ids=self._ids([*before, *answer])).logits[0]
            along = logits[len(before) - 1 : len(before) - 1 + len(answer)]
            found: LogProbabilities = along.double().log_softmax(-1).cpu().numpy()
        return found

    def _ids(self, tokens: Sequence[int]) -> torch.Tensor:
        return torch.tensor([list(tokens)], device=self._model.device)
