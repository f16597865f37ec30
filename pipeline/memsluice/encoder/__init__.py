"""Text to unit vectors, by the encoder that a deployment names; the default is all-MiniLM-L6-v2, by a loop of our own.

Importing this package is cheap: torch and the tokenizer are imported by :func:`load_encoder`.
"""

from memsluice.encoder.base import Encoder, Precision, space_of_encoder
from memsluice.encoder.registry import ENCODER_VARIABLE, EncoderSetting, Loader, Running, load, register
from memsluice.encoder.weights import DIMENSIONS, MODEL_ID, REVISION

__all__ = [
    "DIMENSIONS",
    "ENCODER_VARIABLE",
    "MODEL_ID",
    "REVISION",
    "Encoder",
    "EncoderSetting",
    "Loader",
    "Precision",
    "Running",
    "load_encoder",
    "register",
    "space_of_encoder",
]


def load_encoder(name: str | None = None, *, threads: int | None = None, precision: Precision = "auto") -> Encoder:
    """Load and check a model, and return the encoder; the default one takes about 2 s, most of it importing torch.

    ``name`` is as :data:`ENCODER_VARIABLE`, which None asks (:mod:`memsluice.encoder.registry`). ``threads`` sets
    torch's intra-op threads *for the whole process*; None leaves them alone. ``precision`` is of the default encoder
    alone: "auto" computes by what is fastest on this machine (:mod:`.kernels`), in bfloat16 (cosine to float32 at
    least 0.9999) only where the CPU multiplies it natively; results are float32 either way.

    Unless torch is imported or ``OMP_WAIT_POLICY`` set already, torch's threads are told to sleep when they wait. By
    default they spin for milliseconds, many times in each call: beside a broker and a store on the same cores that made
    this encoder ten times slower.

    Raises :class:`~memsluice.errors.ConfigError` for a name that nothing has, and when the weights are missing or not
    the published ones.
    """
    setting = EncoderSetting.read() if name is None else EncoderSetting.parse(name)
    return load(setting, Running(threads, precision))
