"""A :class:`~memsluice_lab.world.World` in one process: the real stages over a log in memory and a FAISS store."""

from collections.abc import Callable, Iterable

from memsluice.client.build import Message
from memsluice.encoder import Encoder
from memsluice.gate.policy.model import PolicySet
from memsluice.readers.local import LocalTopic
from memsluice.recall.freshness import FreshnessIndex
from memsluice.recall.recaller import Recaller
from memsluice.runtimes.embedded import Embedded, StepReport
from memsluice.stages.land import LandStage
from memsluice.stages.screen import ScreenStage
from memsluice.stages.seal import SealStage
from memsluice.stores.faiss.store import FaissStore
from memsluice.topics.names import PARTITIONS, STORE
from memsluice_lab import cast
from memsluice_lab.world import HEARD_TOPICS, World

START_MS = 1_780_000_000_000
TICK_MS = 1_000


class EmbeddedWorld(World):
    """Time is simulated: every message a second later, and :meth:`wait` moves it on."""

    def __init__(self, tenants: Iterable[str], encoder: Encoder, policies: PolicySet, *, run: str = "e") -> None:
        self._keyring, self._registry, signers = cast.in_memory(sorted(tenants), seed="world")
        super().__init__(signers, run)
        self._now = START_MS
        self._encoder = encoder
        self.store = FaissStore(":memory:")
        clock: Callable[[], int] = self.now_ms
        self._runtime = Embedded(
            ":memory:",
            seal=SealStage(lambda: self._keyring, lambda: self._registry, encoder, PARTITIONS, clock),
            screen=ScreenStage(lambda: self._keyring, policies.of, PARTITIONS, clock),
            land=LandStage(lambda: self._keyring, self.store, PARTITIONS, clock),
            now_ms=clock,
            durable=False,
            listener=self._hear,
        )

    def _hear(self, report: StepReport) -> None:
        for output in (output for outputs in report.outputs for output in outputs):
            if output.topic in HEARD_TOPICS:
                self.heard.take(self._keyring, output.topic, output.key, output.value, output.headers)

    def now_ms(self) -> int:
        """Return the simulated time."""
        return self._now

    def wait(self, ms: int) -> None:
        """Move time on, after what waits is through."""
        self.settle()
        self._now += ms

    def send(self, topic: str, message: Message) -> None:
        """Append to the log."""
        self._now += TICK_MS
        self._runtime.append(topic, *message)

    def settle(self) -> None:
        """Run the stages until nothing waits."""
        self._runtime.run_until_idle()

    def recaller(self) -> Recaller:
        """Return what asks the FAISS store."""
        return Recaller(
            store=self.store,
            encoder=self._encoder,
            keys=lambda: self._keyring,
            permits=cast.reader_permits(lambda: self._registry, self.now_ms),
            publish=lambda recall: self.publish("reader", recall),  # type: ignore[arg-type]
            now_ms=self.now_ms,
            new_id=self.name,
            freshness=FreshnessIndex(
                LocalTopic(self._runtime.log, topic=STORE), lambda: self._keyring, PARTITIONS, self.now_ms
            ),
        )

    def close(self) -> None:
        """Close log and store."""
        self._runtime.close()
        self.store.close()
