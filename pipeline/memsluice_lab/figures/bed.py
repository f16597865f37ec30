"""A test bed: a real stack of its own in a temporary home, workers as child processes, and a producer."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol

import yaml
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from memsluice.client.partitioner import PARTITIONER
from memsluice.clock import wall_ms
from memsluice.deployment.connection import Connection
from memsluice.deployment.home import Home
from memsluice.deployment.paths import HOME_VARIABLE, private_file
from memsluice.devstack import control
from memsluice.devstack.bringup import bring_up
from memsluice.envelope.dsse import Signer
from memsluice.errors import StackError
from memsluice.events.records import Headers
from memsluice.keystore.store import KeyStore
from memsluice.operations.monitor.lag import offsets_of
from memsluice.topics import names
from memsluice_lab import cast
from memsluice_lab.figures.registry import Setting
from memsluice_lab.streams import Published, signed

DEPENDS = ("memsluice.cli.work",)
"""For the figures' digests: of the command line only the command that starts a worker is used."""
STAGES = tuple(names.GROUPS)
INPUTS = ((names.EVENTS, names.COMMANDS, names.OVERFLOW), (names.SEALED,), (names.ACCEPTED,))
GROUPS = tuple(zip(names.GROUPS.values(), INPUTS, strict=True))
"""Every stage's consumer group and inputs, in the order of the data."""
STOP_S_MAX = 40
POLL_S = 0.5
ANSWER_S = 30
ASK_TIMES_MAX = 20
TAIL_CHARS = 1_500


