"""What a console stands on: its home, the index, desks, keys, sessions. Opened once, used by every request."""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import BoundedSemaphore
from typing import Any

from memsluice.clock import Clock, wall_ms
from memsluice.console.desks import Desks, held_desks
from memsluice.console.feeding import Feeding
from memsluice.console.live import Live
from memsluice.console.logins import Logins
from memsluice.console.oidc import Provider
from memsluice.console.sessions import Sessions
from memsluice.console.settings import Settings
from memsluice.deployment.home import Home
from memsluice.errors import RequestRefused
from memsluice.keystore.store import KeyStore
from memsluice.operations.held.desk import HeldDesk
from memsluice.operations.review.index import ReviewIndex

HEAVY_MAX = 2
"""Pages that read a whole partition at once."""


@dataclass
class Serving:
    """The parts of a console. ``home`` is where its files lie; ``named`` the home that the command line named."""

    home: Path
    named: Path | None
    index: ReviewIndex
    desks: Desks[HeldDesk]
    keys: KeyStore
    clock: Clock
    settings: Settings
    sessions: Sessions
    logins: Logins
    live: Live
    feeding: Feeding
    provider: Provider | None = None
    """Where people log in who have no key; None where nowhere."""
    others: dict[str, Desks[Any]] = field(default_factory=dict)
    """Desks of other kinds, by their names (:mod:`memsluice.console.lending`)."""
    kept: dict[str, Any] = field(default_factory=dict)
    """What a page keeps from request to request, by name."""
    unconfirmed: Counter[str] = field(default_factory=Counter)
    """How many commands of each person went out since his security key was last touched, where each needs none."""
    _heavy: BoundedSemaphore = field(default_factory=lambda: BoundedSemaphore(HEAVY_MAX))

    @property
    def away(self) -> dict[str, tuple[int, str]]:
        """What does not answer ("broker", "store", "index"): since when (Unix ms), and what it said, in words."""
        return self.feeding.away

    @contextmanager
    def heavy(self) -> Iterator[None]:
        """Let a page read a whole partition, where not too many do. Raises RequestRefused where they do."""
        if not self._heavy.acquire(blocking=False):
            raise RequestRefused(503, "busy", f"{HEAVY_MAX} pages read whole partitions already: load it again soon")
        try:
            yield
        finally:
            self._heavy.release()

    @contextmanager
    def desk(self) -> Iterator[HeldDesk]:
        """Give a desk for held writes, for this request alone. Raises ConfigError, BrokerUnavailable."""
        with self.desks.borrowed() as desk:
            yield desk

    def close_others(self) -> None:
        """Close the desks of other kinds that nobody has."""
        for desks in self.others.values():
            desks.close()


def serving_of(
    home: Path | None,
    index: ReviewIndex,
    settings: Settings,
    *,
    desks: Desks[HeldDesk] | None = None,
    keys: KeyStore | None = None,
    clock: Callable[[], int] = wall_ms,
) -> Serving:
    """Return the parts of a console over an index that is open."""
    place, store = Home.at(home).path, keys or KeyStore(home)
    sessions = Sessions(clock, settings.idle_minutes * 60_000, settings.life_hours * 3_600_000)
    desks, live = desks or held_desks(home), Live()
    feeding = Feeding(index, desks.opening, store, home, live, clock)
    provider = None if settings.oidc is None else Provider(settings.oidc, place, clock)
    return Serving(
        place, home, index, desks, store, clock, settings, sessions, Logins(store, clock), live, feeding, provider
    )  # fmt: skip


@contextmanager
def opened(home: Path | None, settings: Settings | None = None) -> Iterator[Serving]:
    """Give what a console of this home stands on, and close it afterwards. Raises ConfigError, PolicyError."""
    place = Home.at(home).path
    with ExitStack() as closing:
        index = closing.enter_context(ReviewIndex.open(home))
        serving = serving_of(home, index, settings or Settings.read(place))
        closing.callback(serving.desks.close)
        closing.callback(serving.close_others)
        serving.feeding.start()
        closing.callback(serving.feeding.close)
        yield serving
