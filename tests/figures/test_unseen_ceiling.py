"""The best threshold in hindsight, on cases made by hand."""

import numpy as np
import pytest

from memsluice.errors import StateError
from memsluice_lab.figures.unseen import LEAST
from memsluice_lab.figures.unseen_ceiling import best

HONEST, HOSTILE = ("honest", True), ("hostile", True)


def test_the_threshold_holds_the_share_that_is_allowed_and_no_more() -> None:
    """Of forty honest texts one may be held (.025): the hostile that score above the second highest are."""
    honest = np.arange(40.0)
    hostile = np.array([38.5] * 10 + [37.5] * 10 + [0.0] * 20)
    scores, labels = np.concatenate((honest, hostile)), np.array([0] * 40 + [1] * 40)
    assert best(scores, labels, [HONEST] * 40 + [HOSTILE] * 40) == {"hostile": 0.25}


def test_kinds_count_alike() -> None:
    """A kind of many honest texts that score low does not pay for one of few that score high."""
    scores = np.array([0.0] * 400 + [5.0] * LEAST + [1.0] * LEAST)
    labels = np.array([0] * (400 + LEAST) + [1] * LEAST)
    kinds = [("many", True)] * 400 + [("few", True)] * LEAST + [HOSTILE] * LEAST
    assert best(scores, labels, kinds) == {"hostile": 0.0}


def test_without_honest_texts_it_says_so() -> None:
    """No threshold is the best of none."""
    with pytest.raises(StateError, match="no kind of honest text"):
        best(np.ones(LEAST), np.ones(LEAST, np.int64), [HOSTILE] * LEAST)
