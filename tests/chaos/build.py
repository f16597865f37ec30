"""A small history decided by the real stages in one process, as the checker would find it on a broker."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from uuid import UUID

from memsluice.client import requests
from memsluice.client.build import build, topic_of
from memsluice.client.requests import Session
from memsluice.encoder import load_encoder
from memsluice.envelope.codec import content_digest
from memsluice.envelope.dsse import Signer
from memsluice.envelope.keys import Keyring
from memsluice.events.models import Action, AnyPayload, Origin, Returned, Tier, Zone
from memsluice.events.partition import partition_of
from memsluice.events.records import Record, Rows
from memsluice.gate.policy import model
from memsluice.runtimes.embedded import Embedded
from memsluice.stages.base import Step
from memsluice.stages.land import LandStage
from memsluice.stages.screen import ScreenStage
from memsluice.stages.seal import SealStage
from memsluice.stores.faiss.store import FaissStore
from memsluice.topics import names
from memsluice.topics.names import PARTITIONS
from memsluice_lab import cast
from memsluice_lab.chaos.checker import Said, Violation, read, verdict_violations
from memsluice_lab.chaos.landed import store_violations
from memsluice_lab.chaos.logs import TOPICS, Object, Picture, named
from memsluice_lab.chaos.rows import row_violations

TENANT = "north"
NOW_MS = 1_772_470_000_000
NOW = datetime.fromtimestamp(NOW_MS / 1000, UTC)
READ, UNREAD, GIVEN = (Session(TENANT, "helper", f"p-{name}", f"s-{name}") for name in ("read", "unread", "given"))


class Recorded(ScreenStage):
    """*screen*, with a changelog beside it."""

    changelog: list[Record]

    def process(self, record: Record, rows: Rows) -> Step:
        """Decide, and note every change in order."""
        step = super().process(record, rows)
        for change in step.changes:
            at = len(self.changelog)
            self.changelog.append(Record(names.SCREEN_CHANGELOG, record.partition, at, change.key, change.value))
        return step


@dataclass(frozen=True)
class History:
    """What was said, and the picture of what became of it."""

    picture: Picture
    said: Said
    keyring: Keyring

    def violations(self) -> list[Violation]:
        """Check everything."""
        reading = read(self.picture, self.keyring, [TENANT])
        return [
            *verdict_violations(reading, self.said),
            *row_violations(self.picture.of(names.SCREEN_CHANGELOG), self.said, reading),
            *store_violations(self.picture, reading, self.keyring, now_ms=NOW_MS),
        ]

    def with_topic(self, topic: str, records: Sequence[Record]) -> "History":
        """Return the history with another content of a topic."""
        topics: Mapping[str, Sequence[Record]] = {**self.picture.topics, topic: records}
        return replace(self, picture=replace(self.picture, topics=topics))


def events(keyring: Keyring) -> list[tuple[str, AnyPayload]]:
    """Return (source, event): three sessions, one reads the web and one a tainted entry, a replacement, a removal."""
    digest = content_digest(keyring, TENANT, "Note w-1.")

    def write(name: str, session: Session, key: str | None = None) -> tuple[str, AnyPayload]:
        options: requests.WriteOptions = {} if key is None else {"key": key}
        source = "web" if key is not None else "agent"
        return source, requests.write(name, NOW, session, f"Note {name}.", options)

    opened = (
        requests.observation(f"o-{one.session}", NOW, one, Origin.OPEN, None, None) for one in (READ, UNREAD, GIVEN)
    )
    given = Returned(object_id=str(UUID(int=1)), version=1, event_id="w-0", tier=Tier.EXTERNAL_WEB, taint=True)
    return [
        *(("runtime", one) for one in opened),
        write("w-1", READ, "a"),
        write("w-2", READ, "b"),
        write("w-3", READ, "b"),
        write("w-4", UNREAD),
        ("runtime", requests.observation("o-web", NOW, READ, Origin.WEB, None, None)),
        write("w-5", READ),
        ("reader", requests.recall("r-1", NOW, GIVEN, "When does it come?", (given,))),
        write("w-6", GIVEN),
        (
            "operator",
            requests.command("c-1", NOW, TENANT, Action.WITHDRAW, "w-1", NOW + timedelta(hours=1), digest=digest),
        ),
    ]


def played(folder: Path) -> History:
    """Let the real stages decide it all."""
    keyring, registry, signers = cast.in_memory([TENANT], seed="chaos")
    store = FaissStore(folder / "store.db")
    screen = Recorded(lambda: keyring, model.default().of, PARTITIONS, lambda: NOW_MS)
    screen.changelog = []
    seal = SealStage(lambda: keyring, lambda: registry, load_encoder(threads=1), PARTITIONS, lambda: NOW_MS)
    land = LandStage(lambda: keyring, store, PARTITIONS, lambda: NOW_MS)
    runtime = Embedded(":memory:", seal=seal, screen=screen, land=land, now_ms=lambda: NOW_MS, durable=False)
    said: dict[tuple[str, int, int], AnyPayload] = {}
    partition, offsets = partition_of(TENANT, PARTITIONS), {names.EVENTS: 0, names.COMMANDS: 0}
    for source, payload in events(keyring):
        signer: Signer = signers[TENANT, source]
        message, topic = build(payload, [signer], source=f"/{TENANT}/{source}"), topic_of(payload)
        runtime.append(topic, message.key, message.value, message.headers, append_ms=NOW_MS, partition=partition)
        said[topic, partition, offsets[topic]] = payload
        offsets[topic] += 1
        runtime.run_until_idle()
    topics = {topic: list(runtime.read(topic)) for topic in TOPICS if topic != names.SCREEN_CHANGELOG}
    topics[names.SCREEN_CHANGELOG] = screen.changelog
    stored: dict[Object, int] = {}
    for tenant, zone, one in named(keyring, topics[names.STORE], [TENANT]):
        stored |= {(tenant, zone, found): version for found, version in store.versions(tenant, zone, [one]).items()}
    counts = {(TENANT, zone): store.count(TENANT, zone) for zone in Zone}
    runtime.close()
    return History(Picture(topics, stored, counts), said, keyring)
