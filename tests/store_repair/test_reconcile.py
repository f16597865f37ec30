"""The reconciler and *land*'s sweep: what differs from the log is found by its kind, and mended; embedded and real."""

from dataclasses import replace
from json import dumps
from uuid import uuid4

import pytest
from tests.recall.test_recaller import Told, recaller
from tests.stages.test_land import found
from tests.stages.test_land_floor import gone
from tests.store_repair.sites import EmbeddedSite, StackSite
from tests.stores.build import PARTITIONS, RING, STRANGER, T0, accepted, axis, entry

from memsluice.envelope.keys import Keyring, KeyState
from memsluice.envelope.records import stored_to_bytes
from memsluice.errors import AnswerTooLarge
from memsluice.events.models import Visibility, Zone
from memsluice.events.records import Output
from memsluice.stages.reconcile import STRETCH, Reconciler
from memsluice.stages.store_sweep import MENDED_AT_ONCE, StoreSweep
from memsluice.stores.log_index import LogIndex
from memsluice.topics.names import ACCEPTED, STORE

ENTRIES = 8
KEYLESS = Keyring([replace(key, kid="seal-2") if key.kid == "seal-1" else key for key in RING])
"""A keyring that lacks the seal key which everything was sealed with, and has another."""
REVOKED = KEYLESS.with_key(replace(RING.get("seal-1"), state=KeyState.REVOKED))


@pytest.fixture(params=["embedded", pytest.param("stack", marks=pytest.mark.stack)])
def site(request, tmp_path):
    """A tenant with eight entries that landed, on the embedded components and on the real ones."""
    tenant = f"mend-{uuid4().hex[:10]}"
    if request.param == "embedded":
        made = EmbeddedSite(tenant, tmp_path)
    else:
        made = StackSite(tenant, request.getfixturevalue("stack"))
    made.entries = [made.land(n, f"c{n}", axis(n)) for n in range(ENTRIES)]
    yield made
    made.close()


def lying(site, number: int):
    """Return an entry as it lies in the store."""
    stored = site.entries[number]
    return site.store.held(site.tenant, stored.zone, [stored.object_id])[stored.object_id]


def harms(site) -> dict[str, str]:
    """Do to the entries what somebody with the store's key could; return each object's kind of difference."""
    ids = [stored.object_id for stored in site.entries]
    site.store.delete(site.tenant, Zone.GUIDANCE, [ids[0]])
    site.write_past(replace(lying(site, 1), expires_ms=-1))
    site.write_past(replace(lying(site, 2), owner="bo"))
    site.write_past(replace(lying(site, 3), content="pay mallory"))
    site.write_past(replace(lying(site, 4), vector=axis(300)))
    site.write_past(replace(entry(site.tenant, "forged", ring=STRANGER, version=2**40), object_id=ids[5]))
    beside = replace(entry(site.tenant, "planted", axis(0), ring=STRANGER), object_id=str(uuid4()))
    site.write_past(beside)
    moved = replace(lying(site, 6), object_id=str(uuid4()))
    site.write_past(moved)
    return {
        ids[0]: "missing",
        ids[1]: "property",
        ids[2]: "property",
        ids[3]: "content",
        ids[4]: "vector",
        ids[5]: "planted",
        beside.object_id: "planted",
        moved.object_id: "planted",
    }


def test_a_store_that_says_what_the_log_says_is_left_alone(site) -> None:
    """Nothing differs, nothing is counted, nothing is written."""
    assert site.differs(Zone.GUIDANCE) == {}
    assert site.swept() == {}
    assert found(site.store, site.tenant) == {f"c{n}" for n in range(ENTRIES)}


def test_whatever_was_done_to_the_store_is_found_by_its_kind_and_mended(site) -> None:
    """Deleted, hidden, changed, moved and planted objects: after one sweep the store says what was admitted."""
    harmed = harms(site)
    assert site.differs(Zone.GUIDANCE) == harmed
    counted = site.swept()
    assert counted == {"missing": 1, "property": 2, "content": 1, "vector": 1, "planted": 3, "repaired": 8}
    assert site.differs(Zone.GUIDANCE) == {}
    assert found(site.store, site.tenant) == {f"c{n}" for n in range(ENTRIES)}
    assert site.store.count(site.tenant, Zone.GUIDANCE) == ENTRIES
    assert site.swept() == {}


