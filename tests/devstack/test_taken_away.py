"""Broker, store, worker and disk are taken away, one after the other, under load: what is said then, and what comes
back by itself.

One stack of its own, because whoever shares one does not want it taken away; one story a fixture, because starting the
stack's workers is what takes the time.
"""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
from tests.devstack.small_disk import Filler, mounted
from tests.devstack.town import COMMAND, HANG_GUARD_S, TENANT, Town, audited, by_turns, drawn, until

from memsluice.clock import wall_ms
from memsluice.deployment.layout import Layout
from memsluice.devstack import control
from memsluice.devstack.bringup import bring_up
from memsluice.devstack.processes import find
from memsluice.envelope.registry import Role
from memsluice.envelope.verdict import Decision
from memsluice.events.models import Zone
from memsluice.keystore.store import KeyStore, issue_credential
from memsluice.operations.doctor import remote
from memsluice.runtimes.kafka.worker import EXIT_HUNG, EXIT_OK
from memsluice.stores.opening import open_store
from memsluice.topics import names

pytestmark = [pytest.mark.stack, pytest.mark.mounts, pytest.mark.timeout(1200)]

DISK_MIB = 600


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    """Everything runs; whatever was taken away, nothing is left behind."""
    with mounted(tmp_path_factory.mktemp("town") / "disk", DISK_MIB) as disk:
        home = disk / "home"
        (disk / "worker.log").touch()
        made: Town | None = None
        try:
            connection = bring_up(home)
            keys = KeyStore.init(home, wall_ms())
            issue_credential(keys, Role.PRODUCER, "agent", [TENANT], now_ms=wall_ms())
            made = Town(disk, home, connection, keys)
            made.start()
            yield made
        finally:
            if made is not None and made.worker is not None:
                made.worker.kill()
                made.worker.wait()
            control.down(home, wipe=True)


def unready(town: Town, over: str) -> bool:
    """Tell whether the worker is not ready, over the broker or the store."""
    status, body = town.asked("/readyz")
    return status == 503 and f'"stage":"{over}"' in body


