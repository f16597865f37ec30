"""Readiness knows broker and store, liveness knows progress, and a line says what went and when it is back."""

import logging
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs
from tests.command import logging_to
from tests.telemetry.test_metrics import NOW_S, progress

from memsluice import log as logs
from memsluice.deployment.space import GIB, Room
from memsluice.runtimes.kafka.broker_watch import Dependency
from memsluice.runtimes.kafka.progress import PartitionProgress, StageProgress
from memsluice.telemetry import surroundings as module
from memsluice.telemetry.health import SILENT_S, Health
from memsluice.telemetry.readiness import NOT_YET_EVERY_S, ReadyLine
from memsluice.telemetry.surroundings import Surroundings


class Clock:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now_s = NOW_S

    def __call__(self) -> float:
        """Return the time."""
        return self.now_s


def of_land(committed: int, end: int) -> list[StageProgress]:
    """Return *land* with one partition."""
    return [StageProgress("land", True, None, (PartitionProgress("land", "memory.accepted.v1", 0, committed, end),))]


def test_readiness_names_what_does_not_answer_and_liveness_does_not_mind() -> None:
    """A worker whose broker is away is not to be sent traffic, and not to be killed for it, however long it lasts."""
    clock = Clock()
    broker = Dependency("broker", "kafka:9092", "nothing is read", monotonic=clock)
    health = Health(["seal"], NOW_S, stall_s=60, depends=lambda: [broker])
    health.report(progress(1, 9), clock())
    assert health.not_ready(clock()) == ()
    broker.told(False)
    for _ in range(60):
        clock.now_s += SILENT_S / 2
        health.report(progress(1, 9), clock())
        assert health.not_alive(clock()) == ()
    (problem,) = health.not_ready(clock())
    assert (problem.stage, "kafka:9092" in problem.problem) == ("broker", True)


def test_a_worker_that_stands_still_though_all_answer_is_not_alive() -> None:
    """Time counts from when the broker is back: one that was away is no excuse for ever, and no charge at once."""
    clock = Clock()
    broker = Dependency("broker", "kafka:9092", "nothing is read", monotonic=clock)
    health = Health(["seal"], NOW_S, stall_s=60, depends=lambda: [broker])
    broker.told(False)
    for _ in range(20):
        clock.now_s += 10
        health.report(progress(1, 9), clock())
    broker.told(True)
    for _ in range(6):
        clock.now_s += 10
        health.report(progress(1, 9), clock())
        assert health.not_alive(clock()) == ()
    clock.now_s += 10
    health.report(progress(1, 9), clock())
    (problem,) = health.not_alive(clock())
    assert problem.stage == "seal"


def test_a_stores_outage_excuses_land_and_no_other_stage() -> None:
    """*seal* that stands still is stuck, whatever the store does; *land* waits for it."""
    clock = Clock()
    store = Dependency("store", "weaviate:8080", "nothing lands", ("land",), monotonic=clock)
    store.told(False)
    health = Health(["seal", "land"], NOW_S, stall_s=60, depends=lambda: [store])
    for _ in range(20):
        clock.now_s += 10
        health.report([*progress(1, 9), *of_land(1, 9)], clock())
    assert [problem.stage for problem in health.not_alive(clock())] == ["seal"]


def test_a_store_that_answers_and_refuses_is_no_reason_to_restart_land() -> None:
    """No restart makes room on the store's disk: readiness says it, liveness counts from when writes are taken."""
    clock = Clock()
    health = Health(["land"], NOW_S, stall_s=60)
    for waited_s in range(10, 400, 10):
        clock.now_s += 10
        health.report([replace(stage, refused_s=waited_s) for stage in of_land(1, 9)], clock())
        assert health.not_alive(clock()) == ()
    (problem,) = health.not_ready(clock())
    assert (problem.stage, "refusing it for 390 s" in problem.problem) == ("land", True)
    for _ in range(7):
        clock.now_s += 10
        health.report(of_land(1, 9), clock())
    assert [problem.stage for problem in health.not_alive(clock())] == ["land"]


def test_one_line_when_a_dependency_goes_and_one_when_it_is_back() -> None:
    """However often it is asked; the second says how long it lasted, for people and for programs."""
    clock = Clock()
    store = Dependency("store", "weaviate:8080", "nothing lands", monotonic=clock)
    with capture_logs() as lines:
        for answers in (True, False, False, False, True, True):
            store.told(answers)
            clock.now_s += 21.5
    assert len(lines) == 2
    assert lines[0]["event"].startswith("the store does not answer")
    assert "back after 64 s" in lines[1]["event"] or "back after 65 s" in lines[1]["event"]
    assert (lines[1]["away_s"], lines[1]["store"]) == (64.5, "weaviate:8080")


