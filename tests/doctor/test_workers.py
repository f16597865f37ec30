"""The doctor on workers: none runs, one stands still, one gets on; and what a worker that starts lacks."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.command import run
from tests.gate.build import T0

from memsluice.deployment.connection import Connection
from memsluice.deployment.home import Home
from memsluice.envelope.partition_orders import Accepted, PartitionOrder, PartitionState
from memsluice.envelope.partition_orders import Missing as Lost
from memsluice.envelope.registry import Role
from memsluice.errors import BrokerUnavailable, PolicyError
from memsluice.events.partition import partition_of
from memsluice.keystore.store import KeyStore, issue_credential
from memsluice.operations.doctor import checks, preflight, remote
from memsluice.operations.doctor.checks import CheckState
from memsluice.operations.doctor.preflight import Missing
from memsluice.operations.monitor import lag as lags
from memsluice.operations.monitor.lag import Lag
from memsluice.operations.partitions.words import undecided
from memsluice.runtimes.assembly import Assembly
from memsluice.topics.names import PARTITIONS
from memsluice.topics.spec import load_topics

NOWHERE = Connection(
    bootstrap="127.0.0.1:1",
    weaviate_http_port=1,
    weaviate_grpc_port=1,
    users=dict.fromkeys(("seal", "screen", "land", "operator"), "x"),
)
PLACE = ("memory.sealed.v1", 3)


def of(behind: int, committed: int = 7) -> Lag:
    """Return a stage that is so many records behind on one partition."""
    waits = frozenset({(*PLACE, committed)}) if behind else frozenset()
    return Lag("screen", behind, len(waits), behind, True, waits)


def look(
    monkeypatch: pytest.MonkeyPatch, seen: list[tuple[Lag, int]], standing_s: float = 5.0
) -> tuple[CheckState, str, str]:
    """Return what the doctor says of a stage; ``seen`` are lag and workers at each look, the last one for ever."""
    now = iter(range(10_000))
    place = {"at": 0}

    class Asked:
        def __init__(self, _connection: Connection) -> None:
            pass

        def __call__(self) -> list[Lag]:
            return [seen[min(place["at"], len(seen) - 1)][0]]

    def sleep(_seconds: float) -> None:
        place["at"] += 1

    monkeypatch.setattr(lags, "KafkaLag", Asked)
    monkeypatch.setattr(remote, "GROUPS", {"screen": "memsluice-screen"})
    monkeypatch.setattr(remote, "_members", lambda *_: seen[min(place["at"], len(seen) - 1)][1])
    (found,) = remote.workers(NOWHERE, standing_s=standing_s, monotonic=lambda: float(next(now)), sleep=sleep)
    return found.state, found.said, found.remedy


def test_a_parked_partition_is_a_failure_with_its_way_on_and_a_loss_that_was_answered_for_is_told() -> None:
    """Nobody has to know of another command to find it; who accepted a loss stands where an auditor looks."""
    gap = Lost("memory.events.v1", 4, 6)
    state = PartitionState("seal", 3, True, "f", "GapError", "records 4 to 6 were not delivered", "memory.events.v1", 7,
                           gap, T0, "0")  # fmt: skip
    loss = Accepted(PartitionOrder("acknowledge-gap", "seal", 3, "f", gap, "ticket 4711", T0), "operator-1", T0)
    (found,) = remote.judged_partitions([state], [loss])
    assert (found.what, found.state) == ("partitions", CheckState.FAIL)
    assert "partition 3 of seal stands still: GapError: records 4 to 6" in found.said
    assert "memsluice partition acknowledge-gap seal 3 --from 4 --to 6" in found.remedy
    (found,) = remote.judged_partitions([], [loss])
    assert found.state is CheckState.OK
    assert "records 4 to 6 of memory.events.v1, partition 3, for seal" in found.said
    assert found.said.endswith("by operator-1: ticket 4711")
    assert [each.said for each in remote.judged_partitions([], [])] == ["none is parked"]


def test_an_event_may_be_among_what_was_lost_of_its_tenants_partition() -> None:
    """Lost on the intake or before screen it has no verdict; what was lost later has one."""
    here = partition_of("acme", PARTITIONS)
    losses = [
        Accepted(PartitionOrder("acknowledge-gap", "x", partition, "f", Lost(topic, 4, 6), "", T0), "op", T0)
        for topic in ("memory.events.v1", "memory.accepted.v1")
        for partition in (here, (here + 1) % PARTITIONS)
    ]
    assert undecided(losses, "acme") == losses[:1]
    assert undecided(losses, None) == losses[:2]


def test_a_dead_worker_with_records_behind_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broker lists it until its session is over: the doctor looks until then, and says that none runs."""
    state, said, remedy = look(monkeypatch, [(of(100), 1)] * 30 + [(of(100), 0)], standing_s=40.0)
    assert (state, said) == (CheckState.FAIL, "no worker runs: 0 workers, 100 records behind")
    assert "memsluice work screen" in remedy


def test_a_worker_that_stands_still_is_a_failure_of_another_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """It lives and commits nothing: starting another one would not help, its log says why."""
    state, said, remedy = look(monkeypatch, [(of(100), 1)])
    assert state is CheckState.FAIL
    assert "a worker runs and stands still: 1 worker, 100 records behind, nothing committed on 1 partition" in said
    assert "log" in remedy


