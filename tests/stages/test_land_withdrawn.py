"""*land* on withdrawals: what a command takes out of the store, in any order of delivery."""

from dataclasses import replace

from tests.stages.test_land import found, stage, store, why
from tests.stores.build import PARTITIONS, RING, T0, accepted

from memsluice.envelope.records import StoreRecord, accepted_from_bytes, stored_from_bytes, withdrawal_to_bytes
from memsluice.events.models import Zone
from memsluice.events.partition import partition_of
from memsluice.events.records import Record
from memsluice.topics.names import ACCEPTED, DEAD_LETTER

__all__ = ["store"]


def withdrawal(record: Record, version: int, tenant: str = "acme", **changes) -> Record:
    """Return the withdrawal of what an accepted record lands."""
    admission = accepted_from_bytes(RING, "acme", record.value or b"").admission
    gone = StoreRecord(
        object_id=admission.object_id, tenant=tenant, version=version, zone=admission.zone,
        event_id=admission.event_id, content_digest=admission.content_digest, expires_ms=None, withdrawn=True,
    )  # fmt: skip
    value = withdrawal_to_bytes(RING, "seal-1", replace(gone, **changes))
    return Record(ACCEPTED, partition_of("acme", PARTITIONS), version, b"acme", value, (), T0)


def test_a_withdrawn_object_is_gone_and_said_to_be(store) -> None:
    """Later or in the same batch: nothing is found, and the last store record says withdrawn, with the command's
    version."""
    first, second = accepted("acme", 1, "one"), accepted("acme", 2, "two")
    stage(store).process([first])
    (one,), (before,), (two,) = stage(store).process([withdrawal(first, 5), second, withdrawal(second, 6)])
    assert not stored_from_bytes(RING, "acme", before.value).withdrawn
    for output, version in ((one, 5), (two, 6)):
        stored = stored_from_bytes(RING, "acme", output.value)
        assert (stored.version, stored.withdrawn) == (version, True)
    assert found(store, "acme") == set()


def test_a_redelivered_withdrawal_and_one_of_nothing_say_the_same(store) -> None:
    """At least once in; a tenant that the store does not know is no reason to stop."""
    gone = withdrawal(accepted("acme", 1, "one"), 5)
    first, again = stage(store).process([gone]), stage(store).process([gone])
    assert first == again
    assert stored_from_bytes(RING, "acme", first[0][0].value).withdrawn


def test_a_withdrawal_takes_nothing_newer_away(store) -> None:
    """What was admitted for the object since then stays, and no store record says otherwise."""
    first, one = accepted("acme", 1, "one"), stage(store)
    one.process([accepted("acme", 1, "one")])
    assert one.process([withdrawal(first, 0)]) == [[]]
    assert found(store, "acme") == {"one"}


def test_what_is_no_withdrawal_of_this_tenant_is_a_dead_letter(store) -> None:
    """A record for another tenant, one that withdraws nothing, and one that nobody sealed change nothing."""
    first = accepted("acme", 1, "one")
    stage(store).process([first])
    foreign, none = withdrawal(first, 5, tenant="globex"), withdrawal(first, 5, withdrawn=False)
    forged = replace(none, value=b'{"withdrawal":{"payload":"","payloadType":"x","signatures":[]}}')
    for record in (foreign, none, forged, replace(none, value=b'{"withdrawal":7}')):
        ((letter,),) = stage(store).process([record])
        assert (letter.topic, why(letter)["reason"]) == (DEAD_LETTER, "seal")
    assert found(store, "acme", Zone.GUIDANCE) == {"one"}
