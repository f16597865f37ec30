"""A home with groups of held writes, and the review of it on a terminal that nobody looks at."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.held.desk import PEOPLE, Office
from textual.pilot import Pilot

from memsluice.client import requests
from memsluice.client.requests import Session
from memsluice.operations.review.index import ReviewIndex
from memsluice.operations.review.query import HeldQuery
from memsluice.terminal.app import ReviewApp
from memsluice.terminal.clerk import Clerk
from memsluice.terminal.reading import Reading

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


class Watched(ReviewApp):
    """The application, and what was painted while it ran: each frame's lines, as they would go to the terminal."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.frames: list[str] = []

    def _display(self, screen: Any, renderable: Any) -> None:
        super()._display(screen, renderable)
        if renderable is not None and screen is self.screen and not self._batch_count:
            self.frames.append(screen_text(self))


def screen_text(app: ReviewApp) -> str:
    """Return the lines that stand on the screen."""
    return "\n".join(strip.text.rstrip() for strip in app.screen._compositor.render_strips())


Driven = Pilot[None]


@asynccontextmanager
async def reviewing(
    home: Path, query: str = "", size: tuple[int, int] = (120, 40), **options: Any
) -> AsyncIterator[tuple[Watched, Driven]]:
    """Run the review over a home, until its groups are there."""
    with ReviewIndex.open(home) as index, Clerk(home) as clerk:
        options = {"wait_s": 20.0, "feed_s": 0.0, **options}
        app = Watched(clerk, index, HeldQuery.parse(query), **options)
        async with app.run_test(size=size) as pilot:
            await settled(pilot)
            yield app, pilot


async def settled(pilot: Driven) -> None:
    """Wait until nothing is being done, and all of it was painted."""
    for _ in range(3):
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()


async def press(pilot: Driven, *keys: str) -> None:
    """Press keys, each after what the one before did is done."""
    for key in keys:
        await pilot.press(key)
        await settled(pilot)


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
