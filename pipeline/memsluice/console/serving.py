"""What a console stands on: its home, the index, desks, keys, sessions. Opened once, used by every request."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from memsluice.clock import Clock, wall_ms
from memsluice.console.desks import Desks, held_desks
from memsluice.console.logins import Logins
from memsluice.console.sessions import Sessions
from memsluice.console.settings import Settings
from memsluice.deployment.home import Home
from memsluice.keystore.store import KeyStore
from memsluice.operations.held.desk import HeldDesk
from memsluice.operations.review.index import ReviewIndex


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
    away: dict[str, tuple[int, str]] = field(default_factory=dict)
    """What does not answer ("broker", "store"): since when (Unix ms), and what it said, in words."""

    @contextmanager
    def desk(self) -> Iterator[HeldDesk]:
        """Give a desk for held writes, for this request alone. Raises ConfigError, BrokerUnavailable."""
        with self.desks.borrowed() as desk:
            yield desk


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
    return Serving(
        place, home, index, desks or held_desks(home), store, clock, settings, sessions, Logins(store, clock)
    )


@contextmanager
def opened(home: Path | None, settings: Settings | None = None) -> Iterator[Serving]:
    """Give what a console of this home stands on, and close it afterwards. Raises ConfigError, PolicyError."""
    place = Home.at(home).path
    with ExitStack() as closing:
        index = closing.enter_context(ReviewIndex.open(home))
        serving = serving_of(home, index, settings or Settings.read(place))
        closing.callback(serving.desks.close)
        yield serving
