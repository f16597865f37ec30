"""Nothing unread lands: the embedded runtime's real core, over generated sequences of held injections and replays."""

import pytest
from tests.golden.ring import WordEncoder

from memsluice_lab.figures.unread import DETECTORS, Count, Detector, sequence

SEQUENCES = 6


@pytest.mark.parametrize("detector", DETECTORS)
def test_no_replay_after_the_calibration_moved_lands_what_nobody_read(detector: Detector) -> None:
    """0 land, under either detector, dry, twice, or by the name of a run that did not show it; and there is something
    to let in: many would land by their findings alone, and do once the run that showed them is named."""
    count = Count()
    for seed in range(SEQUENCES):
        sequence(WordEncoder(), seed, count, detector, held=12, honest=40)
    assert count.unread == 0
    assert count.replays >= 40
    assert count.stayed >= 40
    assert count.read > 20