def test_the_disk_is_measured_and_told_of_once_for_each_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Warned of before it is full, named when it is, and told when there is room again; the metric follows always."""
    left = [500, 40, 40, 10, 10, 500]
    rooms = [Room(tmp_path, free * GIB, 1_000 * GIB) for free in left]
    given = iter(rooms)
    monkeypatch.setattr(module, "Room", type("Measured", (), {"of": staticmethod(lambda _path: next(given))}))
    seen: list[Room] = []
    watched = Surroundings(None, lambda: True, tmp_path)
    watched._measured = seen.append
    with capture_logs() as lines:
        for _ in left:
            watched.look()
    assert seen == rooms
    assert [(line["log_level"], line["free_mib"]) for line in lines] == [
        ("warning", 40 << 10), ("error", 10 << 10), ("warning", 500 << 10),
    ]  # fmt: skip


def test_the_store_is_asked_only_where_a_stage_writes_to_it(tmp_path: Path) -> None:
    """A worker without *land* is ready while the store is away: it does not need it."""
    asked: list[bool] = []
    without = Surroundings(None, lambda: bool(asked.append(True)), tmp_path)
    without.look()
    assert (asked, without.dependencies()) == ([], [])
    store = Dependency("store", "weaviate:8080", "nothing lands", ("land",))
    with_store = Surroundings(store, lambda: False, tmp_path)
    with_store.look()
    assert [one.away for one in with_store.dependencies()] == [True]


def test_ready_is_said_once_and_not_yet_from_time_to_time() -> None:
    """A worker that waits says what for; whoever waits for it has one line to look for."""
    clock = Clock()
    line = ReadyLine(["seal", "screen"], clock)
    seal, screen = StageProgress("seal", True, None, ()), StageProgress("screen", False, None, ())
    with capture_logs() as lines:
        for _ in range(3):
            line.report([seal, screen])
            clock.now_s += NOT_YET_EVERY_S / 2
        line.report([seal])
        for _ in range(3):
            line.report([seal, StageProgress("screen", True, None, ())])
            line.report([seal, screen])  # a rebalance later is no new start
    assert [("ready: every stage" in found["event"], found["stages"]) for found in lines] == [
        (False, ["screen"]), (True, ["seal", "screen"]),
    ]  # fmt: skip


def test_what_libraries_log_is_structured_too(tmp_path: Path) -> None:
    """A program that reads a worker's log finds one form: time, level, text, who said it; no error's content."""
    with (tmp_path / "log").open("w") as stream, logging_to(stream):
        logs.structure_libraries()
        logging.getLogger("aiokafka.consumer").warning("Topic %s is gone", "t1")
        try:
            raise ValueError("said by an attacker")
        except ValueError:
            logging.getLogger("faust").exception("an agent crashed")
    lines = (tmp_path / "log").read_text().splitlines()
    assert len(lines) == 2
    assert all(part in lines[0] for part in ("[warning  ] Topic t1 is gone", "library=aiokafka.consumer"))
    assert "[error    ] an agent crashed" in lines[1]
    assert "ValueError" in lines[1]
    assert "attacker" not in lines[1]


def test_a_log_that_cannot_be_written_ends_nothing() -> None:
    """A worker's log lies on a disk that may be full, too: a line is lost then, and neither the worker nor a watch."""
    program = (
        "import logging; from memsluice import log; log.configure(); log.structure_libraries()\n"
        "log.get_logger('one').warning('a line of ours')\n"
        "logging.getLogger('aiokafka').error('a line of a library')\n"
        "print('went on')"
    )
    with Path("/dev/full").open("w") as full:
        done = subprocess.run([sys.executable, "-c", program], stderr=full, stdout=subprocess.PIPE, check=False)
    assert done.stdout == b"went on\n"


@pytest.mark.parametrize("answer", [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 503 Busy\r\n\r\n", b"noise\r\n\r\n", None])
def test_a_store_answers_that_says_it_is_ready_and_no_other(
    monkeypatch: pytest.MonkeyPatch, answer: bytes | None
) -> None:
    """Silence, noise and "not now" are no answer; none of them ends who asks."""
    import socket
    from threading import Thread

    from memsluice.deployment.connection import Connection

    monkeypatch.setattr(module, "ANSWERS_WITHIN_S", 240.0)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def serve() -> None:
            connected, _ = server.accept()
            with connected:
                connected.recv(4096)
                connected.sendall(answer or b"")

        thread: Any = Thread(target=serve)
        thread.start()
        ask = module.asks_store(
            Connection(bootstrap="b:1", weaviate_host="127.0.0.1", weaviate_http_port=port, weaviate_grpc_port=1)
        )
        assert ask() is (answer is not None and b"200" in answer)
        thread.join()
    assert ask() is False
