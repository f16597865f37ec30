"""Topics, records and worker processes for the tests of the Kafka runtime. Everything talks to the real broker."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from confluent_kafka import Consumer, ConsumerGroupState, KafkaError, KafkaException, Producer
from confluent_kafka import TopicPartition as CTP
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)

from memsluice.deployment.connection import Connection
from memsluice.events.records import Record

from .worker_process import HANG_S, Worker

HERE = Path(__file__).parent
PATIENT = {"session_s": 120.0, "rebalance_s": 60.0, "stop_s": 120.0}
"""How a stage is tuned unless a test says otherwise: a machine that stands still for half a minute costs no worker its
membership, and none that stops is cut off."""
ELECTING = (
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
)
NOWHERE = Connection(bootstrap="127.0.0.1:1", weaviate_http_port=1, weaviate_grpc_port=1, users={"admin": "x"})
"""A connection to nothing."""


@dataclass
class Lab:
    """One test's corner of the broker: its own topics, group and data folder."""

    connection: Connection
    folder: Path
    user: str = "admin"
    tag: str = field(default_factory=lambda: uuid.uuid4().hex[:10])
    workers: list[Worker] = field(default_factory=list)
    clients: dict[str, Consumer] = field(default_factory=dict)
    counted: dict[str, int] = field(default_factory=dict)
    reached: dict[str, dict[int, int]] = field(default_factory=dict)
    rules: list[AclBinding] = field(default_factory=list)

    @property
    def source(self) -> str:
        """Name of the input topic."""
        return f"t-{self.tag}-in"

    @property
    def target(self) -> str:
        """Name of the output topic."""
        return f"t-{self.tag}-out"

    @property
    def group(self) -> str:
        """Faust app id and consumer group."""
        return f"t-{self.tag}"

    @property
    def changelog(self) -> str:
        """Name of the state's changelog."""
        return f"{self.group}-state-changelog"

    def until(self, done: Callable[[], Any], what: str, every_s: float = 0.1) -> None:
        """Poll until ``done`` returns something true. A worker that failed meanwhile ends the waiting."""
        deadline = time.monotonic() + HANG_S
        while not done():
            failed = [worker for worker in self.workers if worker.process.poll() not in (None, 0, -signal.SIGKILL)]
            assert not failed, f"{what}: a worker failed\n{failed[0].text()[-4000:]}"
            texts = "\n".join(worker.text()[-3000:] for worker in self.workers[-2:])
            assert time.monotonic() < deadline, f"did not happen within {HANG_S:.0f} s: {what}\n{texts}"
            time.sleep(every_s)

    def create(self, topics: Mapping[str, int], **config: str) -> None:
        """Create topics with so many partitions each, stamped by the broker."""
        asyncio.run(self._create(topics, {"message.timestamp.type": "LogAppendTime", **config}))
        client = self._client(self.group)
        for name, number in topics.items():  # the broker shows a topic a moment after its controller made it
            self.until(lambda n=name, m=number: len(client.list_topics(n).topics[n].partitions) == m, f"topic {name}")

    async def _create(self, topics: Mapping[str, int], config: Mapping[str, str]) -> None:
        async with _admin(self) as admin:
            await admin.create_topics([NewTopic(name, n, 1, topic_configs=dict(config)) for name, n in topics.items()])

    def prepare(self, partitions: int, *, changelog: Mapping[str, str] | None = None) -> None:
        """Create the input, the output and the changelog topic."""
        self.create({self.source: partitions, self.target: partitions}, **{"max.message.bytes": "5242880"})
        self.create({self.changelog: partitions}, **{"cleanup.policy": "compact", **(changelog or {})})

    def send(self, records: Iterable[Record], **settings: Any) -> None:
        """Append records (topic, partition, key, value and headers of each are used) and wait for the broker."""
        producer = Producer(
            {
                **self.connection.confluent(self.user),
                "enable.idempotence": True,
                "message.max.bytes": 5_242_880,
                "queue.buffering.max.messages": 1_000_000,
                **settings,
            }
        )
        failed: list[Any] = []
        for record in records:
            producer.produce(
                record.topic,
                value=record.value,
                key=record.key,
                partition=record.partition,
                headers=list(record.headers),
                on_delivery=lambda error, _: failed.append(error) if error else None,
            )
            producer.poll(0)
        assert producer.flush(HANG_S) == 0
        assert not failed, failed[0]

    def fill(self, count: int, partitions: int = 1, keys: int = 7, start: int = 0) -> None:
        """Append ``count`` small records to the input, spread over keys and partitions."""
        self.send(
            Record(self.source, i % partitions, 0, b"k%d" % (i % keys), b"v%d" % i) for i in range(start, start + count)
        )

    def read(self, topic: str) -> list[Record]:
        """Return everything in ``topic`` now, by partition and offset."""
        return asyncio.run(self._read(topic))

    async def _read(self, topic: str) -> list[Record]:
        consumer = AIOKafkaConsumer(
            **self.connection.aiokafka(self.user),
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            request_timeout_ms=int(HANG_S * 1000),
        )
        await consumer.start()
        try:
            await consumer._client.force_metadata_update()
            numbers = await consumer._client._wait_on_metadata(topic)
            tps = [TopicPartition(topic, n) for n in sorted(numbers or ())]
            consumer.assign(tps)
            ends = await consumer.end_offsets(tps)
            starts = await consumer.beginning_offsets(tps)
            found: dict[Any, list[Record]] = {tp: [] for tp in tps}
            waiting = {tp for tp in tps if ends[tp] > starts[tp]}
            while waiting:
                for tp, messages in (await consumer.getmany(timeout_ms=500)).items():
                    for m in messages:
                        found[tp].append(
                            Record(m.topic, m.partition, m.offset, m.key, m.value, tuple(m.headers), m.timestamp)
                        )
                waiting = {tp for tp in waiting if await consumer.position(tp) < ends[tp]}
            return [record for tp in tps for record in found[tp]]
        finally:
            await consumer.stop()

    def committed(self, group: str | None = None, topic: str | None = None) -> dict[tuple[str, int], int]:
        """Return the group's committed offsets on the input topic, or on another."""
        consumer, topic = self._client(group or self.group), topic or self.source
        tps = [CTP(topic, n) for n in consumer.list_topics(topic).topics[topic].partitions]
        deadline = time.monotonic() + HANG_S
        while True:
            try:
                return {(tp.topic, tp.partition): tp.offset for tp in consumer.committed(tps, HANG_S) if tp.offset >= 0}
            except KafkaException as error:  # a broker's first group: its coordinator is being elected
                if error.args[0].code() not in ELECTING or time.monotonic() > deadline:
                    raise
            time.sleep(0.2)

    def total(self, topic: str) -> int:
        """Return how many records of ``topic`` are committed; one without a transaction is at once."""
        if topic not in self.counted:
            consumer = Consumer(
                {
                    **self.connection.confluent(self.user),
                    "group.id": f"{self.group}-count",
                    "enable.auto.commit": False,
                    "enable.partition.eof": True,
                    "auto.offset.reset": "earliest",
                    "fetch.wait.max.ms": 10,
                }
            )
            numbers = consumer.list_topics(topic).topics[topic].partitions
            consumer.assign([CTP(topic, n, 0) for n in numbers])
            self.counted[topic], self.reached[topic] = 0, dict.fromkeys(numbers, 0)
            self.clients[f"count {topic}"] = consumer
        consumer, reached = self.clients[f"count {topic}"], self.reached[topic]
        ends = {n: consumer.get_watermark_offsets(CTP(topic, n), HANG_S)[1] for n in reached}
        deadline = time.monotonic() + HANG_S
        while any(reached[n] < end for n, end in ends.items()):
            assert time.monotonic() < deadline, f"{topic} could not be read within {HANG_S:.0f} s: {reached} of {ends}"
            for message in consumer.consume(1000, timeout=0.1):
                if message.error() is None:
                    self.counted[topic] += 1
                    reached[message.partition()] = message.offset() + 1
                elif message.error().code() == KafkaError._PARTITION_EOF:  # behind markers, which are no messages
                    reached[message.partition()] = message.offset()
        return self.counted[topic]

    def holds(self, topic: str, count: int) -> None:
        """Assert that ``topic`` comes to hold so many committed records: a commit is told before its markers stand."""
        self.until(lambda: self.total(topic) >= count, f"{count} records in {topic}")
        assert self.total(topic) == count

    def end(self, topic: str, partition: int) -> int:
        """Return the offset that the next record of a partition will get."""
        return int(self._client(self.group).get_watermark_offsets(CTP(topic, partition), HANG_S)[1])

    def allow(self, user: str, rules: Iterable[tuple[str, str, str]]) -> None:
        """Grant ``user`` operations: (``topic``, ``group`` or ``transactional_id``, name or name*, operation) each.

        They are removed at the end.
        """
        for kind, name, operation in rules:
            self.rules.append(
                AclBinding(
                    ResourceType[kind.upper()],
                    name.removesuffix("*"),
                    ResourcePatternType.PREFIXED if name.endswith("*") else ResourcePatternType.LITERAL,
                    f"User:{user}",
                    "*",
                    AclOperation[operation],
                    AclPermissionType.ALLOW,
                )
            )
        admin = self._admin()
        for done in admin.create_acls(self.rules).values():
            done.result(HANG_S)
        for rule in self.rules:  # the broker goes by a rule a moment after its controller took it
            mine = _matching(rule)
            self.until(lambda mine=mine: admin.describe_acls(mine).result(HANG_S), "the rule to be in force")

    def _disallow(self) -> None:
        if not self.rules:
            return
        admin = self._admin()
        for mine in map(_matching, self.rules):
            for done in admin.delete_acls([mine]).values():
                done.result(HANG_S)
            self.until(lambda mine=mine: not admin.describe_acls(mine).result(HANG_S), "the rule to be gone")

    def _admin(self) -> AdminClient:
        return AdminClient({**self.connection.confluent(self.user), "socket.timeout.ms": int(HANG_S * 1000)})

    def members(self) -> int:
        """Return how many members the group has that were given partitions, or 0 while it is rebalancing."""
        admin = self._admin()  # kept while its futures are open
        try:
            group = admin.describe_consumer_groups([self.group])[self.group].result(HANG_S)
        except KafkaException:
            return 0  # no such group yet
        if group.state != ConsumerGroupState.STABLE:
            return 0
        return sum(1 for member in group.members if member.assignment and member.assignment.topic_partitions)

    def truncate(self, topic: str, partition: int, before: int) -> None:
        """Delete the records before an offset, as retention would."""
        admin = self._admin()
        for done in admin.delete_records([CTP(topic, partition, before)]).values():
            done.result(HANG_S)

    def _client(self, group: str) -> Consumer:
        """Return a client that asks about ``group`` and is no member of it."""
        if group not in self.clients:
            settings = {**self.connection.confluent(self.user), "group.id": group, "enable.auto.commit": False}
            self.clients[group] = Consumer(settings)
        return self.clients[group]

    def stage(self, make: str, kind: str, **options: Any) -> dict[str, Any]:
        """Describe a stage for worker_main.py."""
        return {
            "name": make.lower(),
            "app_id": self.group,
            "user": self.user,
            "inputs": [self.source],
            "outputs": [self.target],
            "kind": kind,
            "make": make,
            **options,
            "tuning": {**PATIENT, **options.get("tuning", {})},
        }

    def start(
        self,
        *stages: Mapping[str, Any],
        replica: str = "0",
        faults: Mapping[str, Any] | None = None,
        environment: Mapping[str, str] | None = None,
        script: str = "worker_main.py",
    ) -> Worker:
        """Start a worker process on the stages, with the faults that ``script`` is to plant."""
        saved = self.folder / "connection.json"
        if not saved.exists():
            self.connection.save(saved)
        plan = self.folder / f"plan-{replica}-{len(self.workers)}.json"
        data = self.folder / "data"
        plan.write_text(
            json.dumps(
                {
                    "connection": str(saved),
                    "data_dir": str(data),
                    "replica": replica,
                    "stages": list(stages),
                    "faults": dict(faults or {}),
                }
            )
        )
        log = plan.with_suffix(".log")
        with log.open("wb") as out:
            process = subprocess.Popen(
                [sys.executable, str(HERE / script), str(plan)],
                stdout=out,
                stderr=subprocess.STDOUT,
                env={**os.environ, **(environment or {})},
            )
        worker = Worker(process, log)
        self.workers.append(worker)
        return worker

    def close(self) -> None:
        """End every worker that is left and remove the topics and the group."""
        for worker in self.workers:
            worker.kill()
        for client in self.clients.values():
            client.close()
        self._disallow()
        asyncio.run(self._remove())

    async def _remove(self) -> None:
        async with _admin(self) as admin:
            mine = [name for name in await admin.list_topics() if name.startswith(f"t-{self.tag}")]
            if mine:
                await admin.delete_topics(mine)


def _matching(rule: AclBinding) -> AclBindingFilter:
    return AclBindingFilter(
        rule.restype,
        rule.name,
        rule.resource_pattern_type,
        rule.principal,
        rule.host,
        rule.operation,
        rule.permission_type,
    )


class _admin:
    def __init__(self, lab: Lab) -> None:
        patience = {"request_timeout_ms": int(HANG_S * 1000)}
        self._client = AIOKafkaAdminClient(**lab.connection.aiokafka(lab.user), **patience)

    async def __aenter__(self) -> AIOKafkaAdminClient:
        await self._client.start()
        return self._client

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()


def values(records: Sequence[Record]) -> list[bytes | None]:
    """Return the records' values in order."""
    return [record.value for record in records]
