"""The books of a run on the real stack: what must be in the store in the end."""

from tests.envelope.made import made

from memsluice.envelope.verdict import Verdict, Withdrawal
from memsluice.events.models import Zone
from memsluice_lab.figures.ledger import Ledger


def verdict(offset: int, object_id: str | None, *withdraws: str) -> Verdict:
    """Return what the ledger reads of a verdict: the object it asks for, and those that it takes out."""
    gone = tuple(Withdrawal(one, Zone.GUIDANCE, "e0", "") for one in withdraws)
    return made(sealed_offset=offset, object_id=object_id, zone=Zone.GUIDANCE, withdraws=gone)


def test_what_look_back_takes_out_is_not_missed_and_must_be_gone() -> None:
    """An object that a later recall withdraws is no loss; still in the store, it is one too many."""
    found = [verdict(1, "a"), verdict(2, "b"), verdict(3, None, "a")]
    ledger = Ledger(verdicts={("memory.events.v1", 0, number): one for number, one in enumerate(found)})
    kept, gone = ("acme", Zone.GUIDANCE, "b"), ("acme", Zone.GUIDANCE, "a")
    assert ledger.expected() == {kept: 2}
    assert ledger.taken_out() == 1
    ledger.stored, ledger.stored_count = {kept: 2}, 1
    assert ledger.lost([]) == []
    assert ledger.doubled() == 0
    ledger.stored_count = 2
    assert ledger.doubled() == 1
    ledger.verdicts["memory.events.v1", 0, 9] = verdict(4, "a")
    assert ledger.expected() == {kept: 2, gone: 4}
    assert ledger.lost([]) == [f"{gone} lacks version 4, has None"]