class Process(Protocol):
    """What is asked of a worker's process; ``subprocess.Popen`` is one."""

    @property
    def pid(self) -> int:
        """Its number."""

    @property
    def returncode(self) -> int | None:
        """As ``Popen``'s: how it ended, once somebody looked."""

    def poll(self) -> int | None:
        """Return how it ended; None while it runs."""

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end and return how it ended. Raises subprocess.TimeoutExpired."""

    def send_signal(self, sig: int) -> None:
        """Send it a signal, unless it has ended."""

    def terminate(self) -> None:
        """Ask it to end."""


def spawn(words: Sequence[str], variables: Mapping[str, str], log: IO[bytes]) -> Process:
    """Start ``memsluice`` with these words in a process of its own."""
    command = [sys.executable, "-m", "memsluice.cli.main", *words]
    return subprocess.Popen(command, env=variables, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)


@dataclass(slots=True)
class Worker:
    """One ``memsluice work`` process."""

    stages: tuple[str, ...]
    replica: str
    log: Path
    process: Process


@dataclass(slots=True)
class Bed:
    """The running stack, its keys, and the workers that were started on it."""

    home: Path
    connection: Connection
    store: KeyStore
    setting: Setting
    workers: list[Worker] = field(default_factory=list)
    launch: Callable[[Sequence[str], Mapping[str, str], IO[bytes]], Process] = spawn
    _lag: dict[str, Any] = field(default_factory=dict)
    _admin: Any = None

    def signers(self, tenants: Iterable[str]) -> Mapping[tuple[str, str], Signer]:
        """Return signers for every source of these tenants, issuing their credentials."""
        return cast.at_home(self.store, sorted(tenants), now_ms=wall_ms())

    def start(
        self,
        *stages: str,
        replica: str = "0",
        options: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
    ) -> Worker:
        """Start a worker; it takes seconds until it has partitions."""
        log = private_file(self.home / "logs" / f"worker-{'-'.join(stages)}-{replica}.log")
        variables = {**os.environ, HOME_VARIABLE: str(self.home), **(environment or {})}
        with log.open("ab") as file:
            process = self.launch(["work", *stages, "--replica", replica, *options], variables, file)
        worker = Worker(tuple(stages), replica, log, process)
        self.workers.append(worker)
        return worker

    def kill(self, worker: Worker) -> None:
        """Kill -9, and wait until it is gone."""
        worker.process.send_signal(signal.SIGKILL)
        worker.process.wait()
        self.workers.remove(worker)

    def stop(self, *workers: Worker) -> None:
        """Stop workers as an operator would. Raises StackError where one fails or hangs."""
        for worker in workers:
            worker.process.terminate()
        for worker in workers:
            try:
                code = worker.process.wait(STOP_S_MAX)
            except subprocess.TimeoutExpired:
                raise StackError(f"worker {worker.stages} did not stop within {STOP_S_MAX} s") from None
            self.workers.remove(worker)
            if code != 0:
                raise StackError(f"worker {worker.stages} ended with {code}:\n{tail(worker.log)}")

    def check(self) -> None:
        """Raise StackError where a worker has ended by itself."""
        for worker in self.workers:
            if worker.process.poll() is not None:
                raise StackError(f"worker {worker.stages} ended with {worker.process.returncode}:\n{tail(worker.log)}")

    def lag(self, upto: int = len(GROUPS)) -> int:
        """Return how many records the first ``upto`` stages have not committed yet."""
        return sum(self._behind(number) for number in range(upto))

    def _behind(self, number: int) -> int:
        """Return how many records a stage has not committed yet, in two requests: who asks is measured, too."""
        group, topics = GROUPS[number]
        wanted = [TopicPartition(topic, each) for topic in topics for each in range(names.PARTITIONS)]
        committed = self._committed(self._consumer(group), wanted)
        ends = self._ends(wanted)
        return sum(ends[one.topic, one.partition] - max(one.offset, 0) for one in committed)

    def _ends(self, wanted: Sequence[TopicPartition]) -> dict[tuple[str, int], int]:
        if self._admin is None:
            self._admin = AdminClient({**self.connection.confluent(names.USER_ADMIN), "log_level": 0})
        answers = self._admin.list_offsets(dict.fromkeys(wanted, OffsetSpec.latest()), request_timeout=ANSWER_S)
        return {(one.topic, one.partition): answer.result().offset for one, answer in answers.items()}

    def committed(self, stage: str) -> int:
        """Return how many records a stage has committed, over all its inputs."""
        group, topics = GROUPS[STAGES.index(stage)]
        wanted = [TopicPartition(topic, number) for topic in topics for number in range(names.PARTITIONS)]
        return sum(max(found.offset, 0) for found in self._committed(self._consumer(group), wanted))

    def _committed(self, consumer: Any, wanted: list[TopicPartition]) -> list[TopicPartition]:
        """Ask for a group's commits, again where the coordinator of a group that was just born is not elected yet."""
        for attempt in range(ASK_TIMES_MAX):
            try:
                found: list[TopicPartition] = consumer.committed(wanted, timeout=ANSWER_S)
                return found
            except KafkaException as error:
                if attempt == ASK_TIMES_MAX - 1:
                    raise StackError(f"the broker does not say what is committed: {error}") from None
            time.sleep(1.0)
        raise AssertionError

    def ends(self, topic: str) -> list[int]:
        """Return the end offset of each partition."""
        found = self._ends([TopicPartition(topic, number) for number in range(names.PARTITIONS)])
        return [found[topic, number] for number in range(names.PARTITIONS)]

    def _consumer(self, group: str) -> Any:
        if group not in self._lag:
            self._lag[group] = offsets_of({**self.connection.confluent(names.USER_ADMIN), "log_level": 0}, group)
        return self._lag[group]

    def drain(self, seconds_max: float) -> None:
        """Wait until every stage has committed everything. Raises StackError where that takes longer than allowed.

        Who waits asks in the order of the data, and no further than the first that is behind: what is asked costs the
        broker that is being measured.
        """
        began, told = time.monotonic(), 0.0
        while True:
            self.check()
            behind = ((stage, self._behind(number)) for number, stage in enumerate(STAGES))
            stage, left = next((one for one in behind if one[1]), ("", 0))
            if left == 0:  # a stage commits after its outputs are in, so an empty chain stays empty
                return
            spent = time.monotonic() - began
            if spent > seconds_max:
                raise StackError(f"{left} records are still before {stage} after {seconds_max:.0f} s")
            if spent - told > 10:
                told = spent
                self.setting.say(f"waiting for {stage}: {left} records left")
            time.sleep(POLL_S)

    def producer(self, **settings: Any) -> Any:
        """Return a producer that keeps the order of what it is given, whoever signed it."""
        fixed = {"partitioner": PARTITIONER, "enable.idempotence": True, "acks": "all", "linger.ms": 5, "log_level": 0}
        return Producer({**self.connection.confluent(names.USER_ADMIN), **fixed, **settings})

    def close(self) -> None:
        """Kill what still runs and close the connections."""
        for worker in list(self.workers):
            self.kill(worker)
        for consumer in self._lag.values():
            consumer.close()


