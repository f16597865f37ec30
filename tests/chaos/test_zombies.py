"""A paused worker that wakes up after another took over: V1 to V4, each as it was found on the real stack.

One story for all four, because starting the stack's workers is what takes the time. First *land* is paused with
records in its hands that were replaced and removed since (V2, V4), then *screen* with decisions about sessions that
read the web since (V1, V3). Both wake up, and what they still hold in their hands must change nothing.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from memsluice.client.requests import Session
from memsluice.clock import wall_ms
from memsluice.events.models import Observation, Write, Zone
from memsluice.topics import names
from memsluice_lab.chaos import checking
from memsluice_lab.chaos.checker import Reading, Violation, read, verdict_violations
from memsluice_lab.chaos.following import wait
from memsluice_lab.chaos.landed import store_violations
from memsluice_lab.chaos.logs import Picture
from memsluice_lab.chaos.rows import row_violations
from memsluice_lab.chaos.zombies import Scene, hand_over, lying, sealed, wake
from memsluice_lab.figures.bed import Place, Worker

pytestmark = [pytest.mark.stack, pytest.mark.timeout(2_400)]

ENTRIES = 320
"""*land* takes 128 at a time: some are written and not yet told of, some are still unwritten when it is paused."""
SESSIONS = 300
LANDED_S_MAX = 600
TRIES = 4
"""How often work is given to a worker that was through with it before whoever watches it had it hang."""


@dataclass
class Story:
    """What came of it: what the workers did, and the logs before and after compaction."""

    before: Picture
    after: Picture
    reading: Reading
    caught: Mapping[str, bool]
    """Whether each paused worker had something in its hands."""
    probes: Mapping[Place, bool | None] = field(default_factory=dict)
    """A write in each session that read the web: whether its verdict, by a worker from empty state, has the taint."""
    parked: Sequence[str] = ()
    """What was not decided of a tenant where nothing else was said, and of whoever ended."""


def _land(scene: Scene) -> bool:
    """Replace and remove entries while a *land* worker hangs with older versions of them."""
    bed, work, tenant = scene.bed, scene.work, scene.work.tenants[0]
    first = scene.start("land", "a")
    (writer,) = work.open(tenant, 1)
    assert scene.answered(scene.said())
    assert scene.joined("land", "a")
    for attempt in range(TRIES):
        if attempt:
            scene.nemesis.resume(first)
        there = lying(scene, tenant, Zone.EXTERNAL)
        keys = [f"k{attempt}-{number}" for number in range(ENTRIES)]
        entries, landed = _hang_with(scene, first, writer, keys)
        bed.setting.say(f"land hangs after {landed} of {ENTRIES}")
        if landed < ENTRIES:
            break
    for number in range(0, ENTRIES, 2):
        work.write(writer, "web", key=keys[number])
        work.withdraw(entries[number + 1])
    assert scene.answered(scene.said())
    second = scene.start("land", "b")
    assert scene.joined("land", "b")
    wait(lambda: lying(scene, tenant, Zone.EXTERNAL) == there + ENTRIES // 2 or not scene.alive(), LANDED_S_MAX, 0.3)
    bed.setting.say("another land took over")
    wake(scene, first)
    bed.setting.say(f"land woke up; {scene.ended or 'nobody ended'}")
    _rest(scene, first, second)
    return landed < ENTRIES


def _hang_with(scene: Scene, land: Worker, writer: Session, keys: Sequence[str]) -> tuple[list[str], int]:
    """Have *land* hang while it has entries of these keys in its hands; return them, and how many it told of."""
    entries: list[str] = []

    def feed() -> None:
        entries.extend(scene.work.write(writer, "web", key=key) for key in keys)
        assert scene.answered(scene.said())

    begun = sum(scene.bed.ends(names.STORE))
    hand_over(scene, [land], feed, lambda: sum(scene.bed.ends(names.STORE)) > begun)
    return entries, sum(scene.bed.ends(names.STORE)) - begun


def _rest(scene: Scene, *workers: Worker) -> None:
    """Leave one worker of a stage alive, the last one that still runs."""
    running = [worker for worker in workers if worker in scene.bed.workers]
    scene.kill(*running[:-1])


def _screen(scene: Scene, first: Worker) -> tuple[bool, dict[Place, bool | None], list[str]]:
    """Taint sessions while a *screen* worker hangs with their openings, and go on from empty state."""
    bed, work = scene.bed, scene.work
    for attempt in range(TRIES):
        if attempt:
            scene.nemesis.resume(first)
        sessions = _hang_with_openings(scene, first)
        openings = [place for place, one in work.said.items() if isinstance(one, Observation)]
        if caught := bool(scene.verdicts.missing(openings)):
            break
    bed.setting.say(f"screen hangs with {len(scene.verdicts.missing(work.said))} openings undecided")
    for session in sessions:
        work.taint(session)
    scene.said()
    second = scene.start("screen", "b")
    assert scene.joined("screen", "b")
    assert scene.answered(set(work.said)), f"the second worker did not decide all: {scene.ended}"

    bed.setting.say("another screen took over")

    def light() -> None:
        work.open(work.tenants[0], 1)
        scene.said()

    light()
    wake(scene, first, light)
    light()
    scene.answered(set(work.said), 20)
    bed.setting.say(f"screen woke up; {scene.ended or 'nobody ended'}")
    scene.kill(first, second)
    scene.start("screen", "c")
    probes: dict[Place, bool | None] = {}
    quiet: set[Place] = set()
    for tenant in work.tenants:  # the second one had no light traffic, which hides where its positions stand
        for session in sessions:
            if session.tenant == tenant:
                work.write(session)
        places = scene.said()
        scene.verdicts.until(places, LANDED_S_MAX, lambda: "screen-c" not in scene.ended and (scene.alive() or True))
        found = scene.verdicts.verdicts
        probes |= {place: found[place].taint if place in found else None for place in places}
        quiet = places
    clean = sum(taint is False for taint in probes.values())
    bed.setting.say(f"a third screen decided; {clean} of {len(probes)} sessions are clean to it")
    undecided = [f"{place} is not decided" for place in scene.verdicts.missing(quiet)]
    return caught, probes, undecided


def _hang_with_openings(scene: Scene, screen: Worker) -> list[Session]:
    """Have *screen* hang while it has openings of sessions in its hands; return these."""
    sessions: list[Session] = []

    def feed() -> None:
        opened = sealed(scene, SESSIONS * 2)
        for tenant in scene.work.tenants:
            sessions.extend(scene.work.open(tenant, SESSIONS))
        scene.said()
        assert wait(opened, LANDED_S_MAX)

    before = scene.verdicts.poll()
    hand_over(scene, [screen], feed, lambda: scene.verdicts.poll() > before)
    return sessions


@pytest.fixture(scope="module")
def story(scene: Scene) -> Story:
    """The whole of it, told once."""
    work, bed = scene.work, scene.bed
    since = checking.begin(scene)
    scene.start("seal", "a")
    screen = scene.start("screen", "a")
    landed = _land(scene)
    held, probes, undecided = _screen(scene, screen)
    checking.landed(scene, since)
    bed.setting.say("all landed")
    before, after = checking.pictures(scene, since)
    bed.setting.say("compacted and read")
    parked = [f"{name} ended with {code}" for name, code in scene.ended.items()] + undecided
    reading = read(before, bed.store.keyring(), work.tenants)
    return Story(before, after, reading, {"land": landed, "screen": held}, probes, parked)


def _store(story: Story, scene: Scene, picture: Picture) -> list[Violation]:
    return list(store_violations(picture, story.reading, scene.bed.store.keyring(), now_ms=wall_ms()))


def test_v1_a_session_that_read_the_web_stays_tainted(story: Story, scene: Scene) -> None:
    """Rows that a paused *screen* had in its hands take no taint back, whoever recovers from the changelog: each
    session's row stays tainted in every version, and a worker from empty state taints the next write of each."""
    assert story.caught["screen"]
    rows = list(row_violations(story.before.of(names.SCREEN_CHANGELOG), scene.work.said, story.reading))
    assert [one.what for one in rows if "taint" in one.what] == []
    compacted = list(row_violations(story.after.of(names.SCREEN_CHANGELOG), scene.work.said, story.reading))
    assert [one.what for one in compacted if "taint" in one.what] == []
    assert {place: taint for place, taint in story.probes.items() if taint is not True} == {}


