"""All checks that fit a home: those of this machine, and where there is a broker, those that ask it and the store."""

import time
from pathlib import Path

from memsluice.clock import wall_ms
from memsluice.deployment.connection import Connection
from memsluice.deployment.home import Home
from memsluice.encoder import EncoderSetting
from memsluice.keystore.store import KeyStore
from memsluice.operations.doctor import checks, remote
from memsluice.operations.target import on_broker
from memsluice.stores.opening import embedded_space
from memsluice.topics.names import WEAVIATE_RECALL


def checks_of(place: Home, home: Path | None) -> dict[str, checks.Check]:
    """Return the checks of a home by what they look at, in their order. ``home`` is what was named, if anything was.

    Raises ConfigError where a deployment is named and its connection cannot be read.
    """
    todo: dict[str, checks.Check] = {
        "home": lambda: checks.disk(place),
        "keys": lambda: checks.keys(KeyStore(place.path), wall_ms()),
        "policy file": lambda: checks.policies(place),
        "embedded": lambda: checks.embedded(place),
        "model": lambda: checks.model(EncoderSetting.read()),
    }
    if place.store_file.exists():
        todo["encoder"] = lambda: checks.encoder(EncoderSetting.read(), lambda: embedded_space(place.store_file))
    if on_broker(place, home):
        connection = Connection.load(home)
        todo |= {
            "broker": lambda: remote.broker(connection),
            "workers": lambda: remote.workers(connection),
            "partitions": lambda: remote.partitions(connection, KeyStore(place.path)),
            "broker clock": lambda: remote.broker_clock(connection, time.time()),
            "store": lambda: remote.store(connection, time.time()),
        }
        if WEAVIATE_RECALL in connection.weaviate_keys:
            todo["encoder"] = lambda: checks.encoder(EncoderSetting.read(), lambda: remote.space(connection))
    elif place.layout.run_file.exists():  # `stack down` removes it
        todo["stack"] = lambda: checks.crashed(place)
    return todo
