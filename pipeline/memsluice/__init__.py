"""A write gate for the long-term memory of LLM agents: signed, taint-tracked, screened and replayable.

What agent platforms use is exported here; everything is imported when it is first asked for.
"""

import importlib
from importlib.metadata import version as _version
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from memsluice.connection import Connection
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
    from memsluice.keystore import KeyStore
    from memsluice.producer.aio import AsyncMemoryWriter, AsyncRecallChannel, AsyncRuntimeChannel
    from memsluice.producer.local import open_local
    from memsluice.producer.publisher import Options, Receipt
    from memsluice.producer.requests import Session
    from memsluice.producer.writer import MemoryWriter, OperatorChannel, RecallChannel, RuntimeChannel
    from memsluice.recall.recaller import Recalled, Recaller

_MODULES = {
    "memsluice.connection": ("Connection",),
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
    "memsluice.keystore": ("KeyStore",),
    "memsluice.producer.aio": ("AsyncMemoryWriter", "AsyncRecallChannel", "AsyncRuntimeChannel"),
    "memsluice.producer.local": ("open_local",),
    "memsluice.producer.publisher": ("Options", "Receipt"),
    "memsluice.producer.requests": ("Session",),
    "memsluice.producer.writer": ("MemoryWriter", "OperatorChannel", "RecallChannel", "RuntimeChannel"),
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
    value = globals()[name] = getattr(importlib.import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
