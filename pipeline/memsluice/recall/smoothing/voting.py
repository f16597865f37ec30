"""What several runs say together: the verdict of more than half of them, or (to show why not) their commonest string.

Answers that say the same in other words are one verdict and many strings. An attacker's entry makes the runs that are
shown it say the very same sentence, while honest runs phrase theirs anew: counted by string, that consistent minority
wins (seed 003). Counted by verdict it is what it is, a minority.
"""

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum


class Verdict(StrEnum):
    """What a judge says of one answer (seed 003, Algorithm 1)."""

    CORRECT = "correct"
    MALICIOUS = "malicious"
    NEITHER = "neither"


def by_verdict(verdicts: Sequence[Verdict]) -> Verdict | None:
    """Return the verdict of more than half of the answers; None where no verdict has so many."""
    if not verdicts:
        return None
    verdict, votes = Counter(verdicts).most_common(1)[0]
    return verdict if 2 * votes > len(verdicts) else None


def by_string(answers: Sequence[str]) -> str | None:
    """Return the commonest answer, case and spaces apart, of equally common ones the first; None for no answer.

    The paper's counter-example, not for use: see the module.
    """
    if not answers:
        return None
    plain = [" ".join(answer.casefold().split()) for answer in answers]
    return answers[plain.index(Counter(plain).most_common(1)[0][0])]
