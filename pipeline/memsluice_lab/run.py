"""``memsluice lab run``: labelled streams through the same seal and screen as in production, one verdict a write.

Every stream has a gate of its own, in memory: keys derived from the stream's name, an empty log, the stream's own times
as append clock. Two runs give the same bytes.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import orjson

from memsluice.encoder import Encoder, load_encoder
from memsluice.envelope.codec import canonical
from memsluice.envelope.keys import Keyring
from memsluice.envelope.records import verdict_from_bytes
from memsluice.envelope.verdict import Verdict
from memsluice.errors import ConfigError, StateError
from memsluice.events.names import EventType
from memsluice.events.records import Output
from memsluice.gate.policy import model as policies
from memsluice.gate.policy.model import PolicySet
from memsluice.runtimes.embedded import Embedded, StepReport
from memsluice.stages.screen import ScreenStage
from memsluice.stages.seal import SealStage
from memsluice.topics.names import AUDIT, DEAD_LETTER, EVENTS, PARTITIONS
from memsluice_lab import cast
from memsluice_lab.streams import Published, Unsendable, events_of, read_stream, signed, streams_in

JOBS_MAX = 32
REFUSED = "reject"
Progress = Callable[[int, int], None]
"""Told (events decided so far, events in all)."""


@dataclass(frozen=True, slots=True)
class StreamResult:
    """What was decided about one stream: how many events and writes, and writes by decision."""

    name: str
    events: int
    writes: int
    decisions: Mapping[str, int]


def policy_set(path: Path | None) -> PolicySet:
    """Return the policies of a file, or those that ship with the package. Raises PolicyError."""
    return policies.default() if path is None else policies.load(path)


def run_stream(
    path: Path, out: Path, *, encoder: Encoder, chosen: PolicySet, progress: Progress | None = None
) -> StreamResult:
    """Decide one stream and write ``out/<stream>.jsonl``, one line a write, in stream order."""
    items = list(events_of(read_stream(path)))
    lines = decide(items, name=path.stem, encoder=encoder, chosen=chosen, progress=progress)
    out.mkdir(parents=True, exist_ok=True)
    (out / path.name).write_bytes(b"".join(canonical(line) + b"\n" for line in lines))
    counts: dict[str, int] = {}
    for line in lines:
        counts[line["decision"]] = counts.get(line["decision"], 0) + 1
    return StreamResult(path.stem, len(items), len(lines), counts)


def decide(
    items: Iterable[Published | Unsendable],
    *,
    name: str,
    encoder: Encoder,
    chosen: PolicySet,
    progress: Progress | None = None,
) -> list[dict[str, Any]]:
    """Return a verdict line for every write among ``items``, by seq. Raises StateError where one has none."""
    items = list(items)
    events = [item for item in items if isinstance(item, Published)]
    keyring, registry, signers = cast.in_memory(sorted({event.payload.tenant for event in events}), seed=name)
    collector = _Collector(keyring, len(events), progress)
    runtime = Embedded(
        ":memory:",
        seal=SealStage(lambda: keyring, lambda: registry, encoder, PARTITIONS),
        screen=ScreenStage(lambda: keyring, chosen.of, PARTITIONS),
        land=None,
        now_ms=lambda: 0,
        durable=False,
        listener=collector,
    )
    for event in events:
        place = runtime.append(EVENTS, *signed(event, signers), append_ms=event.append_ms)
        if event.seq is not None and event.type is EventType.WRITE:
            collector.seqs[place] = event.seq
            collector.named[event.payload.tenant, event.payload.id] = event.seq
    runtime.run_until_idle()
    runtime.close()
    lines = collector.lines
    lines |= {
        item.seq: _refused(item.seq, "limit_exceeded")
        for item in items
        if isinstance(item, Unsendable) and item.kind == "write"
    }
    missing = sorted(set(collector.seqs.values()) - set(lines))
    if missing:
        raise StateError(f"{name}: {len(missing)} writes have no verdict, the first is seq {missing[0]}")
    return [lines[seq] for seq in sorted(lines)]


class _Collector:
    """Listens to the runtime and keeps a verdict line for every write: ``seqs`` maps intake places to lines."""

    def __init__(self, keyring: Keyring, total: int, progress: Progress | None) -> None:
        self.seqs: dict[tuple[int, int], int] = {}
        self.named: dict[tuple[str, str], int] = {}
        self.lines: dict[int, dict[str, Any]] = {}
        self._keyring, self._total, self._progress = keyring, total, progress
        self._decided = 0

    def __call__(self, report: StepReport) -> None:
        for outputs in report.outputs:
            for output in outputs:
                self._collect(output)
        if self._progress is not None and report.stage == "screen":
            self._decided += len(report.records)
            self._progress(self._decided, self._total)

    def _collect(self, output: Output) -> None:
        if output.topic == AUDIT:
            verdict = verdict_from_bytes(self._keyring, (output.key or b"").decode(), output.value or b"")
            seq = self.seqs.get((verdict.partition, verdict.offset))
            if seq is not None:
                self.lines[seq] = _line(seq, verdict)
            self._looked_back(verdict)
        elif output.topic == DEAD_LETTER:
            why = orjson.loads(output.headers[-1][1] or b"{}")  # DEAD_LETTER_HEADER, the gate's own, comes last
            seq = self.seqs.get((why["partition"], why["offset"]))
            if seq is not None:
                self.lines[seq] = _refused(seq, why["reason"])

    def _looked_back(self, verdict: Verdict) -> None:
        """A recall that moved entries changes what stands of them in the end, and nothing that was decided at first."""
        for finding in verdict.findings:
            if finding.code == "detect.looked_back":
                for entry in finding.detail["entries"]:
                    seq = self.named[verdict.tenant, entry["event"]]
                    self.lines[seq] |= {"final": "quarantine", "moved_by": verdict.event_id}


def _refused(seq: int, reason: str) -> dict[str, Any]:
    return {"seq": seq, "decision": REFUSED, "scope": "shared", "reasons": [reason]}


def _line(seq: int, verdict: Verdict) -> dict[str, Any]:
    """Return what a verdict says, in the words of the streams' scorer: a duplicate is refused for good."""
    decision = REFUSED if verdict.decision == "duplicate" else verdict.decision
    score = verdict.score
    return {
        "seq": seq,
        "decision": decision,
        "scope": verdict.visibility or "shared",
        "reasons": verdict.reasons,
        "findings": sorted({finding.code for finding in verdict.findings}),
        "tier": verdict.tier,
        "taint": verdict.taint,
        "causes": verdict.taint_causes,
        "zone": verdict.zone,
        "score": None if score is None else score.score,
        "threshold": None if score is None else score.threshold,
        "phase": None if score is None else score.phase,
        "evidence": _evidence(verdict),
    }


