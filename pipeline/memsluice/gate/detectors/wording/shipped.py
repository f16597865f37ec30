"""The model that ships with the package: the only file of the detector that reads one."""

from functools import cache
from hashlib import sha256
from importlib import resources
from io import BytesIO
from zipfile import BadZipFile

import numpy as np

from memsluice.errors import StateError
from memsluice.gate.detectors.wording.classifier import Classifier, Tail
from memsluice.gate.detectors.wording.tokens import BITS

FILE = "classifier.npz"


def read(data: bytes) -> Classifier:
    """Read a model file. Raises StateError where it is none: int8 ``weights``, ``scale`` and
    ``bias``, the four numbers of ``mix``, and the tails."""
    try:
        with np.load(BytesIO(data), allow_pickle=False) as stored:
            weights = stored["weights"].astype(np.float32) * np.float32(stored["scale"])
            bias = float(stored["bias"])
            of_head, of_grams, of_units, beside = (float(one) for one in stored["mix"])
            shares, at, alone = (tuple(stored[name].tolist()) for name in ("shares", "tail", "tail_alone"))
    except (OSError, EOFError, BadZipFile, ValueError, KeyError) as error:
        raise StateError(f"the detector's model cannot be read ({type(error).__name__})") from None
    if weights.shape != (1 << BITS,):
        raise StateError(f"the detector's model has {weights.shape} weights, {1 << BITS} expected")
    return Classifier(
        weights,
        bias,
        sha256(data).hexdigest()[:16],
        (of_head, of_grams, of_units, beside),
        Tail(shares, at),
        Tail(shares, alone),
    )


@cache
def shipped() -> Classifier:
    """Return the model that ships with the package, read once a process."""
    return read((resources.files("memsluice.gate.detectors.wording") / "model" / FILE).read_bytes())
