"""Tells of what recalls show over time: metrics, and one line of log a signal. No question and no content is in it."""

from collections.abc import Callable
from threading import Lock

from memsluice import log
from memsluice.clock import Clock
from memsluice.recall.recaller import Question, Recalled
from memsluice.recall.signals.seen import Seen, Signal
from memsluice.recall.signals.watch import RecallWatch
from memsluice.recall.withheld import Withheld
from memsluice.telemetry import registry as metrics
from memsluice.telemetry.meters import Meters

See = Callable[[Seen, int], tuple[list[Signal], bool]]
_LOG = log.get_logger(__name__)


class Watching:
    """Shows a service's answers to the detectors, one at a time. ``now_ms`` is Unix ms."""

    def __init__(self, meters: Meters, now_ms: Clock, watch: RecallWatch | None = None) -> None:
        self._meters = meters
        self._now_ms = now_ms
        self._watch = watch or RecallWatch()
        self._lock = Lock()

    def answered(self, asked: Question, answer: Recalled) -> None:
        """Count what an answer flags and withholds, and say what it shows beside those before it."""
        self._told(asked, answer, self._watch.see)

    def named(self, asked: Question, answer: Recalled) -> None:
        """As :meth:`answered`, of entries that were asked for by their names, or of all of a scope."""
        self._told(asked, answer, self._watch.given)

    def _told(self, asked: Question, answer: Recalled, see: See) -> None:
        self._count(answer)
        for signal in self._found(asked, answer, see):
            self._meters.add(metrics.RECALL_SIGNALS, signal.kind)
            _LOG.warning(
                "a recall shows something unusual",
                signal=signal.kind.value,
                tenant=signal.tenant,
                subject=signal.subject,
                hits=signal.hits,
                trials=signal.trials,
                usual=round(signal.usual, 4),
                event_id=answer.event_id,
            )

    def _count(self, answer: Recalled) -> None:
        """Count what an answer flags and withholds."""
        for reason, count in answer.withheld.items():
            if reason == Withheld.SCOPE:  # whoever reads /metrics on this port before and after asking would learn it
                continue
            self._meters.add(metrics.RECALL_WITHHELD, reason, amount=count)
        for entry in answer.entries:
            for flag in entry.flags:
                self._meters.add(metrics.RECALL_FLAGGED, flag)

    def _found(self, asked: Question, answer: Recalled, see: See) -> list[Signal]:
        """Return the signals. The answer was published: what fails here costs nobody an answer, and is counted."""
        try:
            seen = Seen.of(asked.tenant, asked.principal, asked.text, answer.entries)
            with self._lock:
                found, whole = see(seen, self._now_ms())
        except Exception as error:
            _LOG.error("a recall was not watched", why=type(error).__name__, event_id=answer.event_id)
            found, whole = [], False
        if not whole:
            self._meters.add(metrics.RECALL_UNWATCHED)
        return found
