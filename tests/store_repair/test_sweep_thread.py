"""*land*'s sweep has its own thread: when it works, when it waits, and what it counts."""

import sqlite3
import threading
import time
from uuid import uuid4

import pytest
from prometheus_client import generate_latest
from structlog.testing import capture_logs
from tests.patience import HANG_S
from tests.stages.test_land import Faulty
from tests.store_repair.sites import EmbeddedSite
from tests.stores.build import PARTITIONS, RING, accepted, axis, entry

from memsluice.deployment.home import Home
from memsluice.errors import BrokerUnavailable, StoreUnavailable
from memsluice.events.models import Zone
from memsluice.events.partition import partition_of
from memsluice.runtimes.embedded import LocalLog
from memsluice.stages import store_sweep
from memsluice.stages.land import LandStage
from memsluice.stages.store_sweep import StoreSweep, SweepThread
from memsluice.stores.log_index import LogIndex
from memsluice.telemetry.meters import Meters
from memsluice.telemetry.stage_wrappers import ObservedBatch, Watch
from memsluice.topics.names import ACCEPTED, STORE


@pytest.fixture
def site(tmp_path, monkeypatch):
    """A tenant with three entries, one of them deleted; a sweep that loses no time."""
    for name in ("EVERY_S", "IDLE_S", "ROUND_S", "AFTER_FAILURE_S"):
        monkeypatch.setattr(store_sweep, name, 0.01)
    made = EmbeddedSite(f"sweep-{uuid4().hex[:10]}", tmp_path)
    made.entries = [made.land(n, f"c{n}", axis(n)) for n in range(3)]
    delete(made)
    made.index._idle.clear()
    made.index._log, made.reconciler._accepted = lambda _ended: ByThread(made, STORE), ByThread(made, ACCEPTED)
    made.own = {partition_of(made.tenant, PARTITIONS)}
    made.swept_stage = LandStage(
        lambda: RING, made.store, PARTITIONS, lambda: made.now_ms, log=made.index, sweep=made.sweep
    )
    yield made
    made.swept_stage.owns(())
    until(lambda: made.swept_stage._sweep._thread is None)
    made.close()


class ByThread:
    """A topic of the local log for any thread: its file is opened for each reading."""

    def __init__(self, site, topic: str) -> None:
        self.file, self.topic = Home(site.folder).log_file, topic

    def read(self, partition, from_offset=0):
        """Return what the partition holds."""
        log = LocalLog(self.file, reading=True)
        try:
            return iter(list(log.read(self.topic, from_offset, partition=partition)))
        finally:
            log.close()


def delete(site) -> None:
    """Take an entry away, as somebody with the store's key could."""
    site.store.delete(site.tenant, Zone.GUIDANCE, [site.entries[0].object_id])


def whole(site) -> bool:
    """Whether all entries lie there."""
    return site.store.count(site.tenant, Zone.GUIDANCE) == len(site.entries)


def until(told) -> None:
    """Wait until it is so; a hang is a failure."""
    deadline = time.monotonic() + HANG_S
    while not told():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.01)


def for_a_while(told) -> bool:
    """Whether it stays so for many turns of the sweep."""
    return all((told(), time.sleep(0.01))[0] for _ in range(30))


def test_an_idle_worker_sweeps_the_partitions_that_it_was_given(site) -> None:
    """Not before they are its own; what it found and did is in the worker's metrics, for the alert."""
    meters = Meters()
    watched = ObservedBatch(site.swept_stage, Watch("land", meters, None))
    assert for_a_while(lambda: not whole(site))
    watched.owns(site.own)
    until(lambda: whole(site))

    def counted(line: str) -> bool:
        return line in generate_latest(meters.collectors).decode()

    until(lambda: counted('memsluice_store_differences_total{kind="missing"} 1.0'))
    until(lambda: counted('memsluice_store_repairs_total{outcome="repaired"} 1.0'))
    assert not counted("memsluice_store_swept_total 0.0")


def test_nothing_is_swept_while_a_batch_is_in_work(site) -> None:
    """What a batch wrote and did not publish yet would look like somebody else's: the sweep waits for its end."""
    with site.swept_stage._busy:
        site.swept_stage.owns(site.own)
        assert for_a_while(lambda: not whole(site))
    until(lambda: whole(site))


