"""A write gate for the long-term memory of LLM agents: signed, taint-tracked, screened and replayable.

What agent platforms use is exported here; everything is imported when it is first asked for.
"""

import importlib
from importlib.metadata import version as _version
from typing import TYPE_CHECKING, Any

from memsluice.extras import needed

if TYPE_CHECKING:
    from memsluice.client.aio import AsyncMemoryWriter, AsyncRecallChannel, AsyncRuntimeChannel
    from memsluice.client.local import open_local
    from memsluice.client.publisher import Options, Receipt
    from memsluice.client.requests import Session
    from memsluice.client.writer import MemoryWriter, OperatorChannel, RecallChannel, RuntimeChannel
    from memsluice.deployment.connection import Connection
    from memsluice.errors import (
        BufferFull,
        ConfigError,
        InputError,
        MemsluiceError,
        NotDelivered,
        ProducerError,
        WriterClosed,
    )
    from memsluice.events.models import Action, Kind, Origin, Returned, Tier, Visibility, Zone
    from memsluice.keystore.store import KeyStore
    from memsluice.recall.recaller import Recalled, Recaller

_MODULES = {
    "memsluice.deployment.connection": ("Connection",),
    "memsluice.errors": (
        "BufferFull",
        "ConfigError",
        "InputError",
        "MemsluiceError",
        "NotDelivered",
        "ProducerError",
        "WriterClosed",
    ),
    "memsluice.events.models": ("Action", "Kind", "Origin", "Returned", "Tier", "Visibility", "Zone"),
    "memsluice.keystore.store": ("KeyStore",),
    "memsluice.client.aio": ("AsyncMemoryWriter", "AsyncRecallChannel", "AsyncRuntimeChannel"),
    "memsluice.client.local": ("open_local",),
    "memsluice.client.publisher": ("Options", "Receipt"),
    "memsluice.client.requests": ("Session",),
    "memsluice.client.writer": ("MemoryWriter", "OperatorChannel", "RecallChannel", "RuntimeChannel"),
    "memsluice.recall.recaller": ("Recalled", "Recaller"),
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}

__all__ = [
    "Action",
    "AsyncMemoryWriter",
    "AsyncRecallChannel",
    "AsyncRuntimeChannel",
    "BufferFull",
    "ConfigError",
    "Connection",
    "InputError",
    "KeyStore",
    "Kind",
    "MemoryWriter",
    "MemsluiceError",
    "NotDelivered",
    "OperatorChannel",
    "Options",
    "Origin",
    "ProducerError",
    "RecallChannel",
    "Recalled",
    "Recaller",
    "Receipt",
    "Returned",
    "RuntimeChannel",
    "Session",
    "Tier",
    "Visibility",
    "WriterClosed",
    "Zone",
    "open_local",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return _version("memsluice")
    if name not in _HOME:
        raise AttributeError(f"module 'memsluice' has no attribute {name!r}")
    with needed(f"`{name}`", "recall"):
        value = globals()[name] = getattr(importlib.import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
