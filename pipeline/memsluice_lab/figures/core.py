"""Figures of the gate's core: how fast it decides, and how much state an event writes."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np

from memsluice.encoder import Encoder, load_encoder
from memsluice.envelope.keys import Keyring
from memsluice.envelope.seals import Sealed, sealed_from_bytes
from memsluice.errors import StateError
from memsluice.events.models import Write
from memsluice.events.records import Record, Rows
from memsluice.gate.decide import Context, decide
from memsluice.gate.decision import TenantState
from memsluice.gate.detectors.memsad.state import MemsadState
from memsluice.gate.detectors.rarity.memory import Memory
from memsluice.gate.policy import model as policies
from memsluice.gate.policy.model import Policy
from memsluice.gate.state.rows import encode_changes
from memsluice.runtimes.embedded import Embedded
from memsluice.stages.base import StatefulStage, Step
from memsluice.stages.screen import ScreenStage
from memsluice.stages.seal import SealStage
from memsluice.topics.names import EVENTS, PARTITIONS
from memsluice_lab import cast
from memsluice_lab.figures.records import streams
from memsluice_lab.figures.registry import Measured, Setting
from memsluice_lab.streams import Line, Published, events_of, read_stream, signed

WRITES_MIN = 1_000
ROUNDS = 3
Value = TypeVar("Value")


@dataclass(slots=True)
class Measuring:
    """A *screen* that counts what the real one changes, and keeps what it was given and the state rows as they are."""

    inner: StatefulStage
    sizes: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)
    given: list[Record] = field(default_factory=list)
    state: dict[bytes, bytes] = field(default_factory=dict)

    def process(self, record: Record, rows: Rows) -> Step:
        """Decide a record as the real stage does."""
        step = self.inner.process(record, rows)
        self.given.append(record)
        self.sizes.append(sum(len(change.key) + len(change.value or b"") for change in step.changes))
        self.rows.append(len(step.changes))
        for change in step.changes:
            if change.value is None:
                self.state.pop(change.key, None)
            else:
                self.state[change.key] = change.value
        return step

    def forget(self, partition: int) -> None:
        """Pass on."""
        self.inner.forget(partition)


def screened(paths: Sequence[Path], setting: Setting) -> Iterator[tuple[Measuring, Keyring]]:
    """Yield what *screen* did with each stream, and its keyring: the embedded runtime with the real encoder."""
    encoder = load_encoder()
    for path in paths:
        screen, keyring = through(read_stream(path), encoder, seed=path.stem)
        setting.say(f"{path.stem}: {len(screen.given)} events through seal and screen")
        yield screen, keyring


def through(lines: Iterable[Line], encoder: Encoder, *, seed: str) -> tuple[Measuring, Keyring]:
    """Return what *screen* did with a stream's events, under the policy that ships, and their keyring."""
    events = [event for event in events_of(lines) if isinstance(event, Published)]
    keyring, registry, signers = cast.in_memory(sorted({event.payload.tenant for event in events}), seed=seed)
    screen = Measuring(ScreenStage(always(keyring), policies.default().of, PARTITIONS))
    seal = SealStage(always(keyring), always(registry), encoder, PARTITIONS)
    runtime = Embedded(":memory:", seal=seal, screen=screen, land=None, now_ms=always(0), durable=False)
    for event in events:
        runtime.append(EVENTS, *signed(event, signers), append_ms=event.append_ms)
    runtime.run_until_idle()
    runtime.close()
    return screen, keyring


def always(value: Value) -> Callable[[], Value]:
    """Return a function that returns ``value``."""
    return lambda: value


def changelog_bytes_per_event(setting: Setting) -> Measured:
    """Mean bytes (keys and values) of the state rows that one sealed event changes."""
    sizes: list[int] = []
    rows: list[int] = []
    with streams(setting) as paths:
        for screen, _ in screened(paths, setting):
            sizes += screen.sizes
            rows += screen.rows
    spread = np.array(sizes)
    table = (
        ("events", f"{len(sizes):,}"),
        ("rows an event", f"{np.mean(rows):.2f} mean, {max(rows)} most"),
        (
            "bytes an event",
            f"{np.median(spread):,.0f} median, {np.quantile(spread, 0.99):,.0f} p99, {spread.max():,} most",
        ),
        ("mean of writes and all others", f"{spread.mean():,.0f}"),
    )
    return Measured(float(spread.mean()), table)


class Dictionary:
    """State rows in a dictionary: the core's speed without a store's."""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}

    def get(self, key: bytes) -> bytes | None:
        """Return the row's value, or None."""
        return self.values.get(key)


def core_decisions_per_s(setting: Setting) -> Measured:
    """Writes decided a CPU second under the policy that ships: real texts, real vectors, all checks, both detectors."""
    policy = policies.default().default
    history, window = policy.memsad.history_size, policy.memsad.reference_size
    writes, seconds, decisions = 0, [0.0] * ROUNDS, dict[str, int]()
    with streams(setting) as paths:
        for screen, keyring in screened(paths, setting):
            sealed = [sealed_from_bytes(keyring, (r.key or b"").decode(), r.value or b"") for r in screen.given]
            for round_number in range(ROUNDS):
                counted, spent, found = _decide_all(sealed, policy)
                seconds[round_number] += spent
            writes += counted
            for name, count in found.items():
                decisions[name] = decisions.get(name, 0) + count
    if writes < WRITES_MIN:
        raise StateError(f"only {writes} writes met a full history and window; at least {WRITES_MIN} are needed")
    rates = [writes / spent for spent in seconds]
    table = (
        ("detector that decides; reported beside it", f"{policy.detector}; MEMSAD"),
        (
            f"writes decided with MEMSAD's history {history} and window {window} full",
            f"{writes:,} in each of {ROUNDS} rounds",
        ),
        ("decisions", ", ".join(f"{count:,} {name}" for name, count in sorted(decisions.items()))),
        ("writes a CPU second, by round", ", ".join(f"{rate:,.0f}" for rate in rates)),
        ("mean", f"{1e6 / np.median(rates):.0f} µs a write"),
    )
    return Measured(float(np.median(rates)), table)


def _decide_all(events: Sequence[Sealed], policy: Policy) -> tuple[int, float, dict[str, int]]:
    """Decide a stream in order. Return writes that met full windows, their CPU seconds, and their decisions.

    CPU seconds of the whole process, so that a mathematics library's own threads are counted too. Timed are the
    decision and turning its changes into bytes.
    """
    rows, memsad = Dictionary(), MemsadState.empty(policy.memsad)
    memory = Memory.empty(policy.detect.questions, policy.detect.entries)
    history, window = policy.memsad.history_size, policy.memsad.reference_size
    counted, spent, found = 0, 0.0, dict[str, int]()
    for offset, sealed in enumerate(events):
        full = memsad.asked_total >= history and len(memsad.reference) >= window
        began = time.process_time()
        context = Context(
            now_ms=sealed.position.append_ms, sealed_offset=offset, seal_kid="seal", admission_kid="admission"
        )
        outcome = decide(TenantState(rows, memsad, memory), sealed, policy, context)
        changed = encode_changes(sealed.tenant, outcome.changes)
        took = time.process_time() - began
        memsad, memory = outcome.memsad, outcome.memory or memory
        for key, value in changed:
            if value is None:
                rows.values.pop(key, None)
            else:
                rows.values[key] = value
        if full and isinstance(sealed.payload, Write):
            counted, spent = counted + 1, spent + took
            name = outcome.verdict.decision.value
            found[name] = found.get(name, 0) + 1
    return counted, spent, found
