"""The demo on the embedded runtime: one process, a file for the log and one for the store."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from memsluice.clock import wall_ms
from memsluice.deployment.home import Home
from memsluice.encoder import Encoder
from memsluice.events.models import Recall
from memsluice.keystore.store import KeyStore
from memsluice.recall.recaller import Recaller
from memsluice.runtimes.assembly import Assembly
from memsluice.runtimes.embedded import StepReport
from memsluice_lab.cast import reader_permits
from memsluice_lab.demo.ledger import Ledger
from memsluice_lab.demo.site import Message

DAY_STARTS_HOUR, DAY_MINUTES = 8, 600
BATCH = 32
"""Messages between two runs of the stages; a question runs them at once."""


def last_working_day(now_ms: int) -> int:
    """Return when the last whole working day, 8:00 to 18:00 UTC, began (Unix ms)."""
    now = datetime.fromtimestamp(now_ms / 1000, UTC)
    start = now.replace(hour=DAY_STARTS_HOUR, minute=0, second=0, microsecond=0)
    if start + timedelta(minutes=DAY_MINUTES) > now:
        start -= timedelta(days=1)
    return int(start.timestamp() * 1000)


class DayClock:
    """The append clock of a simulated day: ``start_ms`` (Unix ms) plus the minutes it was moved on."""

    def __init__(self, start_ms: int) -> None:
        self.start_ms = start_ms
        self._minute = 0.0

    def move(self, minute: float) -> None:
        """Move on; never back."""
        self._minute = max(self._minute, minute)

    def __call__(self) -> int:
        """Return the time in Unix milliseconds."""
        return self.start_ms + int(self._minute * 60_000)


class EmbeddedSite:
    """A :class:`~memsluice_lab.demo.site.Site` over a home's embedded log. ``encoder`` may still be loading."""

    title = "embedded: one process, SQLite log, FAISS store"

    def __init__(self, home: Home, ledger: Ledger, clock: DayClock, keys: KeyStore, encoder: Encoder) -> None:
        self._clock = clock
        self._assembly = Assembly(home, keys, clock)
        self._ledger = ledger
        self._waiting = 0
        self.store = self._assembly.local_store()
        self.runtime = self._assembly.embedded(encoder, self.store, self._heard)
        self._freshness = self._assembly.local_freshness(self.runtime.log)

    def _heard(self, report: StepReport) -> None:
        for outputs in report.outputs:
            for output in outputs:
                self._ledger.take(output.topic, output.key, output.value, output.headers)

    def at(self, minute: float) -> None:
        """Move the day's clock on."""
        self._clock.move(minute)

    def now_ms(self) -> int:
        """Return the day's time."""
        return self._clock()

    def send(self, topic: str, message: Message, *, partition: int | None = None) -> tuple[str, int, int]:
        """Append durably; every 32 messages the stages run."""
        key, value, headers = message
        place = self.runtime.append(topic, key, value, headers, partition=partition)
        self._waiting += 1
        if self._waiting >= BATCH:
            self.settle()
        return (topic, *place)

    def settle(self) -> None:
        """Run the stages until nothing waits."""
        self.runtime.run_until_idle()
        self._waiting = 0

    def catch_up(self) -> None:
        """Run the stages on what waits, so that a question finds what was written before it."""
        if self._waiting:
            self.settle()

    def recaller(self, encoder: Encoder, publish: Callable[[Recall], None], new_id: Callable[[], str]) -> Recaller:
        """Return what asks the FAISS store, with the local log's freshness index."""
        return Recaller(
            store=self.store,
            encoder=encoder,
            keys=self._assembly.keys.keyring,
            permits=reader_permits(self._assembly.keys.registry, self._clock),
            publish=publish,
            now_ms=self._clock,
            new_id=new_id,
            freshness=self._freshness,
        )

    def close(self) -> None:
        """Close log and store."""
        self.runtime.close()
        self.store.close()


def open_keys(home: Home, start_ms: int) -> tuple[KeyStore, int]:
    """Return the home's keys, made where they are missing, and when the day may begin: never before they sign."""
    home.prepare()
    keys = KeyStore.init(home.path, min(start_ms, wall_ms()) - 1)
    since = max(key.not_before_ms for key in keys.keyring() if key.secret is not None)
    return keys, max(start_ms, since)
