"""The fuzzy form of query coverage that the detector does without, as its figure measures it."""

import pytest

from memsluice.gate.detectors.wording.text import words
from memsluice_lab.figures.fuzzy import covered

FAR = "Ana parks the blue car in the yard behind the house. " * 3


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("On Monday the alarm company will come to the harbour office.", 1.0),
        ("The company has a new alarm.", 2 / 4),
        ("Ana parks the blue car in the yard.", 0.0),
        (f"Alarm. {FAR} The company will come on Monday.", 3 / 4),
    ],
)
def test_a_question_is_covered_by_its_longer_words_near_each_other_in_any_order(text: str, share: float) -> None:
    """Of alarm, company, come, monday what lies within twice the question's length counts; what is farther does not."""
    assert covered(words("the alarm company: come on Monday"), words(text)) == share


def test_a_question_of_few_longer_words_covers_nothing() -> None:
    """Two words lie near each other in many texts."""
    assert covered(words("who has the blue car"), words("ana has the blue car")) == 0
