"""Which of MEMSAD's scores is compared: what a policy says, apart from the arithmetic, which few who read one need."""

from enum import StrEnum


class Mode(StrEnum):
    """Which score is compared with the threshold."""

    MAX = "max"
    MEAN = "mean"
    COMBINED = "combined"
