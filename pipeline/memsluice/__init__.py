"""A write gate for the long-term memory of LLM agents: signed, taint-tracked, screened and replayable.

What agent platforms use is exported here; everything is imported when it is first asked for.
"""

import importlib
from typing import TYPE_CHECKING, Any

from memsluice.extras import needed

if TYPE_CHECKING:
    from memsluice.client.aio import AsyncAgentSession, AsyncMemoryWriter, AsyncRecallChannel, AsyncRuntimeChannel
    from memsluice.client.extraction import Extracted, ExtractionBounds, Extractor
    from memsluice.client.http_extractor import HttpExtractor
    from memsluice.client.local import open_local as open_local  # deprecated, so not in __all__
    from memsluice.client.options import WriterOptions
    from memsluice.client.options import WriterOptions as Options  # noqa: F401 - deprecated, so not in __all__
    from memsluice.client.publisher import Receipt
    from memsluice.client.requests import Session, WriteOptions
    from memsluice.client.session import AgentSession
    from memsluice.client.writer import MemoryWriter, OperatorChannel, RecallChannel, RuntimeChannel
    from memsluice.deployment.connection import Connection
    from memsluice.errors import (
        BatchNotRemembered,
        BrokerUnavailable,
        BufferFull,
        ConfigError,
        EarlierFailed,
        ExtractionFailed,
        InputError,
        InvalidArgument,
        LandedElsewhere,
        LandingUnknown,
        MemsluiceError,
        NotDelivered,
        NotRemembered,
        ProducerError,
        StoreUnavailable,
        WriteHeld,
        WriterClosed,
        WriteRefused,
    )
    from memsluice.events.models import (
        Action,
        Kind,
        Observation,
        Origin,
        Recall,
        Returned,
        Tier,
        Visibility,
        Write,
        Zone,
    )
    from memsluice.keystore.store import KeyStore
    from memsluice.recall.recaller import Recalled as Recalled  # of the extra `recall`, so not in __all__
    from memsluice.recall.recaller import Recaller as Recaller  # likewise

_OF_RECALL = ("Recalled", "Recaller")
"""Names of the extra `recall`: not in ``__all__``, so that ``from memsluice import *`` works without it."""
_MODULES = {
    "memsluice.deployment.connection": ("Connection",),
    "memsluice.errors": (
        "BatchNotRemembered",
        "BrokerUnavailable",
        "BufferFull",
        "ConfigError",
        "EarlierFailed",
        "ExtractionFailed",
        "InputError",
        "InvalidArgument",
        "LandedElsewhere",
        "LandingUnknown",
        "MemsluiceError",
        "NotDelivered",
        "NotRemembered",
        "ProducerError",
        "StoreUnavailable",
        "WriteHeld",
        "WriteRefused",
        "WriterClosed",
    ),
    "memsluice.events.models": (
        "Action",
        "Kind",
        "Observation",
        "Origin",
        "Recall",
        "Returned",
        "Tier",
        "Visibility",
        "Write",
        "Zone",
    ),
    "memsluice.keystore.store": ("KeyStore",),
    "memsluice.client.aio": ("AsyncAgentSession", "AsyncMemoryWriter", "AsyncRecallChannel", "AsyncRuntimeChannel"),
    "memsluice.client.extraction": ("Extracted", "ExtractionBounds", "Extractor"),
    "memsluice.client.http_extractor": ("HttpExtractor",),
    "memsluice.client.local": ("open_local",),
    "memsluice.client.options": ("WriterOptions",),
    "memsluice.client.publisher": ("Receipt",),
    "memsluice.client.requests": ("Session", "WriteOptions"),
    "memsluice.client.session": ("AgentSession",),
    "memsluice.client.writer": ("MemoryWriter", "OperatorChannel", "RecallChannel", "RuntimeChannel"),
    "memsluice.recall.recaller": _OF_RECALL,
}
_HOME = {name: module for module, names in _MODULES.items() for name in names}
_RENAMED = {"Options": "WriterOptions"}
"""Deprecated names of what is called otherwise now."""

__all__ = [
    "Action",
    "AgentSession",
    "AsyncAgentSession",
    "AsyncMemoryWriter",
    "AsyncRecallChannel",
    "AsyncRuntimeChannel",
    "BatchNotRemembered",
    "BrokerUnavailable",
    "BufferFull",
    "ConfigError",
    "Connection",
    "EarlierFailed",
    "Extracted",
    "ExtractionBounds",
    "ExtractionFailed",
    "Extractor",
    "HttpExtractor",
    "InputError",
    "InvalidArgument",
    "KeyStore",
    "Kind",
    "LandedElsewhere",
    "LandingUnknown",
    "MemoryWriter",
    "MemsluiceError",
    "NotDelivered",
    "NotRemembered",
    "Observation",
    "OperatorChannel",
    "Origin",
    "ProducerError",
    "Recall",
    "RecallChannel",
    "Receipt",
    "Returned",
    "RuntimeChannel",
    "Session",
    "StoreUnavailable",
    "Tier",
    "Visibility",
    "Write",
    "WriteHeld",
    "WriteOptions",
    "WriteRefused",
    "WriterClosed",
    "WriterOptions",
    "Zone",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("memsluice")
    if name in _RENAMED:
        from memsluice import deprecations

        deprecations.warn(f"memsluice.{name}")
        return __getattr__(_RENAMED[name])
    if name not in _HOME:
        raise AttributeError(f"module 'memsluice' has no attribute {name!r}")
    with needed(f"`{name}`", "recall"):
        value = globals()[name] = getattr(importlib.import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return [*__all__, *_OF_RECALL, "__version__"]
