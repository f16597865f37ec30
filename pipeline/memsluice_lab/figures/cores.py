"""How much of the machine is used while writes wait: a core that stands still then is throughput that nobody has."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import median

from memsluice.errors import StackError
from memsluice_lab.figures.accounted import tenants_of, unhurried
from memsluice_lab.figures.bed import bed
from memsluice_lab.figures.ingest import Burst
from memsluice_lab.figures.records import streams
from memsluice_lab.figures.registry import Measured, Setting
from memsluice_lab.profile.bursts import Costs, costs

ROUNDS = 5
COUNTS = (1, 2, 4, 8)
SCALING_ROUNDS, SCALING_EVENTS = 3, 4_000


def cores_busy(setting: Setting) -> Measured:
    """The share of the cores' time that the gate, the broker and the store use, from publishing to the last landing."""
    with streams(setting) as paths, bed(setting, policy=unhurried()) as running:
        burst = Burst(running, paths, running.signers(tenants_of(paths)))
        found = []
        for number in range(ROUNDS):
            found.append(costs(burst, str(number)))
            setting.say(f"round {number + 1} of {ROUNDS}: {found[-1].busy:.3f} busy, {found[-1].idle:.3f} idle")
    told = [f"{one.landed:,} landed in {one.seconds:.0f} s, {_told(one)}" for one in found]
    rows = [("cores", str(len(os.sched_getaffinity(0)))), *((f"round {at + 1}", one) for at, one in enumerate(told))]
    return Measured(median(one.busy for one in found), tuple(rows))


def cores_scaling(setting: Setting) -> Measured:
    """Landed writes a second on some cores, over as many times what one core lands: the least of 2, 4 and 8 cores.

    Broker, store, stages and producer are held to the cores by their affinity, each time in a stack of their own.
    Raises StackError on a machine with one core, which nothing can be compared on.
    """
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < COUNTS[1]:
        raise StackError("this figure compares numbers of cores, and this machine has one")
    counts = [count for count in COUNTS if count <= len(cores)]
    found: dict[int, list[Costs]] = {count: [] for count in counts}
    with streams(setting) as paths:
        for number in range(SCALING_ROUNDS):
            for count in counts if number % 2 == 0 else reversed(counts):
                with _held_to(cores[:count]), bed(setting, policy=unhurried()) as running:
                    burst = Burst(running, paths, running.signers(tenants_of(paths)), events=SCALING_EVENTS)
                    found[count].append(costs(burst, f"{count}-{number}"))
                setting.say(
                    f"{count} of {len(cores)} cores: {_rate(found[count][-1]):.1f}/s, {_told(found[count][-1])}"
                )
    return _scaling(found)


@contextmanager
def _held_to(cores: Sequence[int]) -> Iterator[None]:
    """Hold this thread, and what it starts, to some cores."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def _scaling(found: Mapping[int, Sequence[Costs]]) -> Measured:
    rates = {count: median(_rate(one) for one in some) for count, some in found.items()}
    rows = []
    for count, some in found.items():
        rows.append((rate_row(count), f"{rates[count]:.1f}; {', '.join(f'{_rate(one):.1f}' for one in some)}"))
        rows.append(("… of the cores' time, by round", "; ".join(map(_told, some))))
    least = min(rate / (count * rates[1]) for count, rate in rates.items() if count > 1)
    return Measured(least, tuple(rows))


def rate_row(count: int) -> str:
    """Return what the row of a number of cores is called, whose value begins with the median rate."""
    return f"landed a second by {count}: median; by round"


def _rate(one: Costs) -> float:
    return one.landed / one.seconds


def _told(one: Costs) -> str:
    return f"{one.busy:.3f} busy, {one.idle:.3f} idle"
