"""What a text says to do: a small head on the encoder's fourth layer, judged unit by unit.

Each token's state (384) is projected to 128; a unit is the greatest and the mean of its tokens' (256); two layers more
make its log-odds of giving an order. A text's are those of its worst unit: one line of a page is enough. Training, and
what it knows, are in ``memsluice_lab/wording`` and in the model card, ``gate/detectors/wording/model/MODEL_CARD.md``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from io import BytesIO
from zipfile import BadZipFile

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from memsluice.errors import ConfigError

FILE = "head.npz"
WHOLE_TOKENS_MAX = 90
"""A text of no more tokens is one more unit: what it asks for may be spread over its sentences."""
DOUBT = -3.0
"""A unit that shows no more in a window as long as a vector's is not read again in a short one.

With the models of version 7 (2026-11-30; docs/decisions/0034), of the training corpus without coded texts, at budgets
of .02, .05 and .16: of 1,127 hostile texts of 63 to 254 tokens
671, 889 and 1,070 are held by what short windows show; of these all but one, three and twelve are held so, too, and of
150 orders amid 600 to 950 tokens, held at .05, all but four. Two in ten of the tokens of honest texts, and four in ten
of hostile ones, are read again.
"""
SURE = 5.0
"""A text of which a unit shows as much at once is not read again. With the models of version 7 it is held either
way at budgets of .02 to .16 on the training corpus, but for two in a thousand hostile texts, and no honest one, that
short windows let pass at .02.
"""
ROWS_MIN = 16
"""Products of fewer rows are computed by kernels that add in another order."""
_MATRICES = ("project", "first", "second")


@dataclass(frozen=True, slots=True)
class Head:
    """``project`` (384, 128), ``first`` (256, 32), ``second`` (32, 1), each with a bias; float32."""

    weights: dict[str, tuple[Tensor, Tensor]]

    @torch.inference_mode()
    def logits(self, states: Tensor, tokens: Tensor, ends: Sequence[int]) -> Tensor:
        """Return the log-odds of units, shape (units,).

        ``states`` is (T, 384); the rows ``tokens`` are the units' tokens, one unit's behind the other's, and end at
        ``ends``. A token may be of two units: of a sentence's and of the whole text's. No unit is empty.
        """
        some = F.gelu(self._through("project", states))
        firsts = torch.tensor([0, *ends[:-1]])
        sizes = torch.tensor(ends) - firsts
        most = torch.segment_reduce(some.index_select(0, tokens), "max", lengths=sizes, axis=0)
        mean = F.embedding_bag(tokens, some, firsts, mode="mean")
        inner = F.gelu(self._through("first", torch.cat((most, mean), 1)))
        return self._through("second", inner)[:, 0]

    def _through(self, name: str, rows: Tensor) -> Tensor:
        weight, bias = self.weights[name]
        padded = F.pad(rows, (0, 0, 0, max(ROWS_MIN - len(rows), 0)))
        return (padded @ weight + bias)[: len(rows)]


def read(data: bytes) -> Head:
    """Read a head's file: for each matrix int8 levels, a float32 scale a column, and a bias. Raises ConfigError."""
    try:
        with np.load(BytesIO(data), allow_pickle=False) as stored:
            return Head(
                {
                    name: (
                        torch.from_numpy(stored[name].astype(np.float32) * stored[f"{name}_scale"]),
                        torch.from_numpy(stored[f"{name}_bias"].astype(np.float32)),
                    )
                    for name in _MATRICES
                }
            )
    except (OSError, EOFError, BadZipFile, ValueError, KeyError) as error:
        raise ConfigError(f"the wording model of the encoder cannot be read ({type(error).__name__})") from None


@cache
def shipped() -> Head:
    """Return the head that ships with the package, read once a process."""
    return read((resources.files("memsluice.encoder") / "model" / FILE).read_bytes())
