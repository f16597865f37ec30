"""What differs within writes, in the words that a terminal and a page show before many are signed."""

import pytest

from memsluice.operations.review.decide import Differences
from memsluice.operations.review.differing import told


@pytest.mark.parametrize(
    ("last_ms", "said"),
    [(0, "nothing but their content"), (400, "held within a second"), (7_200_000, "held within 2 h")],
)
def test_how_far_apart_writes_were_held_is_a_length_of_time(last_ms: int, said: str) -> None:
    """Also of writes that came in one burst: ``now`` is no length."""
    assert told(Differences({}, (3, 3), (0, last_ms))) == [said]
