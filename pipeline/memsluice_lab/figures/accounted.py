"""Every real stream through producer, Kafka, Faust and Weaviate; the books on both sides; the same in one process."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from memsluice.clock import wall_ms
from memsluice.deployment.home import Home
from memsluice.events.names import EventType
from memsluice.events.records import Output, Record
from memsluice.gate.policy import model as policies
from memsluice.runtimes.embedded import Embedded
from memsluice.stages.screen import ScreenStage
from memsluice.topics import names
from memsluice_lab.figures.bed import STAGES, Bed, Place, Sender, bed, messages
from memsluice_lab.figures.core import always
from memsluice_lab.figures.ledger import Ledger, read
from memsluice_lab.figures.planted_objects import ask_all
from memsluice_lab.figures.records import streams
from memsluice_lab.figures.registry import Measured, Setting
from memsluice_lab.streams import Published, Restamp, Unsendable, events_of, read_stream

THROUGH_S_MAX = 480


def unhurried() -> dict[str, Any]:
    """Return the policy that ships, without daily write limits and quotas: months of a stream pass within a minute
    here."""
    policy = policies.default().default.model_dump(mode="json")
    return {
        **policy,
        "writes_per_day": {},
        "intake": {"events_per_s": None},
        "quarantine": {**policy["quarantine"], "per_principal_max": 100_000},
    }


@dataclass(frozen=True, slots=True)
class Sent:
    """What was published: places by (tenant, event id), the events, and the lines that no producer could publish."""

    places: Mapping[Any, Place]
    events: Sequence[Published]
    unsendable: Sequence[Unsendable]


def interleaved(paths: Sequence[Path], run: str) -> Iterator[Published | Unsendable]:
    """Yield the events of all streams, one of each in turn, stamped as they are taken."""
    restamp = Restamp(run, wall_ms)
    lanes = [events_of(read_stream(path), restamp=restamp) for path in paths]
    for together in zip_longest(*lanes):
        yield from (item for item in together if item is not None)


def tenants_of(paths: Sequence[Path]) -> set[str]:
    """Return the tenants of streams."""
    return {item.payload.tenant for item in interleaved(paths, "") if isinstance(item, Published)}


def publish(bed: Bed, paths: Sequence[Path], run: str) -> Sent:
    """Publish all streams and wait until the broker has them."""
    signers, sender = bed.signers(tenants_of(paths)), Sender(bed)
    events: list[Published] = []
    unsendable: list[Unsendable] = []
    for item in interleaved(paths, run):
        if isinstance(item, Unsendable):
            unsendable.append(item)
            continue
        events.append(item)
        sender.publish(item, signers)
    sender.flush()
    return Sent(sender.places, events, unsendable)


def through(bed: Bed, paths: Sequence[Path]) -> Sent:
    """Publish all streams to one worker a stage and wait until everything is through."""
    for stage in STAGES:
        bed.start(stage)
    began = time.monotonic()
    sent = publish(bed, paths, "a")
    bed.setting.say(f"{len(sent.events):,} events published in {time.monotonic() - began:.1f} s")
    bed.drain(THROUGH_S_MAX)
    bed.setting.say(f"all through after {time.monotonic() - began:.1f} s")
    return sent


def writes_in(paths: Sequence[Path]) -> int:
    """Return how many writes the streams ask for."""
    return sum(line["kind"] == "write" for path in paths for line in read_stream(path))


def books(sent: Sent, ledger: Ledger, asked_for: int) -> list[tuple[str, int, int]]:
    """Return what must be equal: what, one side, the other side. ``asked_for``: writes in the streams."""
    intake = set(sent.places.values())
    writes = [event for event in sent.events if event.type is EventType.WRITE]
    write_places = {sent.places[event.payload.tenant, event.payload.id] for event in writes}
    decided = ledger.decisions()
    expected, asked = ledger.expected(), len(ledger.asked_for())
    judged = sum(decided[name] for name in ("accept", "contain", "quarantine", "reject", "duplicate"))
    quarantined = {place for place, verdict in ledger.verdicts.items() if verdict.decision == "quarantine"}
    unsendable = sum(line.kind == "write" for line in sent.unsendable)
    return [
        ("writes in the streams = published + over a limit", asked_for, len(writes) + unsendable),
        ("events published = intake records sealed", len(intake), len(intake & set(ledger.sealed))),
        ("events published = verdicts + dead letters", len(intake), len(set(ledger.verdicts) | set(ledger.dead))),
        ("events published, each its own place", len(sent.events), len(intake)),
        ("writes published = writes decided + dead", len(writes), judged + len(write_places & set(ledger.dead))),
        ("writes accepted or contained = objects asked for", decided["accept"] + decided["contain"], asked),
        ("objects asked for = objects that stay + taken out by look back", asked, len(expected) + ledger.taken_out()),
        ("objects that stay = objects in the store", len(expected), ledger.stored_count),
        ("… in the version asked for", len(expected), sum(ledger.stored.get(k) == v for k, v in expected.items())),
        ("… and on memory.store.v1", len(expected), sum(ledger.published.get(k) == v for k, v in expected.items())),
        ("verdicts that hold = records in quarantine", len(quarantined), len(quarantined & ledger.held)),
        ("records in quarantine, no other", len(ledger.held), len(quarantined)),
        ("contradicting verdicts", len(ledger.contradictions), 0),
    ]


def real_stack_accounted(setting: Setting) -> Measured:
    """1 if all books balance and recalls return verified entries only."""
    with streams(setting) as paths, bed(setting, policy=unhurried()) as running:
        sent = through(running, paths)
        ledger = read(running)
        rows = books(sent, ledger, writes_in(paths))
        asked = ask_all(running, sent.events, ledger)
        running.stop(*running.workers)
    decided = ledger.decisions()
    refused = decided["reject"] + len(sent.unsendable)
    table = [
        (what, f"{left:,} = {right:,}" if left == right else f"{left:,} ≠ {right:,}  !!") for what, left, right in rows
    ]
    table += [
        ("writes landed", f"{decided['accept']:,}"),
        ("writes contained", f"{decided['contain']:,}"),
        ("writes held", f"{decided['quarantine']:,}"),
        ("writes refused", f"{refused:,}, {len(sent.unsendable)} of them over a limit before they were sent"),
        ("dead letters", f"{len(ledger.dead):,}"),
        ("recalls", f"{asked.recalls:,} asked, {asked.returned:,} entries returned"),
        ("entries returned that no verdict admitted", str(asked.unverified)),
        ("objects planted behind the gate's back", f"{asked.planted}, returned {asked.planted_returned}"),
        ("… found by a search and withheld", str(asked.planted_withheld)),
    ]
    balanced = all(left == right for _, left, right in rows) and bool(sent.events)
    return Measured(float(balanced and asked.sound()), tuple(table), (_NOTE,))


_NOTE = (
    "Policy: the one that ships, without daily write limits and with room for 100,000 held entries a principal: "
    "months of each stream pass within a minute."
)


def _records(bed: Bed, topic: str) -> Iterator[Record]:
    for message in messages(bed, topic):
        headers = tuple((name, value) for name, value in message.headers() or ())
        yield Record(
            topic,
            message.partition(),
            message.offset(),
            message.key(),
            message.value(),
            headers,
            message.timestamp()[1],
        )


class _NoSeal:
    """Stands where *seal* would: the sealed records are those of the real run."""

    def process(self, batch: Sequence[Record]) -> list[list[Output]]:
        """Nothing comes in here."""
        return [[] for _ in batch]


def runtime_parity(setting: Setting) -> Measured:
    """1 if the embedded runtime gives the bytes that the real stack's *screen* gave for the same sealed records."""
    with streams(setting) as paths, bed(setting, policy=unhurried()) as running:
        through(running, paths)
        keyring = running.store.keyring()
        screen = ScreenStage(
            always(keyring), policies.load_or_default(Home.at(running.home).policy_file).of, names.PARTITIONS
        )
        embedded = Embedded(":memory:", seal=_NoSeal(), screen=screen, land=None, now_ms=wall_ms, durable=False)
        sealed = 0
        for record in _records(running, names.SEALED):
            sealed += 1
            stamp, at = record.timestamp_ms, record.partition
            embedded.append(names.SEALED, record.key, record.value, record.headers, append_ms=stamp, partition=at)
        embedded.run_until_idle()
        rows, equal = [("sealed records of the real run", f"{sealed:,}")], sealed > 0
        for topic in (names.AUDIT, names.ACCEPTED, names.QUARANTINE):
            real = [(r.partition, r.key, r.value) for r in _records(running, topic)]
            again = [(r.partition, r.key, r.value) for r in embedded.read(topic)]
            same = sum(one == other for one, other in zip(real, again, strict=False))
            equal = equal and real == again and (topic != names.AUDIT or bool(real))
            rows.append((topic, f"{len(real):,} real, {len(again):,} embedded, {same:,} identical"))
        embedded.close()
        running.stop(*running.workers)
    return Measured(float(equal), tuple(rows), (_NOTE,))