def test_expired_entries_leave_the_store(site) -> None:
    """What is over is not kept for ever: the sweep takes it out, and nothing else."""
    short = site.land(100, "short", axis(100), expires_ms=T0 + 50)
    site.now_ms = T0 + 50
    assert site.differs(Zone.GUIDANCE) == {short.object_id: "expired"}
    assert site.swept() == {"expired": 1, "repaired": 1}
    assert site.store.count(site.tenant, Zone.GUIDANCE) == ENTRIES


def test_a_withdrawn_entry_that_was_put_back_is_taken_out_again(site) -> None:
    """V2's other half: what a worker that was shut out wrote to the store after the withdrawal does not stay there."""
    record = accepted(site.tenant, 7, "c7", axis(7))
    there = lying(site, 7)
    assert site.take(gone(record, 20, site.tenant)).withdrawn
    site.write_past(there)
    assert site.differs(Zone.GUIDANCE) == {there.object_id: "withdrawn"}
    assert site.swept() == {"withdrawn": 1, "repaired": 1}
    assert site.store.count(site.tenant, Zone.GUIDANCE) == ENTRIES - 1


def test_an_older_version_that_was_put_back_gives_way_to_the_newer_one(site) -> None:
    """V4's other half: validly sealed, and old: the version that the log says lands again."""
    old = site.land(30, "old", axis(30), key="k")
    before = site.store.held(site.tenant, Zone.GUIDANCE, [old.object_id])[old.object_id]
    site.land(31, "new", axis(31), key="k")
    site.write_past(before)
    assert site.differs(Zone.GUIDANCE) == {old.object_id: "version"}
    site.swept()
    assert "new" in found(site.store, site.tenant)
    assert "old" not in found(site.store, site.tenant)


@pytest.mark.parametrize("site", ["embedded"], indirect=True)  # on a shared log, others' versions are ahead of 50
def test_what_is_on_its_way_is_left_alone(site) -> None:
    """Land writes to the store first and to the log then: what the log does not know yet is nobody's plant."""
    (outputs,) = site.stage.process([accepted(site.tenant, 50, "coming", axis(50))])
    fresh = LogIndex(lambda _ended: site.reader(STORE), lambda: RING)
    site.reconciler._log = fresh
    site.sweep._log = fresh
    assert site.swept() == {}
    assert "coming" in found(site.store, site.tenant)
    site.append(STORE, outputs[0])
    assert site.swept() == {}


def test_what_the_accepted_log_no_longer_has_is_left_and_told(site) -> None:
    """An entry older than that log can not be landed again: it is counted, and never made up."""
    stored = site.entries[0]
    site.store.delete(site.tenant, Zone.GUIDANCE, [stored.object_id])
    assert site.differs(Zone.GUIDANCE) == {stored.object_id: "missing"}
    site.reconciler._open_accepted = lambda _ended: _Empty()
    site.reconciler._accepted = None
    mended = site.reconciler.mend(site.tenant, Zone.GUIDANCE, [stored.object_id], search=True)
    assert (mended.removed, mended.landed) == ((), ())
    assert {one: kind.value for one, kind in mended.left.items()} == {stored.object_id: "missing"}
    assert site.swept() == {"missing": 1, "unrepaired": 1}


class _Empty:
    """An accepted log from which everything was deleted by its age."""

    def read(self, partition, from_offset=0):
        return iter(())


class _LastOnly:
    """A store log of which compaction left each object's last record."""

    def __init__(self, site) -> None:
        self.site = site

    def read(self, partition, from_offset=0):
        last = {record.key: record for record in self.site.reader(STORE).read(partition, from_offset)}
        return iter(sorted(last.values(), key=lambda record: record.offset))


def test_what_lands_while_a_store_is_built_anew_is_not_turned_back(site, monkeypatch) -> None:
    """An entry is revoked and another replaced while the accepted log is read: neither comes back as it was before."""
    site.take(accepted(site.tenant, 20, "before", axis(20), key="k"))
    builder = Reconciler(site.store, LogIndex(lambda _: site.reader(STORE), lambda: RING),
                         lambda _: site.reader(ACCEPTED), lambda: RING, PARTITIONS, lambda: site.now_ms)  # fmt: skip
    builder.look(site.tenant, Zone.GUIDANCE)
    site.store.drop(site.tenant)
    entries = builder._entries

    def meanwhile(*arguments):
        yield from list(entries(*arguments))
        site.take(gone(accepted(site.tenant, 1, "c1", axis(1)), 30, site.tenant))
        site.take(accepted(site.tenant, 31, "after", axis(20), key="k"))

    monkeypatch.setattr(builder, "_entries", meanwhile)
    assert builder.land_all(site.tenant) == ENTRIES - 1
    assert found(site.store, site.tenant) == {"after"} | {f"c{n}" for n in range(ENTRIES) if n != 1}
    assert site.differs(Zone.GUIDANCE) == {}


