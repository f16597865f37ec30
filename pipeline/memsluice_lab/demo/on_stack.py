"""The demo on the real stack: a real broker, the stages as worker processes, a real vector store."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from rich.console import Console

from memsluice.cli.terminal import progress
from memsluice.clock import wall_ms
from memsluice.deployment.connection import Connection
from memsluice.deployment.home import Home
from memsluice.devstack.bringup import bring_up
from memsluice.encoder import Encoder
from memsluice.errors import StackError
from memsluice.events.models import Recall
from memsluice.events.partition import partition_of
from memsluice.keystore.store import KeyStore
from memsluice.readers.apart import ApartTopic
from memsluice.recall.freshness import FreshnessIndex
from memsluice.recall.recaller import Recaller
from memsluice.stores.base import VectorStore
from memsluice.stores.weaviate.store import WeaviateStore
from memsluice.topics import names
from memsluice_lab.cast import reader_permits
from memsluice_lab.demo import show, summary
from memsluice_lab.demo.ledger import Ledger
from memsluice_lab.demo.own_home import alone
from memsluice_lab.demo.site import Message
from memsluice_lab.streams import Restamp

WORKERS = (("seal",), ("screen", "land"))
"""Two processes: the encoder in one, what waits for the network in the other."""
REPLICA = "demo"
ACKNOWLEDGED_S, SETTLED_S_MAX, STOPPED_S_MAX = 15.0, 180.0, 30.0
POLL_S = 0.1
CREDENTIALS_SEEN_S = 1.5
"""Workers look at the registry once a second."""
TAIL_CHARS = 800


class Workers:
    """``memsluice work`` as child processes of this one, which hold its pipes: they end with it, however it dies."""

    def __init__(self, home: Home) -> None:
        self.log = home.layout.logs / "demo-workers.log"
        self._running: list[subprocess.Popen[bytes]] = []
        with self.log.open("wb") as file:
            os.fchmod(file.fileno(), 0o600)
            for stages in WORKERS:
                command = [sys.executable, "-m", "memsluice.cli.main", "work", *stages]
                options = ["--replica", REPLICA, "--home", str(home.path), "--while-stdin"]
                self._running.append(
                    subprocess.Popen([*command, *options], stdin=subprocess.PIPE, stdout=file, stderr=file)
                )

    def check(self) -> None:
        """Raise StackError where a worker has ended by itself."""
        for process in self._running:
            if process.poll() is not None:
                tail = self.log.read_text(errors="replace")[-TAIL_CHARS:]
                raise StackError(f"a worker ended with {process.returncode}; {self.log} ends with:\n{tail}")

    def stop(self) -> None:
        """Stop the workers as an operator would, and kill what does not stop in time."""
        for process in self._running:
            process.terminate()
        for process in self._running:
            try:
                process.wait(STOPPED_S_MAX)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdin is not None:
                process.stdin.close()  # not before: it would cut off a worker that is stopping
        self._running.clear()


class _Ears:
    """Reads audit, dead letters and landings from where they ended when this was made, in a thread of its own."""

    def __init__(self, connection: Connection, ledger: Ledger) -> None:
        settings = {"group.id": "memsluice-operator-demo", "enable.auto.commit": False, "log_level": 0}
        self._consumer = Consumer({**connection.confluent(names.USER_OPERATOR), **settings})
        self._ledger = ledger
        self._stopping = threading.Event()
        self.failure: Exception | None = None
        wanted = []
        for topic in (names.AUDIT, names.DEAD_LETTER, names.STORE):
            for number in range(names.PARTITIONS):
                place = TopicPartition(topic, number)
                place.offset = self._consumer.get_watermark_offsets(place, timeout=ACKNOWLEDGED_S)[1]
                wanted.append(place)
        self._consumer.assign(wanted)
        self._thread = threading.Thread(target=self._listen, name="demo-ears", daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        try:
            while not self._stopping.is_set():
                for message in self._consumer.consume(500, timeout=POLL_S):
                    if message.error() is not None:
                        raise KafkaException(message.error())
                    self._ledger.take(message.topic(), message.key(), message.value(), tuple(message.headers() or ()))
        except Exception as error:  # whatever it is, the demo's own thread says it
            self.failure = error

    def close(self) -> None:
        """Stop listening."""
        self._stopping.set()
        self._thread.join(ACKNOWLEDGED_S)
        self._consumer.close()


class StackSite:
    """A :class:`~memsluice_lab.demo.site.Site` on a running stack with workers."""

    def __init__(self, home: Home, connection: Connection, ledger: Ledger, keys: KeyStore) -> None:
        self.title = f"Kafka at {connection.bootstrap}, stages on Faust, Weaviate"
        self._keys = keys
        self._ledger = ledger
        with ExitStack() as opened:
            self._ears = _Ears(connection, ledger)
            opened.callback(self._ears.close)
            self._producers = {
                names.EVENTS: _producer(connection, names.USER_PRODUCER),
                names.COMMANDS: _producer(connection, names.USER_OPERATOR),
            }
            self.store: VectorStore = WeaviateStore.of(connection, names.WEAVIATE_LAND)
            opened.callback(self.store.close)
            self._reads: VectorStore = WeaviateStore.of(connection, names.WEAVIATE_RECALL)
            opened.callback(self._reads.close)
            log = ApartTopic(connection, names.USER_READER, names.STORE)
            opened.callback(log.close)
            self._freshness = FreshnessIndex(log, keys.keyring, names.PARTITIONS)
            self._workers = Workers(home)
            opened.callback(self._workers.stop)
            self._opened = opened.pop_all()

    def at(self, minute: float) -> None:
        """Do nothing: a real broker stamps records with the present."""

    def now_ms(self) -> int:
        """Return the time."""
        return wall_ms()

    def send(self, topic: str, message: Message, *, partition: int | None = None) -> tuple[str, int, int]:
        """Produce a message and wait for the broker's acknowledgement."""
        key, value, headers = message
        if partition is None:
            partition = partition_of((key or b"").decode("utf-8", "surrogateescape"), names.PARTITIONS)
        places: list[tuple[str, int, int]] = []
        failures: list[Any] = []

        def delivered(error: Any, record: Any) -> None:
            if error is not None:
                failures.append(error)
            else:
                places.append((record.topic(), record.partition(), record.offset()))

        producer = self._producers[topic]
        producer.produce(topic, key=key, value=value, headers=list(headers), partition=partition, callback=delivered)
        producer.flush(ACKNOWLEDGED_S)
        if not places:
            raise StackError(f"the broker did not take a message: {failures[0] if failures else 'no answer'}")
        return places[0]

    def catch_up(self) -> None:
        """Do nothing: the stages run by themselves."""

    def settle(self) -> None:
        """Wait until every message has a verdict and what lands has landed. Raises StackError after three minutes."""
        deadline = time.monotonic() + SETTLED_S_MAX
        while self._ledger.unsettled():
            self._workers.check()
            if self._ears.failure is not None:
                raise StackError(f"reading the gate's outputs failed: {self._ears.failure}")
            if time.monotonic() > deadline:
                raise StackError(f"{self._ledger.unsettled()} events have no verdict yet; see {self._workers.log}")
            time.sleep(POLL_S)

    def recaller(self, encoder: Encoder, publish: Callable[[Recall], None], new_id: Callable[[], str]) -> Recaller:
        """Return what asks Weaviate, with the broker's freshness index."""
        return Recaller(
            store=self._reads,
            encoder=encoder,
            keys=self._keys.keyring,
            permits=reader_permits(self._keys.registry, wall_ms),
            publish=publish,
            now_ms=wall_ms,
            new_id=new_id,
            freshness=self._freshness,
        )

    def close(self) -> None:
        """Stop the workers and close the connections; the stack stays up."""
        self._opened.close()


