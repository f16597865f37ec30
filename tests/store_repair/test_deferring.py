"""A tenant that the store refuses for good holds up only itself; embedded and on the real Weaviate."""

from dataclasses import replace
from types import SimpleNamespace
from uuid import uuid4

import pytest
from tests.stages.test_land import found
from tests.stages.test_land_floor import gone
from tests.store_repair.sites import EmbeddedSite, StackSite
from tests.stores.build import PARTITIONS, RING, accepted, axis, entry

from memsluice.envelope.records import stored_from_bytes
from memsluice.errors import AnswerTooLarge, StoreUnavailable
from memsluice.events.models import Zone
from memsluice.events.partition import partition_of
from memsluice.stages.deferring import AGAIN_MS, AGAIN_MS_MAX, ATTEMPTS, Deferring
from memsluice.stages.land import CANARIES, LOOKED_MAX, LandStage
from memsluice.stages.reconcile import Compared
from memsluice.stages.store_sweep import SKIPS_MAX, StoreSweep
from memsluice.topics.names import ACCEPTED, STORE


def beside(tenant: str) -> str:
    """Return another tenant of the same partition."""
    names = (f"{tenant}-{n}" for n in range(1_000))
    return next(name for name in names if partition_of(name, PARTITIONS) == partition_of(tenant, PARTITIONS))


@pytest.fixture(params=["embedded", pytest.param("stack", marks=pytest.mark.stack)])
def site(request, tmp_path):
    """Two tenants of one partition with an entry each; *land* counts its pauses and gives up at the 40th."""
    tenant = f"shut-{uuid4().hex[:10]}"
    if request.param == "embedded":
        made = EmbeddedSite(tenant, tmp_path)
    else:
        made = StackSite(tenant, request.getfixturevalue("stack"))
    yield from filled(made)


@pytest.fixture
def alone(tmp_path):
    """The same on an embedded store of which nobody else knows."""
    yield from filled(EmbeddedSite(f"shut-{uuid4().hex[:10]}", tmp_path))


def filled(made):
    """Give a site with what the tests begin with, and close it."""
    made.other, made.pauses, made.counted = beside(made.tenant), [], {}
    made.first = accepted(made.tenant, 1, "first")
    made.stage = land(made)
    put(made, made.first, accepted(made.other, 2, "theirs"))
    yield made
    made.shut()
    made.close()


def land(site) -> LandStage:
    """Return *land*, which never really waits."""

    def wait(seconds: float) -> bool:
        site.pauses.append(seconds)
        return len(site.pauses) >= 40

    stage = LandStage(lambda: RING, site.store, PARTITIONS, lambda: site.now_ms, log=site.index, wait=wait)
    stage.tell(site.count)
    stage.owns({partition_of(site.tenant, PARTITIONS)})
    return stage


def put(site, *records):
    """Land records, and publish what *land* says; return for each what that was."""
    placed = [site.append(ACCEPTED, record) for record in records]
    said = []
    for record, outputs in zip(records, site.stage.process(placed), strict=True):
        for output in outputs:
            site.append(STORE, output)
        said += [stored_from_bytes(RING, record.key.decode(), output.value) for output in outputs]
    return said


def test_others_land_while_a_tenant_is_refused_and_what_it_lands_is_not_lost(site) -> None:
    """One batch: an entry of the tenant, the withdrawal of another, and somebody else's entry. All are said in the log
    after a bounded wait; once the store takes the tenant again, the sweep brings it to what the log says."""
    site.shut(site.tenant)
    batch = (accepted(site.tenant, 5, "second", axis(5)), gone(site.first, 6, site.tenant),
             accepted(site.other, 7, "theirs too", axis(7)))  # fmt: skip
    said = put(site, *batch)
    assert [(one.version, one.withdrawn) for one in said] == [(5, False), (6, True), (7, False)]
    assert len(site.pauses) <= ATTEMPTS
    assert found(site.store, site.other) == {"theirs", "theirs too"}
    assert site.counted["put_off"] == 2
    site.shut()
    others = "unverified"  # what other tests' keys have sealed
    assert {name: count for name, count in site.swept().items() if name != others} == {
        "withdrawn": 1,
        "missing": 1,
        "repaired": 2,
    }
    assert found(site.store, site.tenant) == {"second"}