@pytest.mark.parametrize("end", [lambda stage: stage.owns(()), LandStage.give_up], ids=["revoked", "given up"])
def test_nothing_is_swept_once_the_partitions_are_gone(site, end) -> None:
    """The next owner lands there; this one does not know what is on its way, and its thread ends."""
    site.swept_stage.owns(site.own)
    until(lambda: whole(site))
    end(site.swept_stage)
    until(lambda: site.swept_stage._sweep._thread is None)
    delete(site)
    assert for_a_while(lambda: not whole(site))


def test_a_store_that_is_away_is_swept_when_it_is_back(site, monkeypatch) -> None:
    """An outage ends no sweep."""
    page, failures = site.store.page, [StoreUnavailable("down")] * 3

    def away(*arguments):
        if failures:
            raise failures.pop()
        return page(*arguments)

    monkeypatch.setattr(site.store, "page", away)
    site.swept_stage.owns(site.own)
    until(lambda: whole(site))
    assert failures == []


def test_a_sweep_whose_own_index_fails_goes_on_when_it_can(site, monkeypatch) -> None:
    """The index is a temporary file: a full disk below it ends no sweep, or expired entries would stay for ever."""
    catch_up, failures = site.index.catch_up, [sqlite3.OperationalError("database or disk is full")] * 3

    def full(*arguments):
        if failures:
            raise failures.pop()
        return catch_up(*arguments)

    monkeypatch.setattr(site.index, "catch_up", full)
    site.swept_stage.owns(site.own)
    until(lambda: whole(site))
    assert failures == []


def test_a_worker_that_is_never_idle_sweeps_all_the_same(site, monkeypatch) -> None:
    """Under constant load expired entries must leave, too: after a while a stretch goes between two batches."""
    monkeypatch.setattr(store_sweep, "IDLE_S", 3_600.0)
    monkeypatch.setattr(store_sweep, "STARVED_S", 0.05)
    site.swept_stage.process([site.append(ACCEPTED, accepted(site.tenant, 9, "c9", axis(9)))])
    site.swept_stage.owns(site.own)
    until(lambda: site.store.count(site.tenant, Zone.GUIDANCE) == len(site.entries) + 1)


def test_a_sweep_walks_every_tenant_of_its_partitions_and_begins_anew(site) -> None:
    """Tenants that only the store knows are among them: whoever planted a whole one is found."""
    strange = next(f"strange-{n}" for n in range(1_000) if partition_of(f"strange-{n}", PARTITIONS) in site.own)
    site.store.upsert([entry(strange, "planted", version=0)])
    sweep = StoreSweep(site.reconciler, site.store, site.index, PARTITIONS)
    sweep.owns(site.own)
    for _ in range(2):
        sweep.begin_round()
        while sweep.step(site.count):
            pass
    assert site.store.count(strange, Zone.GUIDANCE) == 0
    assert (site.counted["unrecorded"], site.counted["missing"]) == (1, 1)


class Halting(ByThread):
    """A store log whose reading stands still at the first record, until it is let go or told to stop."""

    def __init__(self, site, ended) -> None:
        super().__init__(site, STORE)
        self.ended, self.stands = ended, threading.Event()
        self.go = threading.Event()

    def read(self, partition, from_offset=0):
        """Yield what the partition holds, one record at a time."""
        for record in super().read(partition, from_offset):
            self.stands.set()
            while not self.go.wait(0.01):
                if self.ended():
                    raise BrokerUnavailable("nobody waits for it any more")
            yield record


@pytest.fixture
def halting(site):
    """The readers of the store log that were opened; the first stands still."""
    opened: list[Halting] = []

    def reader(ended):
        opened.append(Halting(site, ended))
        if len(opened) > 1:
            opened[-1].go.set()
        return opened[-1]

    site.index._log = reader
    site.index._next.clear()
    yield opened
    for one in opened:
        one.go.set()


def elsewhere(site) -> str:
    """Return a tenant of another partition."""
    names = (f"elsewhere-{n}" for n in range(1_000))
    return next(name for name in names if partition_of(name, PARTITIONS) not in site.own)


def test_no_batch_waits_while_the_sweep_reads_the_store_log(site, halting) -> None:
    """Of a million objects that takes a minute, and it is done for every partition: batches of others go on meanwhile,
    with floors of their own, and the sweep goes on after them."""
    tenant = elsewhere(site)
    site.swept_stage.owns({*site.own, partition_of(tenant, PARTITIONS)})
    until(lambda: halting and halting[0].stands.is_set())
    (outputs,) = site.swept_stage.process([site.append(ACCEPTED, accepted(tenant, 9, "c9", axis(9)))])
    assert [output.topic for output in outputs] == [STORE]
    assert not whole(site)
    halting[0].go.set()
    until(lambda: whole(site))


