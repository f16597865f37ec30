"""How much of the machine is used while writes wait: a core that stands still then is throughput that nobody has."""

import os
from statistics import median

from memsluice_lab.figures.accounted import tenants_of, unhurried
from memsluice_lab.figures.bed import bed
from memsluice_lab.figures.ingest import Burst
from memsluice_lab.figures.records import streams
from memsluice_lab.figures.registry import Measured, Setting
from memsluice_lab.profile.bursts import costs

ROUNDS = 5


def cores_busy(setting: Setting) -> Measured:
    """The share of the cores' time that the gate, the broker and the store use, from publishing to the last landing."""
    with streams(setting) as paths, bed(setting, policy=unhurried()) as running:
        burst = Burst(running, paths, running.signers(tenants_of(paths)))
        found = []
        for number in range(ROUNDS):
            found.append(costs(burst, str(number)))
            setting.say(f"round {number + 1} of {ROUNDS}: {found[-1].busy:.3f} busy, {found[-1].idle:.3f} idle")
    told = [f"{one.landed:,} landed in {one.seconds:.0f} s, {one.busy:.3f} busy, {one.idle:.3f} idle" for one in found]
    rows = [("cores", str(len(os.sched_getaffinity(0)))), *((f"round {at + 1}", one) for at, one in enumerate(told))]
    return Measured(median(one.busy for one in found), tuple(rows))
