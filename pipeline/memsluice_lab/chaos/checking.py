"""The check at the end: everything through, a worker from empty state asked, all compacted, and every rule applied."""

from collections.abc import Iterable, Iterator, Mapping

from memsluice.client.requests import Session
from memsluice.clock import wall_ms
from memsluice.envelope.verdict import Verdict
from memsluice.topics import names
from memsluice_lab.chaos import compaction, logs
from memsluice_lab.chaos.checker import (
    Reading,
    Said,
    Violation,
    read,
    refused_violations,
    tainted_since,
    verdict_violations,
)
from memsluice_lab.chaos.following import wait
from memsluice_lab.chaos.landed import store_violations
from memsluice_lab.chaos.logs import Picture
from memsluice_lab.chaos.rows import row_violations
from memsluice_lab.chaos.zombies import Scene
from memsluice_lab.figures.bed import Place, Worker

LANDED_S_MAX = 150
"""A sweep begins a round a minute."""
RECOVERED_S_MAX = 180
PROBED_MAX = 400
Since = Mapping[str, Mapping[int, int]]
"""Where each topic stood when the scene began, by partition."""


def begin(scene: Scene) -> Since:
    """Return where the topics stand now."""
    return {topic: logs.ends(scene.bed, topic) for topic in logs.TOPICS}


def landed(scene: Scene, since: Since) -> bool:
    """Wait until what was decided has landed, and the sweep has mended what a worker that was shut out wrote into the
    store, which has no fence; False where either did not happen."""
    keyring, tenants = scene.bed.store.keyring(), scene.work.tenants

    def through() -> bool:
        picture = logs.take(scene.bed, tenants, since)
        found = store_violations(picture, read(picture, keyring, tenants), keyring, now_ms=wall_ms())
        return not any(one.rule in ("lost", "differs") for one in found)

    return wait(through, LANDED_S_MAX, 1.0)


def from_nothing(scene: Scene, replica: str, sessions: Iterable[Session]) -> tuple[Worker, list[Violation]]:
    """Kill -9 every *screen*, start one on empty state, and let it decide a write in each session.

    That a session which read the web is tainted for it, the rules on verdicts say; here is what they do not: that it
    decides at all, and that it takes no session for tainted that is not.
    """
    scene.kill(*(worker for worker in list(scene.bed.workers) if worker.stages == ("screen",)))
    third = scene.start("screen", replica)
    asked = list(sessions)[-PROBED_MAX:]
    ids = {scene.work.write(session): session for session in asked}
    places = scene.said()
    scene.verdicts.until(places, RECOVERED_S_MAX, lambda: third.process.poll() is None)
    scene.alive()
    verdicts = {place: scene.verdicts.verdicts[place] for place in places if place in scene.verdicts.verdicts}
    found = [Violation("lost", f"{place}: no verdict after a recovery") for place in places - verdicts.keys()]
    return third, [*found, *recovery_violations(verdicts, ids, scene.work.said)]


def recovery_violations(
    verdicts: Mapping[Place, Verdict], asked: Mapping[str, Session], said: Said
) -> Iterator[Violation]:
    """Yield the sessions that are tainted after a recovery and read nothing. ``asked``: who wrote, by event id."""
    since = tainted_since(said)
    for place, verdict in verdicts.items():
        session = asked.get(verdict.event_id)
        if session is not None and verdict.taint and (session.tenant, session.session) not in since:
            yield Violation("recovery", f"{place}: the session read nothing, and is tainted after a recovery")


def pictures(scene: Scene, since: Since) -> tuple[Picture, Picture]:
    """Return all that there is, before and after compaction."""
    before = logs.take(scene.bed, scene.work.tenants, since)
    with compaction.eager(scene.bed):
        compaction.force(scene.bed)
        return before, logs.take(scene.bed, scene.work.tenants, since)


def violations(scene: Scene, before: Picture, after: Picture) -> list[Violation]:
    """Apply every rule to both pictures; the audit, which is not compacted, is read once."""
    keyring, said = scene.bed.store.keyring(), scene.work.said
    reading: Reading = read(before, keyring, scene.work.tenants)
    found = [*verdict_violations(reading, said), *refused_violations(reading, said)]
    for picture, when in ((before, ""), (after, "after compaction: ")):
        rows = row_violations(picture.of(names.SCREEN_CHANGELOG), said, reading)
        store = store_violations(picture, reading, keyring, now_ms=wall_ms())
        found += [Violation(one.rule, f"{when}{one.what}") for one in (*rows, *store)]
    return found