@pytest.mark.parametrize(
    "seen",
    [
        [(of(100, committed=7), 1), (of(90, committed=17), 1)],
        [(of(100), 1), (of(0), 1)],
        [(of(0), 1)],
    ],
)
def test_a_worker_that_gets_on_is_fine(seen: list[tuple[Lag, int]], monkeypatch: pytest.MonkeyPatch) -> None:
    """Load alone is no finding: a step on each partition that was behind is enough."""
    assert look(monkeypatch, seen)[0] is CheckState.OK


def test_one_partition_that_stands_still_among_others_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum of commits grows with the others: a stage is judged by its worst partition."""
    stuck = (*PLACE, 7)
    first = Lag("screen", 9, 2, 8, True, frozenset({stuck, ("memory.sealed.v1", 4, 10)}))
    later = Lag("screen", 9, 2, 8, True, frozenset({stuck, ("memory.sealed.v1", 4, 20)}))
    state, said, _ = look(monkeypatch, [(first, 1), (later, 1)])
    assert (state, "on 1 partition " in said) == (CheckState.FAIL, True)


def test_an_idle_stage_without_a_worker_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing waits for it yet."""
    assert look(monkeypatch, [(of(0), 0)])[0] is CheckState.WARN


@pytest.fixture
def bare(tmp_path: Path) -> Home:
    """A home in which nothing is."""
    return Home.at(tmp_path / "home")


def lacking(home: Home, *stages: str, store_answers: bool = True) -> list[Missing]:
    """Return what a worker of these stages lacks, where no broker is."""
    specs = Assembly(home, KeyStore(home.path)).specs(NOWHERE)
    return list(preflight.missing(home, NOWHERE, [specs[stage] for stage in stages], lambda: store_answers))


def test_a_worker_says_all_that_is_missing_at_once(bare: Home) -> None:
    """Keys, broker and store, each with what to do; a broker that is away is asked once and keeps it from starting."""
    found = lacking(bare, "seal", "screen", "land", store_answers=False)
    assert [one.said.split(":")[0] for one in found] == [
        "this home has no keys",
        "no broker answers at 127.0.0.1",
        "the store at 127.0.0.1",
    ]
    assert [isinstance(one.error, BrokerUnavailable) for one in found] == [False, True, False]
    assert all(one.remedy for one in found)
    assert not bare.path.exists()


def test_a_registry_without_credentials_is_said(bare: Home) -> None:
    """A gate that knows nobody makes a dead letter of every event, and looks healthy."""
    keys = KeyStore.init(bare.path, T0)
    assert preflight.NO_CREDENTIALS in [one.said for one in lacking(bare, "seal")]
    issue_credential(keys, Role.PRODUCER, "agent", ["acme"], now_ms=T0)
    assert [one.said.split(" at ")[0] for one in lacking(bare, "seal")] == ["no broker answers"]


def test_a_policy_that_cannot_be_read_keeps_a_worker_from_starting(bare: Home) -> None:
    """It is said before anything is loaded, and not after the half minute that loading takes."""
    KeyStore.init(bare.path, T0)
    bare.policy_file.parent.mkdir()
    bare.policy_file.write_text("name: x\nprofle: strict\n")
    (found,) = [one for one in lacking(bare, "screen") if isinstance(one.error, PolicyError)]
    assert "profle" in found.said


def test_inputs_of_different_partition_counts_keep_a_worker_from_starting(
    bare: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One fence a partition holds for all inputs of a stage: with unequal counts two workers would have one of them."""
    KeyStore.init(bare.path, T0)
    topics = {spec.name: SimpleNamespace(partitions=range(spec.spec.partitions)) for spec in load_topics()}
    shown = SimpleNamespace(list_topics=lambda timeout: SimpleNamespace(topics=topics))
    monkeypatch.setattr(preflight, "AdminClient", lambda settings: shown)
    assert [one.said for one in lacking(bare, "seal", "screen", "land")] == [preflight.NO_CREDENTIALS]
    topics["memory.overflow.v1"].partitions = range(4)
    (found,) = [one for one in lacking(bare, "seal", "screen", "land") if one.error is not None]
    assert "the inputs of seal differ in their numbers of partitions" in found.said
    assert "memory.events.v1 has 8" in found.said
    assert "memory.overflow.v1 has 4" in found.said


def test_work_without_a_broker_ends_with_what_to_do(tmp_path: Path) -> None:
    """Exit code 6, the lines of what is missing, one error, and no traceback."""
    file = tmp_path / "connection.json"
    NOWHERE.save(file)
    home = tmp_path / "home"
    shown = run("work", "seal", environment={"MEMSLUICE_CONNECTION": str(file), "MEMSLUICE_HOME": str(home)})
    assert shown.code == 6
    assert "error: no broker answers at 127.0.0.1:1" in shown.err
    assert "Traceback" not in shown.err


def test_a_disk_with_little_room_is_a_warning_before_it_is_a_failure(tmp_path: Path) -> None:
    """Hours before the store and the broker refuse, the doctor says so; the line names the thresholds."""
    gib = 1 << 30
    states = [checks.room(checks.Room(tmp_path, free * gib, 1_000 * gib)).state for free in (500, 40, 20)]
    assert states == [CheckState.OK, CheckState.WARN, CheckState.FAIL]
    assert "3%" in checks.room(checks.Room(tmp_path, gib, 1_000 * gib)).remedy
