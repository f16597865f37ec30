"""Makes the vectors of the proactive defence's probes: ``python -m memsluice_lab.probes FILE``."""

import sys
from pathlib import Path

import numpy as np

from memsluice.encoder import load_encoder
from memsluice.gate.detectors.memsad.proactive import PROBES


def main(path: Path) -> None:
    """Write the probes' vectors, float16 of shape (16, 384), as the wire carries them."""
    np.save(path, np.asarray(load_encoder().encode(list(PROBES)), dtype=np.float16), allow_pickle=False)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