def test_an_entry_whose_record_says_no_place_is_searched_for(site) -> None:
    """Landed by an older version: a repair reads the whole partition of the accepted log for it."""
    stored = site.entries[0]
    value = stored_to_bytes(RING, "seal-1", replace(stored, place=None, scope=""))
    site.append(STORE, Output(STORE, accepted(site.tenant, 0).partition, stored.object_id.encode(), value))
    last = LogIndex(lambda _ended: _LastOnly(site), lambda: RING)  # as compaction leaves it
    site.reconciler._log = last
    site.store.delete(site.tenant, Zone.GUIDANCE, [stored.object_id])
    assert site.reconciler.mend(site.tenant, Zone.GUIDANCE, [stored.object_id]).left
    assert site.reconciler.mend(site.tenant, Zone.GUIDANCE, [stored.object_id], search=True).landed


def test_a_partition_longer_than_a_stretch_is_walked_whole(tmp_path) -> None:
    """Missing and planted objects are found at every place of a partition, whichever of the two sides is longer."""
    site = EmbeddedSite(f"mend-{uuid4().hex[:10]}", tmp_path)
    many = 2 * STRETCH + 30
    records = [accepted(site.tenant, n, f"c{n}", axis(n % 384)) for n in range(many)]
    placed = [site.append(ACCEPTED, record) for record in records]
    for outputs in site.stage.process(placed):
        site.append(STORE, outputs[0])
    ids = sorted(site.index.between(site.tenant, Zone.GUIDANCE, "", None, many))
    lost = ids[:300]  # more than a stretch without any object in it
    site.store.delete(site.tenant, Zone.GUIDANCE, lost)
    copy = site.store.held(site.tenant, Zone.GUIDANCE, [ids[-1]])[ids[-1]]
    planted = [replace(copy, object_id=f"{n:08x}-ffff-4000-8000-000000000000") for n in range(300)]
    site.store.upsert(planted)
    differs = site.differs(Zone.GUIDANCE)
    assert differs == {**dict.fromkeys(lost, "missing"), **{one.object_id: "planted" for one in planted}}
    assert site.swept() == {"missing": 300, "planted": 300, "repaired": 600}
    assert site.differs(Zone.GUIDANCE) == {}
    assert site.store.count(site.tenant, Zone.GUIDANCE) == many
    site.close()


@pytest.mark.parametrize("fits", [3, 1, 0])
def test_a_stretch_that_fits_into_no_answer_is_asked_for_with_fewer(tmp_path, monkeypatch, fits: int) -> None:
    """Down to one object, in few steps: each may have taken the store long. A store that calls one too large as well is
    not asked for ever."""
    site = EmbeddedSite(f"mend-{uuid4().hex[:10]}", tmp_path)
    ids = sorted(site.land(number, f"c{number}", axis(number)).object_id for number in range(7))
    asked, page = [], site.store.page

    def small(tenant, zone, after, limit):
        asked.append(limit)
        if limit > fits:
            raise AnswerTooLarge("planted")
        return page(tenant, zone, after, limit)

    monkeypatch.setattr(site.store, "page", small)
    site.store.delete(site.tenant, Zone.GUIDANCE, ids[4:5])
    if fits:
        assert site.differs(Zone.GUIDANCE) == {ids[4]: "missing"}
    else:
        with pytest.raises(AnswerTooLarge):
            site.differs(Zone.GUIDANCE)
    assert asked[:5] == [256, 64, 16, 4, 1]
    site.close()


def test_records_are_read_at_their_places_whatever_lies_between(tmp_path, monkeypatch) -> None:
    """Near ones in one reading, far ones each in its own, one that retention took away is passed over."""
    site = EmbeddedSite(f"mend-{uuid4().hex[:10]}", tmp_path)
    stored = [site.land(n, f"c{n}", axis(n)) for n in range(12)]
    asked: list[int] = []

    class Reading:
        def read(self, partition, from_offset=0):
            asked.append(from_offset)
            return iter([one for one in site.reader(ACCEPTED).read(partition, from_offset) if one.offset != 9])

    monkeypatch.setattr("memsluice.stages.reconcile.NEAR", 3)
    site.reconciler._accepted = Reading()
    lost = [stored[number].object_id for number in (1, 2, 7, 9, 11)]
    site.store.delete(site.tenant, Zone.GUIDANCE, lost)
    mended = site.reconciler.mend(site.tenant, Zone.GUIDANCE, lost)
    assert (sorted(mended.landed), list(mended.left)) == (sorted({*lost} - {lost[3]}), [lost[3]])
    assert asked == [1, 7]
    site.close()


