"""A :class:`~memsluice_lab.world.World` on the real stack: a real broker, workers as processes, Weaviate."""

import time
from collections.abc import Mapping
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from memsluice.client.build import Message
from memsluice.clock import wall_ms
from memsluice.encoder import Encoder
from memsluice.envelope.dsse import Signer
from memsluice.errors import StackError
from memsluice.readers.apart import ApartTopic
from memsluice.recall.freshness import FreshnessIndex
from memsluice.recall.recaller import Recaller
from memsluice.stores.base import VectorStore
from memsluice.stores.weaviate.store import WeaviateStore
from memsluice.topics import names
from memsluice_lab import cast
from memsluice_lab.figures.bed import ANSWER_S, STAGES, Bed, Sender
from memsluice_lab.world import HEARD_TOPICS, World

DRAIN_S_MAX = 300.0
REGISTRY_SEEN_S = 1.5
"""Workers look at the registry once a second."""


class StackWorld(World):
    """Runs its own workers on a bed's stack. ``store`` is what recalls ask (None: Weaviate, as the recall service)."""

    def __init__(
        self,
        bed: Bed,
        signers: Mapping[tuple[str, str], Signer],
        encoder: Encoder,
        *,
        run: str,
        store: VectorStore | None = None,
    ) -> None:
        super().__init__(signers, run)
        self.bed = bed
        self._encoder = encoder
        self._sender = Sender(bed)
        self._sent = 0
        self._waiting = False
        settings = {"group.id": "memsluice-figures-world", "enable.auto.commit": False, "log_level": 0}
        settings["enable.partition.eof"] = True  # the end is a transaction's marker, which nobody is given
        self._consumer = Consumer({**bed.connection.confluent(names.USER_ADMIN), **settings})
        self._read = {(topic, number): end for topic in HEARD_TOPICS for number, end in enumerate(bed.ends(topic))}
        self.store = store or WeaviateStore.of(bed.connection, names.WEAVIATE_RECALL)
        self._log = ApartTopic(bed.connection, names.USER_READER, names.STORE)
        time.sleep(REGISTRY_SEEN_S)
        for stage in STAGES:
            bed.start(stage)

    def now_ms(self) -> int:
        """Return the time."""
        return wall_ms()

    def wait(self, ms: int) -> None:
        """Let time pass, after what was published is through."""
        self.settle()
        time.sleep(ms / 1_000)

    def send(self, topic: str, message: Message) -> None:
        """Produce; the producer keeps the order of what it is given."""
        self._sent += 1
        self._waiting = True
        self._sender.send(self._sent, *message, topic=topic)

    def settle(self) -> None:
        """Wait until the broker has everything and all stages have committed it; then hear what the gate said.

        A recall alone is not waited for: it changes nothing that the next one is given, and stands before what follows.
        """
        if not self._waiting:
            return
        self._waiting = False
        self._sender.flush()
        self.bed.drain(DRAIN_S_MAX)
        keyring = self.bed.store.keyring()
        for topic in HEARD_TOPICS:
            for number, end in enumerate(self.bed.ends(topic)):
                for message in self._records(topic, number, end):
                    headers = tuple((name, value) for name, value in message.headers() or ())
                    self.heard.take(keyring, topic, message.key(), message.value(), headers)

    def _records(self, topic: str, number: int, end: int) -> list[Any]:
        """Return the records of a partition from where it was read last to its present end."""
        start = self._read[topic, number]
        if start >= end:
            return []
        self._consumer.assign([TopicPartition(topic, number, start)])
        found: list[Any] = []
        deadline = time.monotonic() + ANSWER_S
        while start < end:
            message = self._consumer.poll(0.5)
            if message is not None and (message.topic(), message.partition()) == (topic, number):
                if message.error() is not None:
                    break
                start = message.offset() + 1
                found.append(message)
            elif time.monotonic() > deadline:
                raise StackError(f"{topic}[{number}] could not be read beyond {start} of {end}")
        self._read[topic, number] = end
        return found

    def recaller(self) -> Recaller:
        """Return what asks Weaviate, with the broker's freshness index."""

        def publish(recall: Any) -> None:
            waiting = self._waiting
            self.publish("reader", recall)
            self._sender.flush()
            self._waiting = waiting

        return Recaller(
            store=self.store,
            encoder=self._encoder,
            keys=self.bed.store.keyring,
            permits=cast.reader_permits(self.bed.store.registry, wall_ms),
            publish=publish,
            now_ms=wall_ms,
            new_id=self.name,
            freshness=FreshnessIndex(self._log, self.bed.store.keyring, names.PARTITIONS),
        )

    def close(self) -> None:
        """Stop the workers as an operator would, and close the connections."""
        self.bed.stop(*list(self.bed.workers))
        self._consumer.close()
        self._log.close()
        self.store.close()
