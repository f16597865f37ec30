"""A recall service on this machine: a real server, the embedded store, a home's real keys."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import uvicorn
from tests.patience import HANG_S
from tests.recall.test_recaller import Told, recaller
from tests.stores.build import T0

from memsluice.keystore.store import KeyStore
from memsluice.recall_service.app import Serving, application
from memsluice.stages.quota import Quota
from memsluice.telemetry.meters import Meters

FREE = Quota(10_000, 10_000)


@dataclass
class Service:
    """What runs, and what a test looks at or breaks."""

    url: str = ""
    told: Told = field(default_factory=Told)
    meters: Meters = field(default_factory=Meters)
    now_ms: int = T0
    missing: list[str] = field(default_factory=list)

    def counted(self, name: str, **labels: str) -> float:
        """Return a metric's value."""
        return self.meters.collectors.get_sample_value(f"memsluice_{name}", labels) or 0.0


@contextmanager
def serving(store, encoder, keys: KeyStore, quota: Quota = FREE, **options: Callable) -> Iterator[Service]:
    """Give a running service over a store."""
    service = Service()
    asks = recaller(store, encoder, service.told, **options)
    stands_on = Serving(
        asks, keys.keyring, keys.registry, service.meters, lambda: service.now_ms, quota, lambda: service.missing
    )
    server = uvicorn.Server(uvicorn.Config(application(stands_on), port=0, log_config=None, lifespan="off"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until = time.monotonic() + HANG_S
    while not server.started and time.monotonic() < until:
        time.sleep(0.01)
    assert server.started
    service.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    try:
        yield service
    finally:
        server.should_exit = True
        thread.join(HANG_S)
