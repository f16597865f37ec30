"""The thread that keeps the index fed and the overview alive, and says what does not answer: it outlasts failures."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from threading import Event, Thread

from memsluice.clock import Clock
from memsluice.console.live import Live
from memsluice.console.pulse import PulseNow
from memsluice.deployment.connection import Connection
from memsluice.envelope.partition_orders import PartitionState
from memsluice.errors import BrokerError, ConfigError, MemsluiceError, StateError
from memsluice.escaping import visible
from memsluice.keystore.store import KeyStore
from memsluice.log import get_logger, said
from memsluice.operations.held.desk import HeldDesk
from memsluice.operations.monitor.lag import Lag
from memsluice.operations.monitor.pulse import Pulse
from memsluice.operations.monitor.sources import Follower, lags_of, parked_of
from memsluice.operations.review.index import ReviewIndex
from memsluice.readers.local import LocalTopic
from memsluice.telemetry.surroundings import asks_store
from memsluice.topics.names import PARTITIONS

EVERY_S = 2.0
PULSE_SINCE_MS = 86_400_000
"""How far back the overview counts on a broker; an embedded log is read whole."""
STORE_EVERY = 8
"""Rounds between two questions to the store."""
BROKER, STORE, INDEX = "broker", "store", "index"
SAID_CHARS_MAX = 300
_LOG = get_logger(__name__)
Opening = Callable[[], AbstractContextManager[tuple[HeldDesk, bool]]]


class Feeding:
    """Feeds one index from one home. ``away`` is told what does not answer, ``live`` that something may have changed.

    ``pulse`` is the stream as the last round saw it; None before the first one.
    """

    def __init__(
        self, index: ReviewIndex, opening: Opening, keys: KeyStore, home: Path | None, live: Live, clock: Clock,
        every_s: float = EVERY_S,
    ) -> None:  # fmt: skip
        self._index, self._opening, self._keys, self._home = index, opening, keys, home
        self._live, self._clock, self._every_s = live, clock, every_s
        self._stop = Event()
        self._thread = Thread(target=self._run, name="console-feeding", daemon=True)
        self._view: tuple[str, Follower, Pulse] | None = None
        self.away: dict[str, tuple[int, str]] = {}
        self.pulse: PulseNow | None = None

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def close(self) -> None:
        """End, once the round that is in work has seen that it should."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._work()
            except BrokerError as error:
                self._lost(BROKER, str(error))
            except ConfigError as error:
                self._lost(INDEX if BROKER not in self.away and self.pulse is not None else BROKER, str(error))
            except MemsluiceError as error:
                self._lost(INDEX, str(error))
            except Exception as error:  # a round that fails ends nothing: the next one tries again
                _LOG.error("the console could not read the topics", problem=said(error))
                self._lost(INDEX, "reading failed; the server's log says where")
            self._stop.wait(self._every_s)

    def _work(self) -> None:
        """Open a desk, and feed from it round by round, until something fails or the console ends."""
        with ExitStack() as closing:
            desk, _ = closing.enter_context(self._opening())
            lags, parked = lags_of(desk.audit, self._home), parked_of(desk.audit, self._home, closing)
            local = isinstance(desk.audit, LocalTopic)
            store = None if local else asks_store(Connection.load(self._home))
            number = 0
            while not self._stop.is_set():
                self._feed(desk)
                self._back(BROKER)
                self.pulse = self._pulsed(desk, lags(), parked(), local=local)
                if store is not None and number % STORE_EVERY == 0:
                    self._asked(store)
                number += 1
                self._live.changed()
                self._stop.wait(self._every_s)

    def _feed(self, desk: HeldDesk) -> None:
        try:
            self._index.feed(desk, ended=self._stop.is_set)
        except (ConfigError, StateError) as error:
            self._lost(INDEX, str(error))
        else:
            self._back(INDEX)

    def _pulsed(self, desk: HeldDesk, lags: list[Lag], parked: Sequence[PartitionState], *, local: bool) -> PulseNow:
        since_ms = None if local else self._clock() - PULSE_SINCE_MS
        if self._view is None or self._view[0] != desk.name:
            pulse = Pulse(self._keys.keyring)
            self._view = desk.name, Follower(desk.audit, pulse, PARTITIONS, since_ms or 0), pulse
        _, follower, pulse = self._view
        follower.goes_on(desk.audit)
        follower.catch_up()
        seen = pulse.snapshot(pulse.latest_ms if local and pulse.latest_ms else self._clock())
        return PulseNow.of(seen, desk.name, since_ms, lags, parked)

    def _asked(self, store: Callable[[], bool]) -> None:
        if store():
            self._back(STORE)
        else:
            self._lost(STORE, "it says that it is not ready: what was accepted waits, and is landed when it is back")

    def _lost(self, what: str, why: str) -> None:
        since_ms, _ = self.away.get(what, (self._clock(), ""))
        if what not in self.away:
            _LOG.warning("something does not answer", what=what, problem=visible(why, SAID_CHARS_MAX))
        self.away = {**self.away, what: (since_ms, why)}
        self._live.changed()

    def _back(self, what: str) -> None:
        if what in self.away:
            _LOG.info("it answers again", what=what)
            self.away = {name: told for name, told in self.away.items() if name != what}
