"""Measures rows: changes the streams, decides them on the core of ``lab run``, counts, and keeps what is finished.

Below ``out``: ``streams/seed-N`` as the streams' own program built them, ``vectors`` (texts by digest),
``verdicts/ROW/seed-N`` as the streams' scorer reads them, and ``rows/ROW.json``. A run that was killed goes on with the
streams that are missing; a row whose declaration changed is measured again.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import orjson

from memsluice.encoder import load_encoder
from memsluice.envelope.codec import canonical
from memsluice.errors import ConfigError
from memsluice.gate.policy.model import Policy, PolicySet
from memsluice_lab.figures.measurements import commit_of
from memsluice_lab.figures.records import build
from memsluice_lab.figures.registry import Setting
from memsluice_lab.run import JOBS_MAX, decide, share_cores
from memsluice_lab.streams import HIDDEN, events_of, streams_in
from memsluice_lab.table import changes
from memsluice_lab.table.changes import Line
from memsluice_lab.table.counting import Counts, count, landed
from memsluice_lab.table.rows import Row
from memsluice_lab.table.vectors import READING, DiskEncoder, digest_of

OWN = frozenset({*HIDDEN, "stream", "phase", "prepares", "of"})
"""Fields that the gate never sees."""
SCORED = ("seq", "decision", "scope", "final")
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Place:
    """``source`` has ``data/`` and ``bench/build_streams.py``; ``out`` is the folder of the module's text.

    ``commit``, ``date`` (ISO, UTC) and ``gate`` (:func:`gate_version`) are written beside every result.
    """

    source: Path
    out: Path
    commit: str
    date: str
    gate: str

    @staticmethod
    def of(source: Path | None, out: Path) -> "Place":
        """Return the place, with this code's commit and today. Raises ConfigError where nobody named the records."""
        records = Setting(source, print).records()
        today = datetime.now(UTC).date().isoformat()
        return Place(records, out, commit_of(Path(__file__).parent), today, gate_version())


def gate_version() -> str:
    """Return 12 digits of all that a verdict rests on, code, models and default policy: equal, decide alike."""
    return digest_of(("memsluice.gate", *READING))


@dataclass(frozen=True, slots=True)
class Task:
    """One changed stream under one policy."""

    name: str
    lines: list[Line]
    policy: Policy
    vectors: Path
    verdicts: Path


@dataclass(frozen=True, slots=True)
class Counted:
    """One stream's counts, as decided at once and as it stood in the end, what landed, and the seconds it took."""

    name: str
    first: Counts
    final: Counts
    landed: list[int]
    seconds: int


def few(streams: changes.Streams) -> dict[str, list[Line]]:
    """Return the first two conversations by name, and the first stream of every other kind."""
    kinds: dict[str, list[str]] = {}
    for name in sorted(streams):
        kinds.setdefault(name.split("-")[0], []).append(name)
    some = [name for kind, names in kinds.items() for name in names[: 2 if f"{kind}-" == changes.CONVERSATION else 1]]
    return {name: list(streams[name]) for name in some}


def measure(
    rows: Sequence[Row], place: Place, *, jobs: int = 1, only_few: bool = False, again: bool = False, say: Say = print
) -> None:
    """Measure what is missing of the rows. ``again`` measures all. Raises ConfigError, PolicyError.

    First a few streams (:func:`few`) of every row, then, unless ``only_few``, the others, then the other seeds.
    """
    if not 1 <= jobs <= JOBS_MAX:
        raise ConfigError(f"--jobs must lie between 1 and {JOBS_MAX}")
    passes = [(row, seeds, some) for some in (True, False) for row in rows for seeds in [row.seeds[:1]]]
    passes += [(row, row.seeds[1:], False) for row in rows]
    if again:
        for row in rows:
            (place.out / "rows" / f"{row.name}.json").unlink(missing_ok=True)
    with _workers(jobs) as count_all:
        for row, seeds, some in passes[: len(rows)] if only_few else passes:
            for seed in seeds:
                _measure(row, seed, place, some, count_all, say)