def test_a_tenant_that_was_put_off_waits_no_more_until_it_is_tried_again(site) -> None:
    """Its next records pass at once; after a while one attempt is made, and from then on it lands as before."""
    site.shut(site.tenant)
    put(site, accepted(site.tenant, 5, "second", axis(5)), accepted(site.other, 6, "x", axis(6)))
    pauses = len(site.pauses)
    put(site, accepted(site.tenant, 7, "third", axis(7), key="k"))
    assert len(site.pauses) == pauses
    site.now_ms += AGAIN_MS
    put(site, accepted(site.tenant, 8, "fourth", axis(7), key="k"))
    assert len(site.pauses) <= pauses + 1  # one more refusal is enough; a call that failed as a whole is made again
    site.shut()
    site.now_ms += 2 * AGAIN_MS
    put(site, accepted(site.tenant, 9, "fifth", axis(9)))
    assert found(site.store, site.tenant) == {"first", "fifth"}
    site.swept()
    assert found(site.store, site.tenant) == {"first", "second", "fourth", "fifth"}
    assert site.differs(Zone.GUIDANCE) == {}


def test_a_withdrawal_of_what_is_not_there_is_no_write_that_was_taken(alone) -> None:
    """It asks the store for nothing that the tenant is refused: the next write is tried once, as before, and not for a
    minute."""
    alone.shut(alone.tenant)
    put(alone, accepted(alone.tenant, 5, "second", axis(5)), accepted(alone.other, 6, "x", axis(6)))
    alone.now_ms += AGAIN_MS
    alone.store._check = lambda _tenant: None  # it can be read, and not be written
    put(alone, gone(accepted(alone.tenant, 7, "absent", key="absent"), 8, alone.tenant))
    pauses = len(alone.pauses)
    put(alone, accepted(alone.tenant, 9, "third", axis(7)))
    assert len(alone.pauses) <= pauses + 1


def test_a_tenant_that_goes_on_being_refused_is_tried_less_and_less_and_at_once_as_before_when_it_was_taken() -> None:
    """An attempt at a shard that hangs takes seconds of everybody's: each minute that would be a tenth of all time."""
    now_ms, asked = 0, list[int]()
    deferring = Deferring(lambda _but: True, lambda _tenant: True, lambda: now_ms)
    for _ in range(ATTEMPTS):
        deferring.refused({"acme"})
    for minute in range(60):
        now_ms = minute * AGAIN_MS
        if not deferring.put_off({"acme"}):
            asked.append(minute)
            deferring.refused({"acme"})
    assert asked == [1, 3, 7, 15, 25, 35, 45, 55]
    assert AGAIN_MS_MAX == 10 * AGAIN_MS
    deferring.took({"acme"})
    for _ in range(ATTEMPTS):
        deferring.refused({"acme"})
    now_ms += AGAIN_MS
    assert deferring.put_off({"acme"}) == set()


def test_whom_another_worker_lands_for_and_who_wrote_nothing_since_take_nobodys_place(monkeypatch) -> None:
    """So many tenants at most are put off at once: those of the past are forgotten where there is no room."""
    monkeypatch.setattr("memsluice.stages.deferring.TENANTS_MAX", 2)
    now_ms, moved, asked = 0, set[str](), list[set[str]]()

    def takes_others(but) -> bool:
        asked.append(set(but))
        return True

    deferring = Deferring(takes_others, lambda tenant: tenant not in moved, lambda: now_ms)

    def refuse(tenant: str) -> bool:
        for _ in range(ATTEMPTS):
            deferring.refused({tenant})
        return deferring.put_off({tenant}) == {tenant}

    assert [refuse(one) for one in ("a", "b", "c")] == [True, True, False]
    assert asked == [{"a"}, {"a", "b"}]  # who is put off already is no measure of whether the store takes writes
    moved.add("a")
    assert refuse("c")
    now_ms = AGAIN_MS
    assert refuse("d")


def test_many_tenants_that_are_refused_hold_up_no_other(alone) -> None:
    """Whether the store takes writes is asked of other tenants the next time: those asked first may all be refused."""
    names = (f"aaa-{n}" for n in range(10_000))
    where = partition_of(alone.tenant, PARTITIONS)
    shut = [name for name in names if partition_of(name, PARTITIONS) == where][: CANARIES + 1]
    put(alone, *(accepted(name, 10 + number, "first") for number, name in enumerate(shut)))
    alone.shut(*shut)
    put(alone, accepted(shut[-1], 30, "second", axis(5)), accepted(alone.other, 31, "theirs too", axis(7)))
    assert len(alone.pauses) <= ATTEMPTS + 2
    assert found(alone.store, alone.other) == {"theirs", "theirs too"}