def test_only_partitions_that_are_owned_are_swept(site) -> None:
    """Who does not land in a partition does not know what is on its way there, and changes nothing."""
    site.store.delete(site.tenant, Zone.GUIDANCE, [site.entries[0].object_id])
    own = accepted(site.tenant, 0).partition
    sweep = StoreSweep(site.reconciler, site.store, site.index, 8)
    sweep.owns({(own + 1) % 8})
    sweep.begin_round()
    while sweep.step(site.count):
        pass
    assert site.store.count(site.tenant, Zone.GUIDANCE) == ENTRIES - 1


def test_a_planted_object_over_a_shared_entry_of_the_other_zone_is_mended_too(site) -> None:
    """Both zones are swept: outside content is kept as data, and as it was admitted."""
    outside = site.land(60, "a page", axis(60), zone=Zone.EXTERNAL, visibility=Visibility.SHARED)
    there = site.store.held(site.tenant, Zone.EXTERNAL, [outside.object_id])[outside.object_id]
    site.write_past(replace(there, visibility="principal"))
    assert site.swept() == {"property": 1, "repaired": 1}
    assert found(site.store, site.tenant, Zone.EXTERNAL) == {"a page"}


def test_what_was_mended_is_found_again(site, encoder) -> None:
    """After the sweep a recall finds what had been hidden from it."""
    text = "Ana drinks green tea."
    vector = encoder.encode([text])[0]
    stored = site.land(70, text, vector)
    site.write_past(
        replace(site.store.held(site.tenant, Zone.GUIDANCE, [stored.object_id])[stored.object_id], owner="x")
    )
    asked = recaller(site.store, encoder, Told())
    who = {"agent": "helper", "principal": "ana", "session": "s-1"}
    assert text not in [one.content for one in asked.recall(site.tenant, "What does Ana drink?", k=20, **who).entries]
    site.swept()
    assert text in [one.content for one in asked.recall(site.tenant, "What does Ana drink?", k=20, **who).entries]


def test_what_the_store_does_not_take_is_not_called_too_old(tmp_path) -> None:
    """An entry that the log has and the store refuses to write is told as refused, and lands with a later round: nobody
    is advised to revoke it as one that is gone for good."""
    site = EmbeddedSite(f"mend-{uuid4().hex[:10]}", tmp_path)
    stored = site.land(0, "c0", axis(0))
    site.store.delete(site.tenant, Zone.GUIDANCE, [stored.object_id])
    site.store.read_only = True
    mended = site.reconciler.mend(site.tenant, Zone.GUIDANCE, [stored.object_id])
    assert (mended.landed, mended.refused, dict(mended.left)) == ((), (stored.object_id,), {})
    assert "unrepaired" not in site.swept()
    site.store.read_only = False
    assert site.reconciler.mend(site.tenant, Zone.GUIDANCE, [stored.object_id]).landed == (stored.object_id,)
    site.close()


def keyless(site, ring) -> Reconciler:
    """Return a reconciler whose home has this keyring."""
    index = LogIndex(lambda _ended: site.reader(STORE), lambda: ring)
    return Reconciler(site.store, index, lambda _ended: site.reader(ACCEPTED), lambda: ring, PARTITIONS,
                      lambda: site.now_ms)  # fmt: skip


@pytest.mark.parametrize("ring", [KEYLESS, REVOKED], ids=["missing", "revoked"])
def test_entries_whose_records_verify_no_more_are_left_as_they_are(site, ring) -> None:
    """The seal key is gone from this home, or was revoked: nobody can say what should lie there, and honest entries are
    not taken out. What the gate never admitted is removed, as ever."""
    ids = {stored.object_id for stored in site.entries}
    beside = replace(lying(site, 6), object_id=str(uuid4()))
    site.write_past(beside)
    over = replace(entry(site.tenant, "forged", ring=STRANGER, version=2**40), object_id=site.entries[5].object_id)
    site.write_past(over)
    site.reconciler = keyless(site, ring)
    planted, mine = {beside.object_id, over.object_id}, ids - {over.object_id}
    assert site.differs(Zone.GUIDANCE) == dict.fromkeys(mine, "unreadable") | dict.fromkeys(planted, "planted")
    mended = site.reconciler.mend(site.tenant, Zone.GUIDANCE, ids | planted, search=True)
    assert (set(mended.removed), mended.landed, set(mended.left)) == (planted, (), mine)
    assert found(site.store, site.tenant) == {f"c{n}" for n in range(ENTRIES) if n != 5}


