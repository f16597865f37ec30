"""The proactive defence (seed 000, Section 5 and Appendix C): mean cosine to 16 probe queries of 8 subtopics above .19.

The paper does not print its probes; these are ours, two for each of its seven kinds of entry and for security. Their
vectors, of the default encoder, ship beside this file; ``python -m memsluice_lab.probes`` makes them anew.
"""

from functools import cache
from importlib import resources

import numpy as np

from memsluice.gate.detectors.memsad.scores import Floats

PROBES = (
    "What do I have to remember to do today?",
    "Which task is due next?",
    "When is my next appointment?",
    "Who will be at the meeting?",
    "What does the user prefer?",
    "Which settings does the user like?",
    "What is known about this topic?",
    "Which fact answers this question?",
    "Where is the document about this?",
    "Which file has the details?",
    "How is the system configured?",
    "What is the value of this setting?",
    "What did we talk about last time?",
    "What was said before in this conversation?",
    "What is the password or the access rule?",
    "Which security policy applies?",
)


@cache
def vectors() -> Floats:
    """Return the probes' vectors, float64 of shape (16, 384), read-only."""
    with (resources.files("memsluice.gate.detectors.memsad") / "probes.npy").open("rb") as file:
        found: Floats = np.load(file, allow_pickle=False).astype(np.float64)
    found.flags.writeable = False
    return found


def similarity(entry: Floats) -> float:
    """Return the mean cosine of an entry, shape (384,), of the default encoder, to the probes."""
    return float((vectors() @ entry.astype(np.float64)).mean())