def _evidence(verdict: Verdict) -> dict[str, Any] | None:
    """Return what the default detector found of a write."""
    found = (f.detail for f in verdict.findings if f.code in ("detect.held", "detect.scored"))
    return next(found, None)


@dataclass(frozen=True, slots=True)
class Watch:
    """Whom to tell how a run goes: a stream's start, (stream, events decided, events in all), a stream's result."""

    started: Callable[[str], None] = lambda name: None
    progress: Callable[[str, int, int], None] = lambda name, done, total: None
    finished: Callable[[StreamResult], None] = lambda result: None


SILENT = Watch()


def run(
    streams: Path, out: Path, *, jobs: int = 1, policy: Path | None = None, watch: Watch = SILENT
) -> list[StreamResult]:
    """Run every stream of a folder; see the module. ``jobs`` processes at once (1 to 32), an encoder in each.

    Raises ConfigError, PolicyError.
    """
    if not 1 <= jobs <= JOBS_MAX:
        raise ConfigError(f"--jobs must lie between 1 and {JOBS_MAX}")
    paths, chosen = streams_in(streams), policy_set(policy)
    if any((out / path.name).resolve() == path.resolve() for path in paths):
        raise ConfigError(f"{out} has the streams themselves: verdicts there would take their place")
    if jobs > 1:
        return _run_parallel(paths, out, jobs, policy, watch)
    results, encoder = [], load_encoder()
    for path in paths:
        watch.started(path.stem)

        def report(done: int, total: int, name: str = path.stem) -> None:
            watch.progress(name, done, total)

        results.append(run_stream(path, out, encoder=encoder, chosen=chosen, progress=report))
        watch.finished(results[-1])
    return results


def _run_parallel(paths: list[Path], out: Path, jobs: int, policy: Path | None, watch: Watch) -> list[StreamResult]:
    results = []
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn"), initializer=share_cores, initargs=(jobs,)) as pool:
        futures = []
        for path in paths:
            futures.append(pool.submit(_run_alone, path, out, policy))
            watch.started(path.stem)
        for future in as_completed(futures):
            results.append(future.result())
            watch.finished(results[-1])
    return sorted(results, key=lambda result: result.name)


def share_cores(jobs: int) -> None:
    """Give each of the worker processes its share of the cores."""
    import torch

    torch.set_num_threads(max(1, len(os.sched_getaffinity(0)) // jobs))


def _run_alone(path: Path, out: Path, policy: Path | None) -> StreamResult:
    return run_stream(path, out, encoder=load_encoder(), chosen=policy_set(policy))
