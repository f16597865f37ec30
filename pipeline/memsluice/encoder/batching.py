"""How texts are put into batches: each distinct text once, sorted by length, under a token budget. Pure Python."""

from collections.abc import Iterator, Sequence
from itertools import groupby


def distinct(texts: Sequence[str]) -> tuple[list[str], list[int]]:
    """Return each text once, in order of first appearance, and for every input the index of its text among them."""
    index: dict[str, int] = {}
    places = [index.setdefault(text, len(index)) for text in texts]
    return list(index), places


def batches(lengths: Sequence[int], *, tokens_max: int) -> Iterator[list[int]]:
    """Yield lists of indices into ``lengths``, shortest first, each of at most ``tokens_max`` tokens in all.

    One item longer than ``tokens_max`` is a batch of its own. Ties keep input order, so the split is a function of
    the lengths alone.
    """
    batch: list[int] = []
    tokens = 0
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and tokens + lengths[index] > tokens_max:
            yield batch
            batch, tokens = [], 0
        batch.append(index)
        tokens += lengths[index]
    if batch:
        yield batch


def runs(lengths: Sequence[int]) -> list[tuple[int, int, int]]:
    """Return the runs of equal lengths of a packed batch as (first row, items, tokens per item).

    ``lengths`` must be sorted: an unsorted batch is still right, only slower.
    """
    found: list[tuple[int, int, int]] = []
    row = 0
    for tokens, group in groupby(lengths):
        items = sum(1 for _ in group)
        found.append((row, items, tokens))
        row += items * tokens
    return found
