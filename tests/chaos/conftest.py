"""A scene on the session's stack: workers, what is said, and a nemesis, all ended afterwards."""

import os
import time
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from tests.preloaded.serving import Server

from memsluice.clock import wall_ms
from memsluice.keystore.store import KeyStore
from memsluice.topics import names
from memsluice_lab.chaos import checking, compaction, faults, following, kills, logs, nemesis, proxy, zombies
from memsluice_lab.chaos.checker import Violation, read, verdict_violations
from memsluice_lab.chaos.following import Verdicts
from memsluice_lab.chaos.landed import store_violations
from memsluice_lab.chaos.nemesis import Nemesis
from memsluice_lab.chaos.rows import row_violations
from memsluice_lab.chaos.workload import Workload, tenants_apart
from memsluice_lab.chaos.zombies import Scene, of_tree
from memsluice_lab.figures import bed as beds
from memsluice_lab.figures.bed import Bed
from memsluice_lab.figures.registry import Setting

LIMITS: dict[Any, dict[str, float]] = {
    beds: {"ANSWER_S": 240},
    checking: {"LANDED_S_MAX": 600},
    compaction: {"ASK_S": 240, "CLEANED_S_MAX": 600},
    faults: {"RECOVERED_S_MAX": 600, "TAKEN_OVER_S_MAX": 600},
    following: {"ASK_S": 240, "SILENT_S_MAX": 600},
    kills: {"ANSWERED_S_MAX": 600, "AT_WORK_S_MAX": 600},
    nemesis: {"AGAIN_S_MAX": 600},
    proxy: {"ANSWER_S": 240, "STARTED_S_MAX": 240},
    zombies: {"ANSWERED_S_MAX": 600, "TAKEN_OVER_S_MAX": 600},
}
"""How long the lab waits for what has to happen, here: a guard against hangs alone, beside all other tests."""


def say(line: str) -> None:
    """Say what goes on, and when."""
    print(f"{time.strftime('%H:%M:%S')} {line}", flush=True)


def broken(scene: Scene, since: checking.Since) -> list[Violation]:
    """Wait until everything has landed; return what is broken of verdicts, rows and store."""
    assert checking.landed(scene, since)
    keyring, picture = scene.bed.store.keyring(), logs.take(scene.bed, scene.work.tenants, since)
    reading = read(picture, keyring, scene.work.tenants)
    found = list(verdict_violations(reading, scene.work.said))
    found += row_violations(picture.of(names.SCREEN_CHANGELOG), scene.work.said, reading)
    found += store_violations(picture, reading, keyring, now_ms=wall_ms())
    return found


@pytest.fixture(scope="module")
def patient() -> Iterator[None]:
    """Give everything as long as a busy machine needs."""
    with pytest.MonkeyPatch.context() as patch:
        for module, limits in LIMITS.items():
            for name, seconds in limits.items():
                patch.setattr(module, name, seconds)
        patch.setattr(Scene.answered, "__defaults__", (zombies.ANSWERED_S_MAX,))
        yield


@pytest.fixture(scope="module")
def bed(stack: Any, preloaded: Server, patient: None) -> Iterator[Bed]:
    """The session's stack, on which workers start without the seconds of their imports, but those of another tree."""
    keys = KeyStore.init(stack.home, wall_ms())
    made = Bed(stack.home, stack.connection, keys, Setting(None, say))
    if not of_tree(os.environ):
        made.launch = preloaded.launch
    yield made
    made.close()


@pytest.fixture(scope="module")
def scene(bed: Bed) -> Iterator[Scene]:
    """Two tenants, each on a partition of its own; no worker runs yet."""
    run = f"z{uuid4().hex[:6]}"
    made = Scene(bed, Workload(bed, tenants_apart(run, 2), run), Verdicts(bed), Nemesis(bed))
    try:
        yield made
    finally:
        made.close()
