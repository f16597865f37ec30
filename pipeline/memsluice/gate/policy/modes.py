"""Which of MEMSAD's scores is compared: what a policy says, apart from the arithmetic, so that whoever reads a policy
does not load Numba.
"""

from enum import StrEnum


class Mode(StrEnum):
    """Which score is compared with the threshold."""

    MAX = "max"
    MEAN = "mean"
    COMBINED = "combined"
