"""What a person let in despite what it reads like, and what was let in for another reason."""

import pytest

from memsluice.envelope.verdict import Decision, Finding
from memsluice.gate.commands.let_in import let_in


@pytest.mark.parametrize(
    ("code", "detail", "expected"),
    [
        ("review.released", {"overridden": ["rates.exceeded", "wording.held"]}, True),
        ("review.released", {"overridden": ["instructions.match"]}, True),
        ("review.released", {"overridden": ["rates.exceeded"]}, False),
        ("review.released", {"overridden": []}, False),
        ("promotion.overridden", {"codes": ["wording.held"]}, True),
        ("promotion.overridden", {"codes": ["memsad.above"]}, False),
        ("wording.held", {}, False),
    ],
)
def test_what_was_held_for_its_rate_alone_was_not_let_in_for_what_it_says(code, detail, expected) -> None:
    """A reviewer who clears a backlog answers for what the gate had found: a later detector may find more."""
    assert let_in([Finding("landed.other", Decision.ACCEPT), Finding(code, Decision.ACCEPT, detail)]) is expected