def test_a_batch_of_the_refused_tenant_alone_holds_up_those_behind_it_no_longer_than_that(site) -> None:
    """Others may stand behind it in the partition: the store is asked whether it takes another tenant's write."""
    site.shut(site.tenant)
    assert [one.version for one in put(site, accepted(site.tenant, 5, "second", axis(5)))] == [5]
    assert site.counted["put_off"] == 1
    assert found(site.store, site.other) == {"theirs"}


def test_a_store_that_takes_nobodys_writes_is_waited_for(alone) -> None:
    """A full disk is no reason to say in the log what does not lie there: nothing is put off, and the worker waits."""
    site = alone
    site.shut(site.tenant, site.other)
    with pytest.raises(StoreUnavailable):
        put(site, accepted(site.tenant, 5, "second", axis(5)), accepted(site.other, 6, "x", axis(6)))
    assert len(site.pauses) == 40
    assert "put_off" not in site.counted


def test_tenants_that_hold_nothing_intact_say_nothing_of_what_the_store_takes(alone) -> None:
    """However many stand before those that do, and whoever planted them: the look goes on behind them, a bounded number
    at a time, and the tenant is put off all the same."""
    site = alone
    names = (f"a-hollow-{n}" for n in range(10_000))
    hollow = [one for one in names if partition_of(one, PARTITIONS) == partition_of(site.tenant, PARTITIONS)]
    hollow = hollow[: LOOKED_MAX + CANARIES]
    assert max(hollow) < min(site.tenant, site.other)
    for tenant in hollow:
        site.write_past(entry(tenant, "planted"))
    site.shut(site.tenant)
    assert [one.version for one in put(site, accepted(site.tenant, 5, "second", axis(5)))] == [5]
    assert (site.counted["put_off"], len(site.pauses)) == (1, ATTEMPTS)  # one look more than without them


def test_another_tenant_in_whom_much_was_planted_still_says_what_the_store_takes(alone, monkeypatch) -> None:
    """Its objects fit into no answer together, so they are looked at one by one: it does not count as refused, too."""
    site, page = alone, alone.store.page

    def one_at_a_time(tenant, zone, after, limit):
        if limit > 1:
            raise AnswerTooLarge("planted")
        return page(tenant, zone, after, limit)

    monkeypatch.setattr(site.store, "page", one_at_a_time)
    for number in range(CANARIES - 1):
        site.write_past(replace(entry(site.other, "planted"), object_id=f"0000000{number}-0000-4000-8000-000000000000"))
    site.shut(site.tenant)
    assert [one.version for one in put(site, accepted(site.tenant, 5, "second", axis(5)))] == [5]
    assert site.counted["put_off"] == 1


def test_a_sweep_passes_a_refused_tenant_over(site) -> None:
    """The tenants behind it are swept all the same."""
    site.shut(site.tenant)
    (stored,) = put(site, accepted(site.other, 9, "lost", axis(9)))
    site.store.delete(site.other, Zone.GUIDANCE, [stored.object_id])
    site.sweep.owns({partition_of(site.tenant, PARTITIONS)})
    site.sweep.begin_round()
    while site.sweep.step(site.count):
        pass
    assert found(site.store, site.other) == {"theirs", "lost"}


def test_a_tenant_whose_part_of_the_store_does_not_answer_is_swept_less_and_less() -> None:
    """Batches wait while it is asked, 40 s where its shard hangs: every minute that would be most of everybody's time.
    It is asked once a round, for one zone of the two, and as before once it answers."""
    asked, silent, number = list[int](), True, 0

    def look(tenant: str, _zone: Zone, _after: str) -> Compared:
        if tenant == "hangs":
            asked.append(number)
            if silent:
                raise StoreUnavailable("Weaviate did not answer within 5 s")
        return Compared(0, {}, None)

    store = SimpleNamespace(tenants=lambda: {"hangs", "well"})
    log = SimpleNamespace(tenants=lambda _owned: (), catch_up=lambda *_: None)
    sweep = StoreSweep(SimpleNamespace(look=look), store, log, 1)  # type: ignore[arg-type]
    sweep.owns({0})
    for number in range(40):
        silent = number < 38
        sweep.begin_round()
        while sweep.step(lambda *_: None):
            pass
    assert asked == [0, 2, 5, 10, 19, 36]
    assert SKIPS_MAX == 16
