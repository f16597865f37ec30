"""The composite defence: by Appendix C of seed 000 the disjunction, by its Section 5 a weighted sum.

The paper contradicts itself. Section 5 says "weighted ensemble, flag if sum w_j d_j > .5"; Appendix C calls that
deprecated and the disjunction of watermark, MEMSAD and proactive *definitive*. The appendix wins; the sum can be
chosen, under its own name, to compare. The appendix also speaks of a "four-way breakdown" of the *same* disjunction
with validation in it, which its formula does not have; here validation (the patterns) decides beside it.

What the sum does, worked out: the watermark's flag alone is .50, which is not above .50; validation and proactive
together are .50, too. So it flags only what carries no watermark and one thing more, and MEMSAD has no part in it.
"""

WEIGHTS = {"watermark": 0.50, "validation": 0.20, "proactive": 0.30}
THETA = 0.50


def weighted_sum(*, watermark: bool, validation: bool, proactive: bool) -> float:
    """Return the sum of Section 5, in [0, 1]; flagged where it is above THETA."""
    flags = {"watermark": watermark, "validation": validation, "proactive": proactive}
    return round(sum(WEIGHTS[name] for name, flag in flags.items() if flag), 2)
