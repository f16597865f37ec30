"""How long tests wait: as long as the busiest machine takes, for waiting ends as soon as the thing is there."""

import time
from collections.abc import Callable
from typing import TypeVar

import pytest

from memsluice.client.options import WriterOptions
from memsluice.readers.kafka import KafkaTopic

HANG_S = 240.0
"""Guards against hangs only; nothing is measured by it."""
PAUSE_S = 0.5
LIMITS = (
    "memsluice.cli.recall.ACKNOWLEDGED_SECONDS",
    "memsluice.ingest_service.opening.LOOKUP_S",
    "memsluice.ingest_service.status.LOOKUP_S",
    "memsluice.operations.commands.desk.ACKNOWLEDGED_S",
    "memsluice.operations.dead_letters.desk.ACKNOWLEDGED_S",
    "memsluice.operations.doctor.remote.ANSWER_S",
    "memsluice.operations.monitor.lag.ANSWER_S",
    "memsluice.readers.kafka.ASK_TIMEOUT_S",
    "memsluice.stores.weaviate.rpc.INSERT_TIMEOUT_S",
    "memsluice.stores.weaviate.rpc.QUERY_TIMEOUT_S",
)
"""Within how many seconds the product wants an answer of a broker or a store that is there."""
_T = TypeVar("_T")


def unhurry(patch: pytest.MonkeyPatch) -> None:
    """Have this process take a broker or a store that answers late for one that is there.

    Not for tests in which one is away, and which wait until that is told.
    """
    from weaviate.classes.init import Timeout  # seconds: only where a stack is needed

    for limit in LIMITS:
        patch.setattr(limit, HANG_S)
    patch.setattr("memsluice.stores.weaviate.admin._TIMEOUT", Timeout(init=HANG_S, query=HANG_S, insert=HANG_S))
    for kind, option in (
        (WriterOptions, "check_seconds"),
        (WriterOptions, "delivery_seconds"),
        (KafkaTopic, "stalled_s"),
    ):
        patch.setitem(kind.__init__.__kwdefaults__, option, HANG_S)


def until(done: Callable[[], _T], what: str) -> _T:
    """Ask until the answer is true, and return it; fail, and say what was waited for, once HANG_S have passed."""
    deadline = time.monotonic() + HANG_S
    while not (found := done()):
        assert time.monotonic() < deadline, what
        time.sleep(PAUSE_S)
    return found
