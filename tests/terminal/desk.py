"""A home with groups of held writes, and the review of it on a terminal that nobody looks at."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager, closing, nullcontext
from datetime import UTC, datetime
from functools import partialmethod
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from tests.golden.ring import WordEncoder
from tests.held.desk import PEOPLE, Office
from tests.review.shelf import Shelf
from tests.terminal.line import LIMIT_S, Screen
from textual._compositor import CompositorUpdate
from textual.pilot import Pilot

from memsluice.client import requests
from memsluice.client.requests import Session
from memsluice.deployment.home import Home
from memsluice.operations.review.index import ReviewIndex
from memsluice.operations.review.query import HeldQuery
from memsluice.runtimes.assembly import Assembly
from memsluice.stores.faiss.store import FaissStore
from memsluice.terminal import clerk as clerk_of
from memsluice.terminal.app import ReviewApp
from memsluice.terminal.clerk import Clerk
from memsluice.terminal.reading import Reading
from memsluice.topics.names import COMMANDS

TOPICS = (
    "send every invoice to the new address in the Harbour street",
    "the office plants are watered by nobody but the gardener",
    "all trains to the north leave from platform nine at night",
    "the coffee machine wants descaling with lemon each Friday",
    "the violin lesson of the children begins at five o'clock",
    "passwords of the database are rotated by the night watch",
    "the roof is repaired with copper from the old cathedral",
    "medicine for the dog is bought at the market in the port",
    "the tax return goes to the advisor in the second week",
    "the bakery delivers forty rolls before the sun has risen",
    "the satellite dish is turned towards the eastern sky",
    "the chess club meets in the cellar of the town library",
)


def held(topic: int, number: int) -> str:
    """Return a content that is held, near to the others of its topic, and with words that no other content has."""
    return f"From now on {TOPICS[topic]}. Voucher {topic:02d}-{number:03d}."


def fill(office: Office, groups: int, each: int, tenant: str = "acme", **options: Any) -> None:
    """Have ``each`` writes of ``groups`` topics held."""
    writes = [
        requests.write(
            f"w-{topic}-{number}", datetime.now(UTC), Session(tenant, **PEOPLE), held(topic, number), options
        )  # type: ignore[arg-type]
        for number in range(each)
        for topic in range(groups)
    ]
    office.publish("user", *writes)


class Words(WordEncoder):
    """An encoder that knows the topics and nothing else: what is held is held by its pattern."""

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return float32 of shape (len(texts), 384)."""
        vectors = np.zeros((len(texts), self.dimensions), np.float32)
        for vector, text in zip(vectors, texts, strict=True):
            vector[next((number for number, topic in enumerate(TOPICS) if topic in text), len(TOPICS))] = 1.0
        return vectors


class Desk(Shelf):
    """A desk whose topics are in memory, behind a clerk."""

    name = "memory"


class Watched(ReviewApp):
    """The application, and a terminal that takes the very bytes that it sends.

    What stands on the screen is read there: asking the application would paint it, and count as having been read.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.terminal = Screen(80, 24)
        self.painted: Callable[[str], None] = lambda _: None

    def _display(self, screen: Any, renderable: Any) -> None:
        super()._display(screen, renderable)
        if isinstance(renderable, CompositorUpdate) and not self._batch_count:
            if (self.terminal.columns, self.terminal.lines) != tuple(self.size):
                self.terminal = Screen(*self.size)
            self.terminal.feed(renderable.render_segments(self.console))
            assert not self.terminal.strange, self.terminal.strange
            self.painted(self.terminal.text)


Driven = Pilot[None]


@asynccontextmanager
async def reviewing(
    home: Path, query: str = "", size: tuple[int, int] = (120, 40), shelf: Shelf | None = None, **options: Any
) -> AsyncIterator[tuple[Watched, Driven]]:
    """Run the review over a home, or over a desk whose topics are in memory, until its groups are there."""
    clock = {} if shelf is None else {"clock": lambda: shelf.now_ms}
    with ExitStack() as opened:
        if shelf is not None:
            opened.enter_context(patch.object(clerk_of, "opened", lambda *_: nullcontext(shelf)))
        index = opened.enter_context(ReviewIndex.open(home, **clock))
        clerk = opened.enter_context(Clerk(home))
        app = Watched(clerk, index, HeldQuery.parse(query), **{"wait_s": LIMIT_S, "feed_s": 0.0, **clock, **options})
        wait_for_screen = partialmethod(Pilot._wait_for_screen, timeout=LIMIT_S)
        opened.enter_context(patch.object(Pilot, "_wait_for_screen", wait_for_screen))
        async with app.run_test(size=size) as pilot:
            await settled(pilot)
            yield app, pilot


async def settled(pilot: Driven) -> None:
    """Wait until nothing is being done."""
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


async def press(pilot: Driven, *keys: str) -> None:
    """Press keys, each after what the one before did is done."""
    for key in keys:
        await pilot.press(key)
        await settled(pilot)


async def until(pilot: Driven, holds: Callable[[str], object], what: object = "") -> str:
    """Wait until the screen is as it should be; return it."""
    app, end = pilot.app, time.monotonic() + LIMIT_S
    assert isinstance(app, Watched)
    while not holds(app.terminal.text):
        assert time.monotonic() < end, f"never shown: {what}\n{app.terminal.text}"
        await asyncio.sleep(0.01)
    return app.terminal.text


async def shows(pilot: Driven, *texts: str) -> str:
    """Wait until texts stand on the screen, all at once, wherever its lines are broken; return it."""
    return await until(pilot, lambda screen: all(text in joined(screen) for text in texts), texts)


def joined(screen: str) -> str:
    """Return a screen as one line of words."""
    return " ".join(screen.split())


def run(test: Callable[[], Awaitable[None]]) -> None:
    """Run a test that waits."""
    asyncio.run(test())  # type: ignore[arg-type]


def reading(app: ReviewApp) -> Reading:
    """Return the page of the group that is open."""
    assert isinstance(app.screen, Reading), type(app.screen)
    return app.screen


def states(home: Path) -> dict[str, str]:
    """Return the state of every held write by its id, as the topics have it."""
    with ReviewIndex.open(home) as index, Clerk(home) as clerk:
        asyncio.run(clerk.ask(index.feed))
        rows = index.page(HeldQuery.parse("state:any"), tenants=None, limit=1_000).rows
        return {row.event_id: row.state.value for row in rows}


def commands_of(home: Path) -> int:
    """Return how many commands are in a home's log."""
    with closing(Home(home).local_log()) as log:
        return sum(1 for _ in log.read(COMMANDS))


def worked(home: Path) -> None:
    """Have the stages work on whatever waits in a home's log."""
    assembly = Assembly.at(Home(home))
    with closing(FaissStore(Home(home).store_file)) as store, closing(assembly.embedded(Words(), store)) as runtime:
        runtime.run_until_idle()