def test_a_store_that_is_away_is_named_and_its_return_told(town: Town) -> None:
    """Readiness fails and names it, liveness does not; the doctor tells a stage that stands still from one without a
    worker; `stack status` calls the server hung; all of it ends when the store is back."""
    assert town.log.count("worker ready: every stage takes records") == 1
    until(lambda: town.asked("/readyz")[0] == 200, "the worker is ready")
    pid = town.status("weaviate")["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        until(lambda: unready(town, "store"), "readiness fails over the store")
        until(lambda: town.asked("/livez")[0] == 200, "liveness does not fail")
        hung = town.status("weaviate")
        assert (hung["state"], f"kill -CONT {pid}" in hung["why"]) == ("hung", True)
        town.say(5)
        until(lambda: town.behind("land"), "land has something to do")
        until(lambda: not town.behind("seal") and not town.behind("screen"), "nobody else has")
        found = {one.what: one for one in remote.workers(town.connection, standing_s=3.0)}
        assert found["land"].said.startswith("a worker runs and stands still")
        assert (found["land"].state.value, found["seal"].state.value) == ("fail", "ok")
    finally:
        os.kill(pid, signal.SIGCONT)
    until(lambda: town.asked("/readyz")[0] == 200, "readiness is back")
    until(lambda: not town.behind("land"), "land caught up")
    until(lambda: by_turns(town.told("store")), "the store was away, and is back")


def test_a_broker_that_is_killed_comes_back_and_top_with_it(town: Town) -> None:
    """`top` says that the broker is away and draws again when it is back; the worker too, without a start; `stack
    status` knows what ended the broker."""
    supervisor = control.read_report(Layout(town.home)).pid  # type: ignore[union-attr]
    restarts = town.status("kafka")["restarts"]
    with drawn(town.home) as screen:
        until(lambda: b"on partitions" in screen.since(0), "top draws")
        os.kill(supervisor, signal.SIGSTOP)  # or the broker is back before anybody has noticed
        try:
            os.kill(town.status("kafka")["pid"], signal.SIGKILL)
            until(lambda: b"trying again" in screen.since(0), "top says that the broker is away")
            until(lambda: unready(town, "broker"), "readiness fails over the broker")
            until(lambda: town.asked("/livez")[0] == 200, "liveness does not fail")
            assert town.status("kafka")["state"] == "restarting"
        finally:
            os.kill(supervisor, signal.SIGCONT)
        until(lambda: town.status("kafka")["state"] == "running", "the broker is back")
        place = screen.place()
        until(lambda: b"on partitions" in screen.since(place), "top draws again")
    assert town.status("kafka")["restarts"] == restarts + 1
    report = control.read_report(Layout(town.home))
    assert report is not None
    assert "killed by signal 9, SIGKILL" in report.services["kafka"].why
    until(lambda: town.asked("/readyz")[0] == 200, "the worker is ready again")
    town.say(5)
    until(lambda: set(town.acknowledged) <= set(town.decided()), "everything is decided")
    assert town.worker.poll() is None
    until(lambda: by_turns(town.told("broker")), "the broker was away, and is back")
    odd = [line for line in town.log.splitlines() if not line.startswith(("20", "metrics and health"))]
    assert odd == []


def test_a_dead_worker_is_no_worker(town: Town) -> None:
    """The doctor fails over records that nobody takes, says that no worker runs, and how to start one."""
    town.worker.kill()
    town.worker.wait()
    town.say(5)
    found = dict[str, Any]()

    def known_to_be_dead() -> bool:
        """The doctor waits longer than a worker's session; a broker that stands still meanwhile takes longer yet."""
        done = subprocess.run([*COMMAND, "doctor", "--json", "--home", str(town.home)], capture_output=True)
        found.update((one["what"], one) for one in json.loads(done.stdout))
        found["code"] = done.returncode
        return "seal" in found and found["seal"]["said"].startswith("no worker runs")

    until(known_to_be_dead, "no worker runs")
    assert found["code"] == 9
    assert found["seal"]["state"] == "fail"
    assert found["seal"]["said"].startswith("no worker runs: 0 workers, ")
    assert found["seal"]["do"] == "start a worker: memsluice work seal"
    town.start()
    until(lambda: set(town.acknowledged) <= set(town.decided()), "everything is decided")


def test_a_full_disk_is_refused_survived_and_gone_on_from(town: Town) -> None:
    """Filled under load to the last byte and freed: the broker stops in good order and says so, what comes meanwhile is
    refused, all goes on without a person, and every acknowledged event is decided, once, and landed."""
    filler = Filler(town.disk)
    before = len(town.acknowledged)
    with town.load():
        until(lambda: len(town.acknowledged) > before + 50, "there is load")
        filler.leave(80 << 20)
        until(lambda: town.status("kafka")["state"] == "waiting for room", "the broker is stopped before it is full")
        assert "out of disk space" in town.status("kafka")["why"]
        refused = len(town.refused)
        filler.leave(0)
        until(lambda: len(town.refused) > refused, "what comes is refused")
        filler.leave(0)
        assert control.is_running(Layout(town.home))
        acknowledged = len(town.acknowledged)
        filler.free()
        until(lambda: len(town.acknowledged) > acknowledged + 50, "events are taken again")
        until(lambda: town.status("weaviate")["state"] == "running", "the store is back")
    until(lambda: town.asked("/readyz")[0] == 200, "the worker is ready again")
    until(lambda: set(town.acknowledged) <= set(town.decided()), "everything acknowledged is decided")
    until(lambda: not town.behind("land"), "everything decided has landed")
    found = audited(town.connection, town.keys.keyring())
    assert len({one.intake for one in found}) == len(found), "no record is decided twice"
    decided = [one.event_id for one in found if one.decision is not Decision.DUPLICATE]  # where an answer was lost, the
    assert len(set(decided)) == len(decided)  # producer appends an event again: the copy is found to be one
    admitted = {one.object_id for one in found if one.object_id is not None}
    assert len(admitted) > before
    store = open_store(town.connection, names.WEAVIATE_RECALL)
    try:
        there = {
            object_id
            for zone in Zone
            for part in pieces(sorted(admitted))
            for object_id in store.held(TENANT, zone, part)
        }
    finally:
        store.close()
    assert there == admitted
    assert town.worker.poll() is None


def pieces(ids: list[str]) -> list[list[str]]:
    """Return ids in pieces that a store takes at once."""
    return [ids[start : start + 500] for start in range(0, len(ids), 500)]


def test_a_worker_whose_stack_is_down_ends_when_it_is_told_to(town: Town) -> None:
    """Ctrl-C with records in its hands and neither broker nor store: it ends by itself, at its bound at the latest, and
    without a traceback. What became of the stack is told: its supervisor was killed, and servers end with it."""
    report = control.read_report(Layout(town.home))
    assert report is not None
    store = report.services["weaviate"].pid
    os.kill(store, signal.SIGSTOP)  # land has a batch in its hands
    town.say(20)
    until(lambda: town.behind("land"), "land has something to do")
    os.kill(report.pid, signal.SIGKILL)
    os.kill(store, signal.SIGCONT)
    until(lambda: not any(find(one.identity()) for one in report.services.values()), "the servers end")
    assert "its supervisor is gone" in town.status("kafka")["why"]
    town.worker.send_signal(signal.SIGINT)
    assert town.worker.wait(HANG_GUARD_S) in (EXIT_OK, EXIT_HUNG), town.log[-3000:]
    assert "Traceback" not in town.log
