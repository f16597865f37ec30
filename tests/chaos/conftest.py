"""A scene on the session's stack: workers, what is said, and a nemesis, all ended afterwards."""

import time
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest

from memsluice.clock import wall_ms
from memsluice.keystore.store import KeyStore
from memsluice_lab.chaos.following import Verdicts
from memsluice_lab.chaos.nemesis import Nemesis
from memsluice_lab.chaos.workload import Workload, tenants_apart
from memsluice_lab.chaos.zombies import Scene
from memsluice_lab.figures.bed import Bed
from memsluice_lab.figures.registry import Setting


def say(line: str) -> None:
    """Say what goes on, and when."""
    print(f"{time.strftime('%H:%M:%S')} {line}", flush=True)


@pytest.fixture(scope="module")
def scene(stack: Any) -> Iterator[Scene]:
    """Two tenants, each on a partition of its own; no worker runs yet."""
    bed = Bed(stack.home, stack.connection, KeyStore.init(stack.home, wall_ms()), Setting(None, say))
    run = f"z{uuid4().hex[:6]}"
    made = Scene(bed, Workload(bed, tenants_apart(run, 2), run), Verdicts(bed), Nemesis(bed))
    try:
        yield made
    finally:
        made.close()