def test_v2_what_was_removed_does_not_come_back(story: Story, scene: Scene) -> None:
    """Entries that a paused *land* had in its hands, and that a command removed since, lie nowhere: not in the store,
    not in its log, not after compaction."""
    assert story.caught["land"]
    assert [
        one.what for one in _store(story, scene, story.before) if "withdrawal" in one.what or "removed" in one.what
    ] == []
    assert [
        one.what for one in _store(story, scene, story.after) if "withdrawal" in one.what or "removed" in one.what
    ] == []


def test_v3_screen_goes_on_and_positions_never_go_back(story: Story, scene: Scene) -> None:
    """No worker ends, and everything is decided: a paused *screen* takes no position back, which the next worker would
    take for a missing record."""
    assert story.caught["screen"]
    assert story.parked == []
    rows = list(row_violations(story.before.of(names.SCREEN_CHANGELOG), scene.work.said, story.reading))
    assert [one.what for one in rows if "position" in one.what or "offset" in one.what] == []


def test_v4_the_store_log_never_goes_back(story: Story, scene: Scene) -> None:
    """An object's last record is its newest version, before and after compaction, although a paused *land* had older
    ones in its hands."""
    assert story.caught["land"]
    assert [one.what for one in _store(story, scene, story.before) if "went back" in one.what] == []
    assert _store(story, scene, story.after) == []


def test_nothing_else_that_was_promised_is_broken(story: Story, scene: Scene) -> None:
    """Every acknowledged event is decided once, every seal holds, the audit has no hole, no row went back: all rules of
    the checker, before and after compaction."""
    said, reading = scene.work.said, story.reading
    assert any(isinstance(one, Write) for one in said.values())
    assert list(verdict_violations(reading, said)) == []
    assert list(row_violations(story.before.of(names.SCREEN_CHANGELOG), said, reading)) == []
    assert list(row_violations(story.after.of(names.SCREEN_CHANGELOG), said, reading)) == []
