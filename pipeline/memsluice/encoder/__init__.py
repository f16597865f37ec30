"""Text to unit vectors: sentence-transformers/all-MiniLM-L6-v2, run by a loop of our own.

Importing this package is cheap: torch and the tokenizer are imported by :func:`load_encoder`.
"""

import os
import sys

from memsluice.encoder.base import Encoder, Precision
from memsluice.encoder.weights import DIMENSIONS, MODEL_ID, REVISION, find_weights
from memsluice.extras import needed

__all__ = ["DIMENSIONS", "MODEL_ID", "REVISION", "Encoder", "Precision", "load_encoder"]


def load_encoder(*, threads: int | None = None, precision: Precision = "auto") -> Encoder:
    """Load and check the weights, and return the encoder; about 2 s, most of it importing torch.

    ``threads`` sets torch's intra-op threads *for the whole process*; None leaves them alone. ``precision`` "auto"
    computes in bfloat16 where the CPU multiplies it natively (cosine to float32 at least 0.9999) and in float32
    elsewhere; results are float32 either way.

    Unless torch is imported or ``OMP_WAIT_POLICY`` set already, torch's threads are told to sleep when they wait. By
    default they spin for milliseconds, many times in each call: beside a broker and a store on the same cores that made
    this encoder ten times slower.

    Raises :class:`~memsluice.errors.ConfigError` when the weights are missing or not the published ones.
    """
    weights = find_weights()
    if "torch" not in sys.modules:
        os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    with needed("The encoder", "local-model"):
        from memsluice.encoder.loop import MiniLMEncoder

    return MiniLMEncoder(weights, threads=threads, precision=precision)