def test_whoever_has_the_stores_key_alone_keeps_no_object_there(site) -> None:
    """An admission that names keys which nobody holds is no excuse where a record of it verifies, or there is none."""
    named = {"keyid": "nobody-1", "sig": "AAAA"}
    text = dumps({"payloadType": "application/vnd.memsluice.admission+json", "payload": "e30=", "signatures": [named]})
    site.write_past(replace(lying(site, 3), admission=text))
    site.write_past(replace(lying(site, 4), admission=text, object_id=str(uuid4())))
    assert sorted(site.differs(Zone.GUIDANCE).values()) == ["planted", "planted"]
    site.swept()
    assert found(site.store, site.tenant) == {f"c{n}" for n in range(ENTRIES)}


def test_what_is_certain_of_an_entry_is_done_whatever_was_written_behind_it(site) -> None:
    """A stranger with the broker's password writes behind the log's record of an entry: once its time is over, or
    where it was withdrawn before, it leaves the store all the same."""
    short = site.land(100, "short", axis(100), expires_ms=T0 + 50)
    there = lying(site, 7)
    site.take(gone(accepted(site.tenant, 7, "c7", axis(7)), 20, site.tenant))
    for stored in (short, site.entries[7]):
        said = stored_to_bytes(STRANGER, "seal-1", replace(stored, version=2**40))
        site.append(STORE, Output(STORE, accepted(site.tenant, 0).partition, stored.object_id.encode(), said))
    site.write_past(there)
    site.now_ms = T0 + 50
    assert site.differs(Zone.GUIDANCE) == {short.object_id: "expired", there.object_id: "withdrawn"}
    assert site.swept() == {"expired": 1, "withdrawn": 1, "repaired": 2}
    assert found(site.store, site.tenant) == {f"c{n}" for n in range(ENTRIES - 1)}


def test_what_was_withdrawn_under_a_key_that_is_gone_does_not_land_when_the_store_is_built_anew(site) -> None:
    """The record before it verifies, and says that the entry lies there: it counts no more."""
    stored = site.entries[0]
    said = stored_to_bytes(STRANGER, "seal-1", replace(stored, version=20, withdrawn=True))
    site.append(STORE, Output(STORE, accepted(site.tenant, 0).partition, stored.object_id.encode(), said))
    site.store.drop(site.tenant)
    assert site.reconciler.land_all(site.tenant) == ENTRIES - 1
    assert found(site.store, site.tenant) == {f"c{n}" for n in range(1, ENTRIES)}


def test_a_withdrawal_that_verifies_no_more_lets_nothing_land_again(site) -> None:
    """The log's last word on an entry is under a lost key: the one before does not count in its place, until a later
    one verifies."""
    stored = site.entries[0]
    said = stored_to_bytes(STRANGER, "seal-1", replace(stored, version=20, withdrawn=True))
    site.append(STORE, Output(STORE, accepted(site.tenant, 0).partition, stored.object_id.encode(), said))
    site.store.delete(site.tenant, Zone.GUIDANCE, [stored.object_id])
    assert site.differs(Zone.GUIDANCE) == {stored.object_id: "unreadable"}
    assert site.swept() == {"unreadable": 1, "unrepaired": 1}
    value = stored_to_bytes(RING, "seal-1", replace(stored, version=21, withdrawn=True))
    site.append(STORE, Output(STORE, accepted(site.tenant, 0).partition, stored.object_id.encode(), value))
    assert site.differs(Zone.GUIDANCE) == {}


def test_a_stretch_with_many_differences_is_counted_once(tmp_path) -> None:
    """It is mended in parts, a part a step: what was swept is what was looked at."""
    site = EmbeddedSite(f"mend-{uuid4().hex[:10]}", tmp_path)
    ids = [site.land(n, f"c{n}", axis(n)).object_id for n in range(MENDED_AT_ONCE + 10)]
    site.store.delete(site.tenant, Zone.GUIDANCE, ids)
    assert site.swept() == {"missing": len(ids), "repaired": len(ids)}
    assert site.counted["swept"] == len(ids)
    site.close()