def test_a_batch_waits_for_its_own_partitions_log_and_a_stop_ends_that(site, halting) -> None:
    """Without floors nothing may land. What the sweep reads of the log is read once for both; whoever is told to stop
    waits for it no more."""
    record = site.append(ACCEPTED, accepted(site.tenant, 9, "c9", axis(9)))
    site.swept_stage.owns(site.own)
    until(lambda: halting and halting[0].stands.is_set())
    said = Said(site.swept_stage, record)
    assert for_a_while(said.is_alive)
    site.swept_stage.give_up()
    said.join(HANG_S)
    assert isinstance(said.error, StoreUnavailable)
    until(lambda: site.swept_stage._sweep._thread is None)  # its reading was ended, too
    assert not halting[0].go.is_set()


class Said(threading.Thread):
    """A batch of one record, under way in a thread of its own; ``error`` is what it raised."""

    def __init__(self, stage, record) -> None:
        super().__init__(daemon=True)
        self.stage, self.record, self.error = stage, record, None
        self.start()

    def run(self) -> None:
        """Process it."""
        try:
            self.stage.process([self.record])
        except Exception as error:
            self.error = error


def test_a_batch_that_was_given_up_while_the_sweep_was_at_work_never_begins(site) -> None:
    """It is another worker's by the time it may begin: it waits for no store, nor holds up the next assignment, which
    lands as ever."""
    stage = LandStage(lambda: RING, Faulty(site.store, [StoreUnavailable("down")] * 100), PARTITIONS,
                      lambda: site.now_ms, log=site.index)  # fmt: skip
    stage.owns(site.own)
    record = site.append(ACCEPTED, accepted(site.tenant, 9, "c9", axis(9)))
    with stage._busy:
        said = Said(stage, record)
        assert for_a_while(said.is_alive)
        stage.give_up()
        stage.owns(site.own)
    said.join(HANG_S)
    assert isinstance(said.error, StoreUnavailable)
    stage._store = site.store
    assert [output.topic for output in stage.process([record])[0]] == [STORE]


def test_a_disk_that_was_full_under_the_index_ends_no_sweep(site, monkeypatch) -> None:
    """What SQLite raises then is none of our own errors: it is said in the log, and the sweep goes on once there is
    room, with an index that has all of a reading or nothing."""
    site.entries += [site.land(100 + n, f"d{n}", axis(100 + n)) for n in range(100)]
    delete(site)
    made = LogIndex(site.index._log, lambda: RING)
    monkeypatch.setattr(site.reconciler, "_log", made)
    monkeypatch.setattr(site.sweep, "_log", made)
    made._database.execute("PRAGMA max_page_count = 1")  # no page more than there are
    with capture_logs() as logs:
        site.swept_stage.owns(site.own)
        until(lambda: sum(log["log_level"] == "error" for log in logs) > 1)
    assert not whole(site)
    assert made.known(site.tenant, Zone.GUIDANCE, [one.object_id for one in site.entries]) == {}
    made._database.execute("PRAGMA max_page_count = 100000")
    until(lambda: whole(site))


def test_a_sweep_that_stands_still_is_told_in_seconds(site, monkeypatch) -> None:
    """For the alert: 0 where there is nothing to sweep, and near it while stretches are swept."""
    now_s = [1_000.0]
    monkeypatch.setattr(store_sweep, "monotonic", lambda: now_s[0])
    monkeypatch.setattr(SweepThread, "_run", lambda self: None)
    meters = Meters()
    watched = ObservedBatch(LandStage(lambda: RING, site.store, PARTITIONS, lambda: site.now_ms, log=site.index,
                                      sweep=site.sweep), Watch("land", meters, None))  # fmt: skip
    thread = watched._stage._sweep

    def told() -> float:
        return float(meters.collectors.get_sample_value("memsluice_store_unswept_seconds"))

    assert told() == 0.0
    watched.owns(site.own)
    thread._owned = None  # as the thread takes it
    site.sweep.owns(site.own)
    now_s[0] += 70
    assert told() == 70.0
    thread._turn()
    assert told() == 0.0
    now_s[0] += 3_000
    monkeypatch.setattr(site.sweep, "step", _fails)
    thread._turn()
    assert told() == 3_000.0
    watched.owns(())
    assert told() == 0.0


def _fails(_counted):
    raise sqlite3.OperationalError("database or disk is full")
