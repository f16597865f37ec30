"""Triggered calibration, which only the lab has."""

import numpy as np
from tests.gate.test_memsad import judged

from memsluice.gate.detectors.memsad import scores as memsad
from memsluice.gate.policy.model import Mode
from memsluice_lab.triggered import triggered


def test_a_triggered_history_is_what_the_attacker_s_entry_lies_next_to() -> None:
    """By hand. Plain questions e1, e2; the trigger turns both to e3; poison is e3; reference (.6, .8, 0) and
    (.8, .6, 0). Plain: the poison scores 0, far below the line .8 + 2 x 0. Triggered: the references score 0, the
    poison 1, and it is found: the whole difference is the knowledge of e3.
    """
    e1, e2, e3 = np.eye(3)
    reference = np.array([[0.6, 0.8, 0.0], [0.8, 0.6, 0.0]])
    for history, found in ((np.array([e1, e2]), False), (np.array([e3, e3]), True)):
        scores = memsad.reference_scores(reference, history, Mode.MAX)
        assert judged(memsad.score(e3, history).s_max, scores).flagged is found
    assert triggered(["Where?", "When?"], "be safe") == ["Where? be safe", "When? be safe"]
