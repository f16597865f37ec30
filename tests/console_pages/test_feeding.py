"""The thread behind the pages: what comes is told, what does not answer is said, and nothing of it ends the console."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.console_pages.place import Place

from memsluice.console.feeding import BROKER, INDEX
from memsluice.console.pages.events import _events
from memsluice.console.serving import Serving, opened
from memsluice.console.visitors import Visitor
from memsluice.envelope.registry import Role
from memsluice.operations.review.index import FILE

TOLD_S = 240.0


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A home with one held write."""
    made = Place(tmp_path)
    made.write(event_id="held")
    yield made
    made.close()


async def told(serving: Serving, token: str, until: object) -> list[dict[str, object]]:
    """Return the counts that a page is told until some are as ``until`` says."""
    found = []
    with serving.live.listening("x") as listener:
        async for event in _events(serving, token, listener):
            found.append({"event": event["event"], **json.loads(event["data"])})
            if until(found[-1]):
                break
    return found


def hear(serving: Serving, visitor: Visitor, until: object) -> list[dict[str, object]]:
    """Return what a page of a visitor is told until ``until``, or fail."""
    token, _ = serving.sessions.begin(visitor)
    return asyncio.run(asyncio.wait_for(told(serving, token, until), TOLD_S))


ALL = Visitor("x", Role.REVIEWER, None)


def test_a_write_that_is_held_is_told_to_open_pages(place: Place) -> None:
    """An open page hears how many wait when one more does, without being asked; of content it hears nothing."""
    with opened(place.home.path) as serving:
        assert hear(serving, ALL, lambda event: event["states"].get("pending") == 1)
        place.write(event_id="another")
        last = hear(serving, ALL, lambda event: event["states"].get("pending") == 2)[-1]
        assert set(last) == {"event", "states", "mark", "away"}


def test_a_page_hears_of_its_visitors_tenants_alone(place: Place) -> None:
    """What is held of another tenant changes nothing that a visitor is told."""
    place.write(event_id="theirs", tenant="globex")
    with opened(place.home.path) as serving:
        narrow = Visitor("y", Role.READER, frozenset({"acme"}))
        assert hear(serving, ALL, lambda event: event["states"].get("pending") == 2)
        assert hear(serving, narrow, lambda event: event["states"])[0]["states"] == {"pending": 1}


def test_a_page_is_told_when_its_session_ends(place: Place) -> None:
    """A page that is open when its session ends hears so, and nothing more."""
    with opened(place.home.path) as serving:
        token, _ = serving.sessions.begin(ALL)
        serving.sessions.end(token)
        heard = asyncio.run(asyncio.wait_for(told(serving, token, lambda event: False), TOLD_S))
        assert [one["event"] for one in heard] == ["ended"]


def test_a_home_without_a_log_is_said_and_is_served_once_there_is_one(tmp_path: Path) -> None:
    """With neither stack nor log the console starts all the same, says so, and goes on by itself when there is one."""
    made = Place(tmp_path / "made")
    made.write(event_id="held")
    made.close()
    log, aside = made.home.log_file, tmp_path / "aside.db"
    log.rename(aside)
    with opened(made.home.path) as serving:
        assert hear(serving, ALL, lambda event: event["away"] == [BROKER])
        assert "start a stack" in serving.away[BROKER][1]
        aside.rename(log)
        assert hear(serving, ALL, lambda event: event["states"].get("pending") == 1 and not event["away"])


def test_a_damaged_index_is_made_anew_while_the_console_runs(place: Place) -> None:
    """An index that somebody wrote over is filled again from the topics: the pages show it all a moment later."""
    with opened(place.home.path) as serving:
        assert hear(serving, ALL, lambda event: event["states"].get("pending") == 1)
    file = place.home.path / FILE
    file.write_bytes(b"no database" * 500)
    with opened(place.home.path) as serving:
        assert hear(serving, ALL, lambda event: event["states"].get("pending") == 1)
        assert INDEX not in serving.away


def test_a_page_that_is_open_ends_with_the_server(place: Place) -> None:
    """An open page keeps no server from ending: it is told nothing more once that was told to stop."""

    async def heard(serving: Serving, token: str) -> list[str]:
        with serving.live.listening("x") as listener:
            return [event["event"] async for event in _events(serving, token, listener, lambda: True)]

    with opened(place.home.path) as serving:
        token, _ = serving.sessions.begin(ALL)
        assert asyncio.run(asyncio.wait_for(heard(serving, token), TOLD_S)) == ["counts"]


def test_two_consoles_on_one_home_tell_the_same(place: Place) -> None:
    """A second console over the same index counts nothing twice."""
    with opened(place.home.path) as one, opened(place.home.path) as other:
        for number in range(5):
            place.write(event_id=f"more-{number}")
        for serving in (one, other):
            assert hear(serving, ALL, lambda event: event["states"].get("pending") == 6)
