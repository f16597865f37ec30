"""Who hears what became of which event: at once, after waiting, after a restart, and never another's."""

import asyncio
import itertools
import threading
from dataclasses import replace
from time import monotonic

import pytest
from tests.ingest_service.place import serving
from tests.patience import HANG_S, until

from memsluice.envelope.registry import Role
from memsluice.errors import BrokerUnavailable
from memsluice.events.partition import partition_of
from memsluice.events.records import Record
from memsluice.ingest_service import ledger as ledgers
from memsluice.ingest_service.ledger import Ledger
from memsluice.ingest_service.status import READERS
from memsluice.keystore.store import issue_credential
from memsluice.memory.outcome import Outcome, Status
from memsluice.topics.names import AUDIT, PARTITIONS

HERE = partition_of("acme", 8)


def test_another_credentials_event_is_none(service, place) -> None:
    """Of the same tenant, of another tenant, or of nobody: one answer to the letter, so that nobody learns which ids
    there are; an operator of the tenant sees all of it."""
    accepted = service.write(place.ours, key="mine")
    service.status(accepted, place.ours)
    url = accepted.json()["url"]
    nobodys = service.ask("GET", "/v1/events/nobodys?tenant=acme", place.other)
    for credential in (place.other, place.theirs):
        refused = service.ask("GET", url, credential)
        assert (refused.status_code, refused.json()) == (404, nobodys.json())
    assert service.status(accepted, place.operator)["status"] == "landed"


def test_how_soon_the_answer_comes_tells_nobody_of_anothers_event(service, place) -> None:
    """Who waits is told that there is none after the same time, whether there is none or it is another's."""
    accepted = service.write(place.ours, key="timed")
    service.status(accepted, place.ours)
    for url in (accepted.json()["url"], "/v1/events/nobodys?tenant=acme"):
        began = monotonic()
        assert service.ask("GET", f"{url}&wait=0.3", place.other).status_code == 404
        assert monotonic() - began >= 0.3


def test_before_its_place_is_known_a_verdict_is_nobodys(service, place) -> None:
    """What is heard of an id that another one published is not shown to who publishes the same id just now."""
    taken, new = service.ledger.begin(("acme", "contested"), place.other.kid, "something else")
    assert new
    service.ledger.waiting.heard(Outcome("contested", Status.HELD, place=("t", 0, 0)), tenant="acme")
    assert taken.outcome.done()
    assert service.ask("GET", "/v1/events/contested?tenant=acme", place.other).status_code == 404


def test_who_waits_is_told_when_it_is_decided(service, place) -> None:
    """A long poll ends with the outcome; before, the answer is accepted and claims nothing."""
    service.waits = True
    accepted = service.write(place.ours, key="later")
    assert service.status(accepted, place.ours, wait=0)["status"] == "accepted"
    found = []
    waiting = threading.Thread(target=lambda: found.append(service.status(accepted, place.ours, wait=20)))
    waiting.start()
    service.decide()
    waiting.join(HANG_S)
    assert found[0]["status"] == "landed"


def test_a_service_that_did_not_take_it_reads_the_verdict(service, place) -> None:
    """Another instance, or the same after a restart, finds the verdict in the audit and shows it to its owner alone."""
    accepted = service.write(place.ours, "Ada sings.", key="song")
    first = service.status(accepted, place.ours)
    with serving(place) as restarted:
        assert restarted.status(accepted, place.ours) == first
        assert restarted.ask("GET", accepted.json()["url"], place.other).status_code == 404
    with serving(place, heard=False) as forgetful:
        refused = forgetful.ask("GET", accepted.json()["url"], place.ours)
        assert (refused.status_code, refused.json()["code"]) == (404, "unknown_event")


def test_a_verdict_that_cannot_be_read_is_not_made_up(service, place, monkeypatch) -> None:
    """While the broker is away the status of what another instance took is 503, and nobody is told that it is unknown;
    who has much looked up waits alone."""
    accepted = service.write(place.ours, "Ada dances.", key="dance")
    service.status(accepted, place.ours)
    with serving(place) as restarted:

        def away(_partition: int, _offset: int) -> None:
            raise BrokerUnavailable("gone")

        statuses = restarted.serving.statuses
        statuses._read = away
        refused = restarted.ask("GET", accepted.json()["url"], place.ours)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert "read" in refused.json()["detail"]
        monkeypatch.setattr("memsluice.ingest_service.status.LOOKUPS_MAX", 0)
        assert restarted.ask("GET", accepted.json()["url"], place.ours).status_code == 429


class Hanging:
    """Reads the audit, and hangs at the verdict on one event until ``back`` is set."""

    def __init__(self, place, event_id: str) -> None:
        self.back, self.began, self.read = threading.Event(), threading.Semaphore(0), 0
        self._place, self._id = place, event_id.encode()

    def __call__(self, partition: int, offset: int) -> Record | None:
        """Return a record of the audit."""
        found = self._place.audit(partition, offset)
        if found is not None and dict(found.headers)["memsluice-event-id"] == self._id:
            self.read += 1
            self.began.release()
            self.back.wait(2 * HANG_S)
        return found


def test_a_read_that_hangs_holds_up_nobody_else(service, place) -> None:
    """While one verdict cannot be read, who asks for another one has it, also of the same partition."""
    hangs, fine = (service.write(place.ours, f"Ada {does}.", key=does) for does in ("rows", "runs"))
    _, first = (service.status(one, place.ours) for one in (hangs, fine))
    with serving(place) as restarted:
        restarted.serving.statuses._read = slow = Hanging(place, hangs.json()["id"])
        found: list[int] = []
        asking = threading.Thread(
            target=lambda: found.append(restarted.ask("GET", hangs.json()["url"], place.operator).status_code)
        )
        asking.start()
        try:
            assert slow.began.acquire(timeout=HANG_S)
            assert restarted.status(fine, place.ours) == first
            assert not found
        finally:
            slow.back.set()
        asking.join(HANG_S)
    assert found == [200]