def _measure(row: Row, seed: int, place: Place, some: bool, count_all: "Pool", say: Say) -> None:
    kept = finished(row, place.out)
    done = kept.setdefault(str(seed), {})
    for one in count_all(task for task in _tasks(row, seed, place, some) if task.name not in done):
        said = {"commit": place.commit, "date": place.date, "gate": place.gate, "seconds": one.seconds}
        done[one.name] = {**said, "landed": one.landed, "first": one.first, "final": one.final}
        _keep(row, kept, place.out)
        say(f"{row.name}, seed {seed}, {one.name}: {one.seconds} s")


def finished(row: Row, out: Path) -> dict[str, Any]:
    """Return what was measured of a row, by seed and stream; nothing where it was of another declaration.

    Raises ConfigError where its file is none of ours.
    """
    path = out / "rows" / f"{row.name}.json"
    if not path.exists():
        return {}
    try:
        kept = json.loads(path.read_text(encoding="utf-8"))
        return dict(kept["seeds"]) if kept["digest"] == row.digest() else {}
    except (ValueError, TypeError, KeyError):
        raise ConfigError(f"{path} holds no row that was measured: remove it, or measure with --again") from None


def _keep(row: Row, seeds: dict[str, Any], out: Path) -> None:
    path = out / "rows" / f"{row.name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_suffix(".part")
    fresh.write_text(json.dumps({"row": row.name, "digest": row.digest(), "seeds": seeds}) + "\n", encoding="utf-8")
    fresh.replace(path)


def labelled(folder: Path) -> dict[str, list[Line]]:
    """Return the lines of all streams of a folder, labels and all, each with the name of its stream."""
    return {
        path.stem: [{**orjson.loads(raw), "stream": path.stem} for raw in path.read_bytes().splitlines() if raw.strip()]
        for path in streams_in(folder)
    }


def _tasks(row: Row, seed: int, place: Place, some: bool) -> Iterator[Task]:
    policy, change = row.in_force(), changes.get(row.change)
    streams = place.out / "streams" / f"seed-{seed}"
    if not streams.exists():
        streams.parent.mkdir(parents=True, exist_ok=True)
        build(place.source, streams.with_suffix(".part"), seed=seed)
        streams.with_suffix(".part").replace(streams)
    verdicts = place.out / "verdicts" / row.name / f"seed-{seed}"
    whole = labelled(streams)
    for name, lines in change(few(whole) if some else whole, seed).items():
        yield Task(name, lines, policy, place.out / "vectors", verdicts)


Pool = Callable[[Iterable[Task]], Iterable[Counted]]


@contextmanager
def _workers(jobs: int) -> Iterator[Pool]:
    """Yield what counts tasks: here one after the other, or in so many processes."""
    if jobs == 1:
        yield lambda tasks: map(counted, tasks)
        return
    with ProcessPoolExecutor(jobs, get_context("spawn"), initializer=share_cores, initargs=(jobs,)) as pool:
        yield lambda tasks: pool.map(counted, tasks)


@cache
def _encoder(vectors: Path) -> DiskEncoder:
    return DiskEncoder(load_encoder(), vectors)


def counted(task: Task) -> Counted:
    """Decide one stream, write its verdicts, and count them."""
    started = time.monotonic()
    events = events_of({name: value for name, value in line.items() if name not in OWN} for line in task.lines)
    said = decide(events, name=task.name, encoder=_encoder(task.vectors), chosen=PolicySet(task.policy, {}))
    task.verdicts.mkdir(parents=True, exist_ok=True)
    short = [{name: line[name] for name in SCORED if name in line} for line in said]
    (task.verdicts / f"{task.name}.jsonl").write_bytes(b"".join(canonical(line) + b"\n" for line in short))
    verdicts = {line["seq"]: line for line in said}
    first, final = (count(task.lines, verdicts, final=final) for final in (False, True))
    return Counted(task.name, first, final, landed(task.lines, verdicts), round(time.monotonic() - started))
