"""Plays the schedules; keeps, or reads back, what came of them. ``python -m tests.golden.record`` writes the fixture.

It is JSON lines, xz: a digest of every record that was sent, by topic in order, and of every state row at the
end; for the hand-written schedule also the whole state at its middle. It is made anew only where bytes are *meant* to
change, and the change log then says so.
"""

import json
import lzma
import random
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.golden import schedule
from tests.golden.town import DIGITS, Sent, State, Taped, Town, restored, short

from memsluice.events.records import Record, Rows
from memsluice.stages.base import Step
from memsluice.stages.screen import ScreenStage
from memsluice_lab.model.compare import Pair
from memsluice_lab.model.walk import Walk

FILE = Path(__file__).parent / "golden.jsonl.xz"
TOWN = "town"
WALKS = {"walk-tiered": (1, False, False), "walk-strict": (2, True, False), "walk-hold": (3, False, True)}
"""Seed, strict profile, and whether outside content is held, of random sequences of the reference model's actions."""
WALK_ACTIONS = 120
Digests = Mapping[str, list[str]]


@dataclass(frozen=True, slots=True)
class Played:
    """What came of one schedule: digests of what was sent by topic, and of the rows at the end by partition and key."""

    sent: Digests
    rows: Mapping[str, str]
    labels: Digests = field(default_factory=dict)
    codes: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Middle:
    """Where the hand-written schedule stood when its worker started anew: how much was sent, came in, and its state."""

    sent: Mapping[str, int]
    came: int
    state: State


def play_town(folder: Path) -> tuple[Played, Middle, list[Taped]]:
    """Play the hand-written schedule."""
    town = Town(folder / "whole.db", schedule.POLICIES)
    schedule.first(town)
    town.settle()
    counts, came = {topic: len(some) for topic, some in town.sent.digests.items()}, len(town.tape)
    middle = Middle(counts, came, town.restart())
    schedule.second(town)
    played = _played(town.sent, town.state().rows)
    town.close()
    return played, middle, town.tape


def continue_town(folder: Path, state: State, tape: Iterable[Taped]) -> Played:
    """Play what came in after the middle, from a state that somebody else wrote."""
    town = restored(folder / "continued.db", schedule.POLICIES, state)
    town.play(tape)
    played = _played(town.sent, town.state().rows)
    town.close()
    return played


def play_walk(name: str) -> Played:
    """Play a random sequence through the *screen* stage, beside the reference model, with crashes and re-deliveries."""
    seed, strict, hold = WALKS[name]
    pair, sent = Pair(strict=strict, hold_contained=hold, staged=True), Sent()
    walk, process = Walk(random.Random(seed), pair.model), ScreenStage.process

    def watched(self: ScreenStage, record: Record, rows: Rows) -> Step:
        step = process(self, record, rows)
        for output in step.outputs:
            sent.output(output, record.timestamp_ms)
        sent.step(record, step)
        return step

    with patch.object(ScreenStage, "process", watched):
        for _ in range(WALK_ACTIONS):
            differs = pair.step(walk.draw())
            assert not differs, f"{name}: {differs}"
    return _played(sent, [(0, key, value) for key, value in sorted(pair.production.rows.items())])


def _played(sent: Sent, rows: Iterable[tuple[int, bytes, bytes]]) -> Played:
    named = {f"{part}:{key.decode()}": short(value) for part, key, value in rows}
    return Played(dict(sent.digests), named, dict(sent.labels), frozenset(sent.codes))


def differences(name: str, wanted: Played, found: Played) -> list[str]:
    """Say where two runs differ: of each topic the first record, of the rows the first by key. None: they do not."""
    told = []
    for topic in sorted({*wanted.sent, *found.sent}):
        was, now, labels = (some.get(topic, []) for some in (wanted.sent, found.sent, found.labels))
        if was != now:
            at = next((n for n, (one, two) in enumerate(zip(was, now, strict=False)) if one != two), None)
            at = min(len(was), len(now)) if at is None else at
            label = labels[at] if at < len(labels) else "nothing"
            told.append(f"{name}: {topic}: {len(was)} recorded, {len(now)} sent; record {at} differs, now {label}")
    changed = sorted(key for key in {*wanted.rows, *found.rows} if wanted.rows.get(key) != found.rows.get(key))
    if changed:
        key = changed[0]
        how = "is new" if key not in wanted.rows else "is gone" if key not in found.rows else "has another value"
        told.append(f"{name}: {len(changed)} of {len(wanted.rows)} recorded rows differ; the first, {key!r}, {how}")
    return told


def written(played: Mapping[str, Played], middle: Middle) -> bytes:
    """Return the fixture's bytes."""
    lines: list[Any] = []
    for name, one in played.items():
        lines += [{"schedule": name, "topic": topic, "sent": "".join(some)} for topic, some in one.sent.items()]
        lines += [{"schedule": name, "rows": dict(one.rows)}]
    lines += [{"middle": {"sent": middle.sent, "came": middle.came, "ends": middle.state.ends}}]
    lines += [{"part": part, "key": key.decode(), "value": value.decode()} for part, key, value in middle.state.rows]
    return lzma.compress("\n".join(json.dumps(line) for line in lines).encode(), preset=9)


def read(data: bytes) -> tuple[dict[str, Played], Middle]:
    """Return what :func:`written` wrote."""
    sent: dict[str, dict[str, list[str]]] = {}
    rows: dict[str, Any] = {}
    state: list[tuple[int, bytes, bytes]] = []
    for line in map(json.loads, lzma.decompress(data).decode().split("\n")):
        if "topic" in line:
            sent.setdefault(line["schedule"], {})[line["topic"]] = list(_cut(line["sent"]))
        elif "rows" in line:
            rows[line["schedule"]] = line["rows"]
        elif "middle" in line:
            middle = line["middle"]
        else:
            state.append((line["part"], line["key"].encode(), line["value"].encode()))
    played = {name: Played(sent[name], rows[name]) for name in rows}
    return played, Middle(middle["sent"], middle["came"], State(tuple(state), middle["ends"]))


def _cut(text: str) -> Iterator[str]:
    yield from (text[at : at + DIGITS] for at in range(0, len(text), DIGITS))


def main() -> None:
    """Write the fixture."""
    with tempfile.TemporaryDirectory() as folder:
        town, middle, _ = play_town(Path(folder))
    played = {TOWN: town} | {name: play_walk(name) for name in WALKS}
    FILE.write_bytes(written(played, middle))
    for name, one in played.items():
        sys.stdout.write(f"{name}: {sum(map(len, one.sent.values()))} records, {len(one.rows)} rows\n")


if __name__ == "__main__":
    main()
