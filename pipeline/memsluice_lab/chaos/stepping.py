"""A worker whose clock steps forth and back: ``python -m memsluice_lab.chaos.stepping STAGE REPLICA``.

Without root a process's clock cannot be set, but the stages take theirs as an argument: this hands them one that is
wrong every other time. It stays below every expiry, and above the first moment of every key.
"""

import sys
import time

from memsluice import log
from memsluice.clock import wall_ms
from memsluice.deployment.connection import Connection
from memsluice.deployment.home import Home
from memsluice.runtimes.assembly import Assembly
from memsluice.runtimes.kafka.worker import run_worker

STEP_MS = 600_000
PERIOD_S = 2.0
"""So long it is right, and so long it is wrong."""


def stepping_ms() -> int:
    """Return the time, Unix ms, or ten minutes more."""
    return wall_ms() + STEP_MS * (int(time.monotonic() / PERIOD_S) % 2)


def main(stage: str, replica: str) -> int:
    """Run one stage until SIGTERM; return the exit code."""
    log.configure()
    place, connection = Home.at(None), Connection.load(None)
    spec = Assembly.at(place, stepping_ms).specs(connection)[stage]
    return run_worker([spec], connection, data_dir=place.workers_dir, replica=replica)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
