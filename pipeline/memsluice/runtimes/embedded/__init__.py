"""The embedded runtime: the same stages in one process, over a durable local log in SQLite.

Bounds: a seal or land step takes at most 256 records, a screen transaction at most 64; the file holds at most
``FILE_BYTES_MAX`` (an append beyond it raises BrokerError and loses nothing); ``LocalLog.prune`` applies retention.
"""

from memsluice.deployment.local_log import LocalLog
from memsluice.runtimes.embedded.runtime import Embedded, Listener, RoundRobin, SeededScheduler, StepLimits, StepReport

__all__ = ["Embedded", "Listener", "LocalLog", "RoundRobin", "SeededScheduler", "StepLimits", "StepReport"]