def _producer(connection: Connection, user: str) -> Any:
    fixed = {"enable.idempotence": True, "acks": "all", "linger.ms": 0, "log_level": 0}
    return Producer({**connection.confluent(user), **fixed})


def stacked(console: Console, options: show.Options) -> None:
    """Bring the stack up where it is not running, play on it and print the summary.

    Where nobody names a home, the demo has one of its own: made-up tenants belong in nobody's deployment.
    """
    home = Home((options.home or Home.at().path / "demo-stack").expanduser().resolve())
    with alone(home):
        _stacked(console, options, home)


def _stacked(console: Console, options: show.Options, home: Home) -> None:
    loading = show.Loading()
    with progress(console) as reporter:
        connection = bring_up(home.path, None, reporter)
    began_ms = wall_ms()
    keys = KeyStore.init(home.path, began_ms)
    prepared = show.prepare(options, keys, Restamp(f"r{began_ms:x}", wall_ms))
    signers = show.signers_of(keys, prepared, began_ms)
    time.sleep(CREDENTIALS_SEEN_S)
    where = summary.safe(str(home.path))
    console.print(f"  [green]✓[/] {len(signers)} credentials, keys of the gate in {where}", highlight=False)
    ledger = Ledger(keys.keyring, time.monotonic)
    encoder = loading.wait(console)
    site = StackSite(home, connection, ledger, keys)
    with ExitStack() as stack:
        stack.callback(site.close)
        show.play(console, prepared, site, ledger, signers, encoder, began_ms)
    if options.data is not None:
        console.print("[dim]A real broker stamps records with the present: the stream's days passed in minutes, and "
                      "limits a day counted all of them.[/]")  # fmt: skip
    summary.following(console, show.next_commands(prepared, home, stack=True))