Place = tuple[str, int, int]
"""Topic, partition and offset of a record."""


class Sender:
    """Publishes messages and remembers where the broker put them."""

    def __init__(self, bed: Bed, producer: Any = None) -> None:
        self._producer = producer or bed.producer()
        self.places: dict[Any, Place] = {}

    def send(
        self,
        name: Any,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = (),
        partition: int | None = None,
        topic: str = names.EVENTS,
    ) -> None:
        """Queue one message under a name of the caller's; wait where the producer's buffer is full."""

        def delivered(error: Any, message: Any) -> None:
            if error is None:
                self.places[name] = (message.topic(), message.partition(), message.offset())

        options: dict[str, Any] = {} if partition is None else {"partition": partition}
        while True:
            try:
                self._producer.produce(
                    topic, key=key, value=value, headers=list(headers), on_delivery=delivered, **options
                )
                break
            except BufferError:
                self._producer.poll(0.1)
        self._producer.poll(0)

    def publish(self, event: Published, signers: Mapping[tuple[str, str], Signer]) -> None:
        """Sign and queue one event under its event id and tenant."""
        self.send((event.payload.tenant, event.payload.id), *signed(event, signers))

    def flush(self) -> None:
        """Wait until the broker has everything. Raises StackError otherwise."""
        left = self._producer.flush(ANSWER_S * 4)
        if left:
            raise StackError(f"{left} messages were not acknowledged")


def tail(log: Path) -> str:
    """Return the end of a log."""
    return log.read_text(encoding="utf-8", errors="replace")[-TAIL_CHARS:]


@contextmanager
def bed(setting: Setting, *, policy: Mapping[str, Any] | None = None) -> Iterator[Bed]:
    """Yield a stack of its own under a policy (None: the one that ships), and leave nothing behind.

    Raises StackError where it cannot be brought up.
    """
    home = Path(tempfile.mkdtemp(prefix="memsluice-figure-"))
    running: Bed | None = None
    try:
        connection = bring_up(home)
        store = KeyStore.init(home, wall_ms())
        if policy is not None:
            file = Home.at(home).policy_file
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(yaml.safe_dump(dict(policy)), encoding="utf-8")
        setting.say("broker and store answer")
        running = Bed(home, connection, store, setting)
        yield running
    finally:
        if running is not None:
            running.close()
        control.down(home, wipe=True)
        shutil.rmtree(home, ignore_errors=True)


def messages(bed: Bed, topic: str, ends: Sequence[int] | None = None) -> Iterator[Any]:
    """Yield every record of a topic, partition by partition, up to its present end (confluent-kafka messages)."""
    settings = {"group.id": "memsluice-figures-reader", "enable.auto.commit": False, "enable.partition.eof": True}
    consumer = Consumer(
        {
            **bed.connection.confluent(names.USER_ADMIN),
            **settings,
            "auto.offset.reset": "earliest",
            "fetch.message.max.bytes": 8_388_608,
            "log_level": 0,
        }
    )
    try:
        for number, end in enumerate(bed.ends(topic) if ends is None else ends):
            if end == 0:
                continue
            consumer.assign([TopicPartition(topic, number, 0)])
            position, began = 0, time.monotonic()
            while position < end:
                message = consumer.poll(1.0)
                if message is None or (message.error() is None and message.partition() != number):
                    if time.monotonic() - began > ANSWER_S * 4:
                        raise StackError(f"{topic}[{number}] could not be read beyond {position} of {end}")
                    continue
                if message.error() is not None:  # the end of the partition; compaction may have left fewer records
                    position = end
                    continue
                position = message.offset() + 1
                yield message
    finally:
        consumer.close()
