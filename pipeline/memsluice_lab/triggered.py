"""Triggered calibration (seed 000, Sections 3 and 6.3): an experiment, since **it needs what no defender has**.

The paper's TPR of 1.00 on AgentPoison is reached by calibrating on triggered queries ``q + T*``, T* being the trigger
that the attacker optimised. Whoever knows it needs no detector. Without it the same table has TPR 0.00. So the gate has
no such mode; this makes the history that the paper means, for those who want to see its figure.
"""

from collections.abc import Sequence


def triggered(questions: Sequence[str], trigger: str) -> list[str]:
    """Return every question with the attacker's trigger behind it."""
    return [f"{question} {trigger}" for question in questions]
