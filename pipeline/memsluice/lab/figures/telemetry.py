"""What telemetry costs: the same burst with and without it, on the real stack, in turn."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import median

from memsluice.lab.figures.accounted import tenants_of, unhurried
from memsluice.lab.figures.bed import bed
from memsluice.lab.figures.ingest import Burst, Rate
from memsluice.lab.figures.records import streams
from memsluice.lab.figures.registry import Measured, Setting
from memsluice.telemetry.tracing import ENDPOINTS

ROUNDS = 3
NOBODY = "http://127.0.0.1:9"
"""Where no trace backend listens."""
SERVED = ("--metrics-port", "0")


@contextmanager
def _sink() -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """Give an OTLP endpoint in a process of its own, which takes spans and counts them."""
    with subprocess.Popen(
        [sys.executable, "-m", "memsluice.lab.figures.sink"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}", process


def _told(process: "subprocess.Popen[str]") -> int:
    said, _ = process.communicate("")
    return int(said)


def telemetry_cost(setting: Setting) -> Measured:
    """Share of throughput, in percent, that spans and metrics cost: median of the rounds; without first in each."""
    rounds: list[tuple[Rate, Rate, Rate]] = []
    with streams(setting) as paths, bed(setting, policy=unhurried()) as running, _sink() as (endpoint, sink):
        signers = running.signers(tenants_of(paths))
        variants = [
            Burst(running, paths, signers, environment=dict.fromkeys(ENDPOINTS, "")),
            Burst(running, paths, signers, SERVED, {ENDPOINTS[0]: endpoint}),
            Burst(running, paths, signers, SERVED, {ENDPOINTS[0]: NOBODY}),
        ]
        for number in range(ROUNDS):
            off, on, down = (
                burst.guarded(f"{name}{number}") for name, burst in zip(("off", "on", "down"), variants, strict=True)
            )
            rounds.append((off, on, down))
            setting.say(f"round {number + 1}: without {off}, with {on}, backend down {down}")
        spans = _told(sink)
    rows = [("rounds, without and with and with the backend down in turn", str(ROUNDS))]
    for number, (off, on, down) in enumerate(rounds, 1):
        rows.append((f"round {number}: without; with; backend down", f"{off}; {on}; {down}"))
    rows += [
        ("cost of telemetry by round", ", ".join(f"{_cost(off, on):.1f} %" for off, on, _ in rounds)),
        ("cost with the backend down, by round", ", ".join(f"{_cost(off, down):.1f} %" for off, _, down in rounds)),
        ("spans exported", f"{spans:,}"),
    ]
    return Measured(median(_cost(off, on) for off, on, _ in rounds), tuple(rows), (_NOTE,))


def _cost(off: Rate, on: Rate) -> float:
    return 100 * (1 - on.per_s / off.per_s)


_NOTE = (
    "Every event is sampled: a span of each stage and one of each batch, exported over OTLP/HTTP to a process that "
    "counts them; metrics are kept and served. A backend that parses and stores spans on the same two cores would take "
    "its own share. Below zero means that the noise of the machine is larger than the cost."
)