def test_while_all_reads_of_a_partition_hang_the_others_are_read(service, place, monkeypatch) -> None:
    """Who waits behind them is told to ask again, and what he gave up is not read afterwards; a tenant of another
    partition has its answer."""
    accepted = service.write(place.ours, "Ada rows.", key="row")
    first = service.status(accepted, place.ours)
    monkeypatch.setattr("memsluice.ingest_service.status.LOOKUP_S", 0.2)
    with serving(place) as restarted:
        statuses = restarted.serving.statuses
        statuses._read = slow = Hanging(place, accepted.json()["id"])
        try:
            asking = itertools.cycle((place.ours, place.operator))

            def all_hang() -> bool:
                assert restarted.ask("GET", accepted.json()["url"], next(asking)).status_code == 503
                return slow.read == READERS  # a thread that had no turn in time reads nothing, and is asked again

            until(all_hang, "every reader of the partition to hang")
            assert restarted.ask("GET", accepted.json()["url"], place.ours).status_code == 503
            assert slow.read == READERS
            monkeypatch.setattr("memsluice.ingest_service.status.LOOKUP_S", HANG_S)
            elsewhere = asyncio.run(statuses._verdict("globex", (HERE + 1) % PARTITIONS, 0, "somebody"))
            assert elsewhere is None  # it was read, and there is none
        finally:
            slow.back.set()
        assert restarted.status(accepted, place.ours) == first
        assert slow.read == READERS + 1


def test_what_nobody_saw_land_is_not_said_to_have_landed(service, place) -> None:
    """Of a verdict alone it is told that the gate let it in, and no more."""
    accepted = service.write(place.ours, "Ada paints.", key="paint")
    service.status(accepted, place.ours)
    with serving(place, heard=False) as deaf:
        for record in place.records(AUDIT, HERE):
            deaf.ledger.take(record)
        told = deaf.status(accepted, place.ours, wait=0)
    assert told["status"] == "accepted"
    assert "let it in" in told["words"]


def test_a_forged_verdict_tells_nobody_anything(service, place) -> None:
    """What the gate's seal does not hold over is as if it were not there."""
    service.waits = True
    accepted = service.write(place.ours, "Ada draws.", key="draw")
    place.decide()
    (true,) = [
        one for one in place.records(AUDIT, HERE)
        if dict(one.headers)["memsluice-event-id"] == accepted.json()["id"].encode()
    ]  # fmt: skip
    service.ledger.take(replace(true, value=(true.value or b"").replace(b'"sig":"', b'"sig":"A')))
    assert service.status(accepted, place.ours, wait=0)["status"] == "accepted"
    service.hear()
    assert service.status(accepted, place.ours)["status"] == "landed"


def test_a_credential_of_several_tenants_says_whose(service, place) -> None:
    """An id is one tenant's: without the tenant it could be any one's."""
    several = place.keys.credential(issue_credential(place.keys, Role.PRODUCER, "agent", ["acme", "globex"])[0].kid)
    place.keys.refresh()
    accepted = service.write(several, tenant="acme", key="several")
    assert service.status(accepted, several)["status"] == "landed"
    refused = service.ask("GET", f"/v1/events/{accepted.json()['id']}", several)
    assert (refused.status_code, refused.json()["field"]) == (400, "tenant")
    assert service.write(several).json()["field"] == "tenant"


def test_what_is_known_is_bounded(place, monkeypatch) -> None:
    """A process that took or heard a million events knows the latest of them, and waits for no others."""
    monkeypatch.setattr(ledgers, "TAKEN_MAX", 3)
    monkeypatch.setattr(ledgers, "POSITIONS_MAX", 3)
    ledger = Ledger(place.keys.keyring)
    for number in range(9):
        ledger.begin(("acme", f"e-{number}"), "kid", "said")
    assert list(ledger._taken) == [("acme", f"e-{number}") for number in (6, 7, 8)]
    assert len(ledger.waiting._expected) == 3
    for record in place.records(AUDIT, HERE):
        ledger.take(record)
    assert len(ledger._told[HERE]) == 3


def test_a_dead_letter_is_told(service, place) -> None:
    """What *seal* refuses after all, as of a key that was revoked meanwhile, is no silence."""
    from memsluice.events.names import DEAD_LETTER_HEADER

    service.waits = True
    accepted = service.write(place.ours, "Ada swims.", key="swim").json()
    where = accepted["place"]
    said = (
        f'{{"reason": "revoked_key", "topic": "{where["topic"]}", "partition": {where["partition"]}, '
        f'"offset": {where["offset"]}}}'
    )
    letter = Record("memory.dead-letter.v1", HERE, 0, b"acme", b"?", ((DEAD_LETTER_HEADER, said.encode()),), 0)
    service.ledger.take(letter)
    found = service.ask("GET", accepted["url"], place.ours).json()
    assert (found["status"], found["reasons"][0]["code"]) == (Status.DEAD_LETTER, "revoked_key")
    service.decide()


@pytest.mark.parametrize("wait", ["-1", "31", "x"])
def test_nobody_waits_for_ever(service, place, wait) -> None:
    """Waiting has an upper bound, and what is no number of seconds is told."""
    refused = service.ask("GET", f"/v1/events/e?wait={wait}", place.ours)
    assert (refused.status_code, refused.json()["field"]) == (400, "wait")
