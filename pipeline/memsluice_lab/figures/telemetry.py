"""What telemetry costs: two real stacks work at the same time on the same texts, one with and one without it.

Rounds one after the other differ by more than telemetry costs, on a machine that others use too. What slows one of two
stacks that run at once slows the other as well. Each has half of the cores to itself, broker, store and workers, so
that neither takes the other's; every few seconds they change cores, since what else the machine does slows one core
more than the other. And each of the two works with telemetry in its turn.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import cycle
from statistics import fmean, median
from threading import Event, Thread

import numpy as np
import psutil

from memsluice.devstack import control
from memsluice.telemetry.tracing import ENDPOINTS
from memsluice_lab.figures.accounted import tenants_of, unhurried
from memsluice_lab.figures.bed import Bed, Worker, bed
from memsluice_lab.figures.ingest import Burst
from memsluice_lab.figures.records import streams
from memsluice_lab.figures.registry import Measured, Setting
from memsluice_lab.streams import Published

ROUNDS, ROUNDS_DOWN = 5, 1
"""With a backend, and with one that is down; each both ways round."""
EVENTS = 4_000
"""Of a round: many short ones say more of how far they differ than few long ones."""
SHARE = 0.9
RESAMPLES = 10_000
CHANGE_S = 2.0
"""How long a stack stays on the same cores."""
NOBODY = "http://127.0.0.1:9"
"""Where no trace backend listens."""
SERVED = ("--metrics-port", "0")


@dataclass(frozen=True, slots=True)
class Side:
    """What one of two stacks landed, in how long, and the processor seconds of its workers until it was through."""

    landed: int
    seconds: float
    cpu_s: float

    @property
    def per_s(self) -> float:
        """Landed writes a second."""
        return self.landed / self.seconds

    @property
    def cpu_ms(self) -> float:
        """Processor milliseconds of the workers for a landed write."""
        return 1_000 * self.cpu_s / self.landed

    def __str__(self) -> str:
        return f"{self.per_s:.1f}/s, {self.cpu_ms:.2f} ms"


@contextmanager
def _sink() -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Give an OTLP endpoint in a process of its own, which takes spans and counts them."""
    with subprocess.Popen(
        [sys.executable, "-m", "memsluice_lab.figures.sink"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}", process


def _told(process: "subprocess.Popen[str]") -> int:
    said, _ = process.communicate("")
    return int(said)


def telemetry_cost(setting: Setting) -> Measured:
    """Share of throughput, in percent, that spans and metrics cost at most: the upper end of the interval."""
    with ExitStack() as closing:
        paths = closing.enter_context(streams(setting))
        stacks = [closing.enter_context(bed(setting, policy=unhurried())) for _ in range(2)]
        endpoint, sink = closing.enter_context(_sink())
        signers = [running.signers(tenants_of(paths)) for running in stacks]

        def variant(at: int, options: tuple[str, ...], environment: Mapping[str, str]) -> Burst:
            return Burst(stacks[at], paths, signers[at], options, environment, EVENTS)

        def round_of(name: str, to: str) -> list[tuple[Side, Side]]:
            both = []
            for at in (0, 1):
                off = variant(at, (), dict.fromkeys(ENDPOINTS, ""))
                on = variant(1 - at, SERVED, {ENDPOINTS[0]: to})
                both.append(_at_once(off, on, f"{name}{at}"))
                setting.say(f"{name}: without {both[-1][0]}; with {both[-1][1]}")
            return both

        on = [pair for number in range(ROUNDS) for pair in round_of(f"on{number}-", endpoint)]
        down = [pair for number in range(ROUNDS_DOWN) for pair in round_of(f"down{number}-", NOBODY)]
        spans = _told(sink)
    costs = [_cost(pair) for pair in on]
    low, high = interval(costs)
    rows = (
        ("landed writes a second, processor time a write: without; with", ""),
        *((f"round {number}", f"{off}; {with_}") for number, (off, with_) in enumerate(on, 1)),
        *((f"round {number}, backend down", f"{off}; {with_}") for number, (off, with_) in enumerate(down, 1)),
        ("cost in throughput, by round", ", ".join(f"{cost:.1f} %" for cost in costs)),
        ("median of the rounds, 90 % interval", f"{median(costs):.1f} %, {low:.1f} to {high:.1f} %"),
        ("cost in throughput with the backend down", f"{fmean(map(_cost, down)):.1f} %"),
        ("more processor time a write: telemetry; backend down", f"{_cpu(on):.1f} %; {_cpu(down):.1f} %"),
        ("spans exported", f"{spans:,}"),
    )
    return Measured(high, rows, (_NOTE,))


def interval(costs: Sequence[float], seed: int = 1) -> tuple[float, float]:
    """Return the ends of the 90 % interval of the rounds' median: the rounds drawn again, with repetitions."""
    chance = np.random.default_rng(seed)
    medians = np.median(chance.choice(np.array(costs), (RESAMPLES, len(costs))), axis=1)
    low, high = np.quantile(medians, ((1 - SHARE) / 2, (1 + SHARE) / 2))
    return float(low), float(high)


def _at_once(off: Burst, on: Burst, name: str) -> tuple[Side, Side]:
    """Let both stacks land the same writes at once, each timed to its own last.

    What each has landed when the first is through would not do: *seal* is well ahead by then, and the last second of a
    burst lands several times as much as any other, so that a second's delay would count for many.
    """
    both = (off, on)
    with ThreadPoolExecutor(2) as threads:
        prepared = list(threads.map(lambda burst: burst.prepare(name), both))
        with _changing_cores(off.running, on.running):
            spent = list(threads.map(_spent, both, prepared))
    for burst, (workers, _) in zip(both, prepared, strict=True):
        burst.running.stop(*workers)
    # Looked up once both are through: reading a topic takes time, and the other would be timed meanwhile.
    landed = [burst.landed(writes) for burst, (_, writes) in zip(both, prepared, strict=True)]
    first, second = (
        Side(len(times), (max(times) - began) / 1_000, cpu_s)
        for times, (began, cpu_s) in zip(landed, spent, strict=True)
    )
    return first, second


def _spent(burst: Burst, prepared: tuple[list[Worker], list[Published]]) -> tuple[int, float]:
    """Publish; return when that began (Unix ms), and the processor seconds of the workers until they were through."""
    workers, writes = prepared
    before = _cpu_s(workers)
    return burst.publish(writes), _cpu_s(workers) - before


@contextmanager
def _changing_cores(*both: Bed) -> Iterator[None]:
    """Keep each of two stacks on half of the cores, now on this one and then on the other."""
    ended = Event()

    def change() -> None:
        for halves in cycle((_halves(), _halves()[::-1])):
            for running, cores in zip(both, halves, strict=True):
                _pin(running, cores)
            if ended.wait(CHANGE_S):
                return

    changing = Thread(target=change, name="changing-cores")
    changing.start()
    try:
        yield
    finally:
        ended.set()
        changing.join()


def _halves() -> tuple[set[int], set[int]]:
    """Return the cores of this process in two halves; the same one twice where there is one."""
    cores = sorted(os.sched_getaffinity(0))
    middle = max(len(cores) // 2, 1)
    return set(cores[:middle]), set(cores[-middle:])


def _pin(running: Bed, cores: set[int]) -> None:
    """Keep every thread of a stack's servers and workers on some cores; what they start later inherits that."""
    pids = [row.pid for row in control.status(running.home) if row.pid is not None]
    for pid in [*pids, *(worker.process.pid for worker in running.workers)]:
        for thread in psutil.Process(pid).threads():
            with suppress(ProcessLookupError):  # it ended just now
                os.sched_setaffinity(thread.id, cores)


def _cpu_s(workers: Sequence[Worker]) -> float:
    return sum(sum(psutil.Process(worker.process.pid).cpu_times()[:2]) for worker in workers)


def _cost(pair: tuple[Side, Side]) -> float:
    off, on = pair
    return 100 * (1 - on.per_s / off.per_s)


def _cpu(pairs: Sequence[tuple[Side, Side]]) -> float:
    return fmean(100 * (on.cpu_ms / off.cpu_ms - 1) for off, on in pairs)


_NOTE = (
    "The figure, which the goal is held against, is the upper end of the interval, by drawing the rounds again. "
    "Two stacks at once, the same texts, each on half of the cores, which change every two seconds: what slows the "
    "machine slows both, but for the last seconds, when one of them is through. Every event is sampled: a span of each "
    "stage and one of each batch, exported over OTLP/HTTP to a process that counts them; metrics are kept and served. "
    "A backend that parses and stores spans on the same two cores would take its own share. The processor time is that "
    "of the three workers, exporter included, without broker and store."
)
