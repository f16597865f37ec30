"""Nothing unread lands: the embedded runtime's real core, over generated sequences of held injections and replays."""

from tests.golden.ring import WordEncoder

from memsluice_lab.figures.unread import Count, sequence

SEQUENCES = 6


def test_no_replay_after_the_calibration_moved_lands_what_nobody_read() -> None:
    """0 land, under either detector, dry, twice, or by the name of a run that did not show it; and there is something
    to let in: many would land by their findings alone, and do once the run that showed them is named."""
    count = Count()
    for seed in range(SEQUENCES):
        sequence(WordEncoder(), seed, count, held=12, honest=40)
    assert count.unread == 0
    assert count.replays >= 40
    assert count.stayed >= 40
    assert count.read > 20
