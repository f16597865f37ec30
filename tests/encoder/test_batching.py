"""Batches are made from lengths alone."""

from hypothesis import given
from hypothesis import strategies as st

from memsluice.encoder.batching import batches, distinct, runs

LENGTHS = st.lists(st.integers(2, 256), max_size=200)


def test_each_text_once_and_every_place_kept() -> None:
    """Repeated texts cost one encoding, and each input finds its own."""
    assert distinct(["b", "a", "b", "b"]) == (["b", "a"], [0, 1, 0, 0])
    assert distinct([]) == ([], [])


@given(LENGTHS, st.integers(1, 1_000))
def test_batches_hold_everything_once_within_the_budget(lengths: list[int], tokens_max: int) -> None:
    """No text is lost or encoded twice, lengths never fall, and only a single oversized text exceeds the budget."""
    made = list(batches(lengths, tokens_max=tokens_max))
    order = [index for batch in made for index in batch]
    assert sorted(order) == list(range(len(lengths)))
    assert [lengths[index] for index in order] == sorted(lengths)
    for batch in made:
        assert len(batch) == 1 or sum(lengths[index] for index in batch) <= tokens_max


def test_batches_are_filled() -> None:
    """A batch takes the next text whenever it fits: lengths 2, 2, 3, 3 at 7 tokens make two batches, not four."""
    assert list(batches([3, 2, 3, 2], tokens_max=7)) == [[1, 3, 0], [2]]


@given(LENGTHS)
def test_runs_cover_every_row(lengths: list[int]) -> None:
    """The runs of equal lengths lie one after the other over all rows of the packed batch."""
    row = 0
    for first, items, length in runs(sorted(lengths)):
        assert first == row
        row += items * length
    assert row == sum(lengths)
