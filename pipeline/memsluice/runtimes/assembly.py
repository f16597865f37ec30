"""Puts the stages together from a home directory: the same objects for the embedded runtime and for Kafka workers."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from memsluice.clock import wall_ms
from memsluice.deployment.connection import Connection
from memsluice.deployment.home import Home
from memsluice.deployment.paths import private_file
from memsluice.encoder import Encoder, load_encoder, space_of_encoder
from memsluice.gate.policy import model as policies
from memsluice.keystore.store import KeyStore
from memsluice.readers.local import LocalTopic
from memsluice.recall.freshness import FreshnessIndex
from memsluice.runtimes.embedded import Embedded, Listener, LocalLog
from memsluice.stages.land import LandStage
from memsluice.stages.reconcile import Reconciler
from memsluice.stages.seal import SealStage
from memsluice.stages.store_sweep import StoreSweep
from memsluice.stores.base import VectorStore, check_encoder
from memsluice.stores.log_index import Ended, LogIndex
from memsluice.stores.opening import open_embedded, open_store
from memsluice.topics import names

if TYPE_CHECKING:
    from memsluice.readers.base import TopicReader
    from memsluice.runtimes.kafka.spec import StageSpec
    from memsluice.stages.screen import ScreenStage

SEAL_BATCH, LAND_BATCH = 128, 128
SEAL_THREADS_MIN, SEAL_THREADS_MAX = 2, 8
"""Batches that *seal* works on at once: its batches share nothing, and one is signed while another is embedded."""
STAGES = ("seal", "screen", "land")
OpenTopic = Callable[[str, Ended], "TopicReader"]
"""Opens a topic's reader, which asks whether to stop wherever it waits for the broker."""


def seal_threads() -> int:
    """Return how many batches *seal* works on at once: one for each core that this process may use, within bounds."""
    affinity = getattr(os, "sched_getaffinity", None)  # macOS has none
    cores = (os.cpu_count() or 1) if affinity is None else len(affinity(0))
    return max(SEAL_THREADS_MIN, min(cores, SEAL_THREADS_MAX))


@dataclass(frozen=True, slots=True)
class Assembly:
    """One home's keys and policies, from which its stages are made.

    Policies are read once: a worker keeps those it started with. Keys and registry are re-read while it runs.
    """

    home: Home
    keys: KeyStore
    now_ms: Callable[[], int] = wall_ms

    @classmethod
    def at(cls, home: Home, now_ms: Callable[[], int] = wall_ms) -> "Assembly":
        """Return the assembly of a home; its gate keys are created where they are missing."""
        home.prepare()
        return cls(home, KeyStore.init(home.path, now_ms()), now_ms)

    def seal(self, encoder: Encoder) -> SealStage:
        """Return *seal*, taking secrets out as the home's policy file says. Raises PolicyError."""
        return SealStage(
            self.keys.keyring,
            self.keys.registry,
            encoder,
            names.PARTITIONS,
            self.now_ms,
            self.keys.refresh,
            policies.load_or_default(self.home.policy_file).of,
        )

    def screen(self) -> "ScreenStage":
        """Return *screen* under the home's policies. Raises PolicyError."""
        from memsluice.stages.screen import ScreenStage  # the one stage that takes a compiler to load

        return ScreenStage(
            self.keys.keyring, policies.load_or_default(self.home.policy_file).of, names.PARTITIONS, self.now_ms
        )

    def land(self, store: VectorStore, reader: OpenTopic | None = None) -> LandStage:
        """Return *land*, writing to ``store``; ``reader`` opens a topic: floors stand in memory.store.v1, and the sweep
        lands again from memory.accepted.v1. Without it, only what it landed itself is a floor, and nothing is swept."""
        if reader is None:
            return LandStage(self.keys.keyring, store, names.PARTITIONS, self.now_ms)
        log = LogIndex(partial(reader, names.STORE), self.keys.keyring)
        sweep = StoreSweep(self.reconciler(store, log, reader), store, log, names.PARTITIONS)
        return LandStage(self.keys.keyring, store, names.PARTITIONS, self.now_ms, log=log, sweep=sweep)

    def reconciler(self, store: VectorStore, log: LogIndex, reader: OpenTopic) -> Reconciler:
        """Return what compares a store with its log, and mends it."""
        return Reconciler(store, log, partial(reader, names.ACCEPTED), self.keys.keyring, names.PARTITIONS, self.now_ms)

    def embedded(self, encoder: Encoder, store: VectorStore, listener: Listener = lambda report: None) -> Embedded:
        """Return the embedded runtime over the home's log. Raises ConfigError for another encoder than the store's."""
        check_encoder(store, space_of_encoder(encoder))
        runtime = Embedded(
            private_file(self.home.log_file),
            seal=self.seal(encoder),
            screen=self.screen(),
            land=self.land(store, lambda topic, _ended: LocalTopic(runtime.log, topic=topic)),
            now_ms=self.now_ms,
            listener=listener,
        )
        return runtime

    def local_store(self) -> VectorStore:
        """Return the home's vector store; it is made where there is none."""
        return open_embedded(self.home.store_file)

    def local_log(self) -> LocalLog:
        """Return the home's log without stages, for readers. Raises ConfigError where there is none yet."""
        return self.home.local_log()

    def local_freshness(self, log: LocalLog) -> FreshnessIndex:
        """Return the freshness index over a local log."""
        return FreshnessIndex(LocalTopic(log, topic=names.STORE), self.keys.keyring, names.PARTITIONS, self.now_ms)

    def specs(self, connection: Connection) -> "dict[str, StageSpec]":
        """Return what the Kafka runtime needs of each stage, by name; encoder and store are opened at start."""
        from memsluice.runtimes.kafka.spec import StageSpec, Tuning

        return {
            "seal": StageSpec(
                name="seal",
                app_id=names.APP_SEAL,
                user=names.USER_SEAL,
                inputs=(names.EVENTS, names.COMMANDS, names.OVERFLOW),
                outputs=(names.SEALED, names.DEAD_LETTER, names.OVERFLOW),
                kind="batch",
                stage=lambda: self.seal(load_encoder(threads=1)),  # a batch, a thread
                keys=self.keys,
                transactional=(names.OVERFLOW,),
                overflow=names.OVERFLOW,
                tuning=Tuning(batch_size=SEAL_BATCH, threads=seal_threads()),
            ),
            "screen": StageSpec(
                name="screen",
                app_id=names.APP_SCREEN,
                user=names.USER_SCREEN,
                inputs=(names.SEALED,),
                outputs=(names.ACCEPTED, names.AUDIT, names.QUARANTINE),
                kind="stateful",
                stage=self.screen,
                keys=self.keys,
                transactional=(names.SEALED,),
            ),
            "land": StageSpec(
                name="land",
                app_id=names.APP_LAND,
                user=names.USER_LAND,
                inputs=(names.ACCEPTED,),
                outputs=(names.STORE, names.DEAD_LETTER),
                kind="batch",
                stage=lambda: self.land(
                    open_store(connection, names.WEAVIATE_LAND), _reader(connection, names.USER_LAND)
                ),
                keys=self.keys,
                transactional=(names.ACCEPTED,),
                tuning=Tuning(batch_size=LAND_BATCH),
            ),
        }


def _reader(connection: Connection, user: str) -> OpenTopic:
    """Return what opens a topic of a deployment as one of its users."""

    def opened(topic: str, ended: Ended) -> "TopicReader":
        from memsluice.readers.kafka import KafkaTopic

        return KafkaTopic.of(connection, user, topic, ended=ended)

    return opened
