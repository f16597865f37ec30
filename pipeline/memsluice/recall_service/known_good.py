"""Asks the known-good questions from time to time, and counts which are still answered as they should be."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread

from memsluice import log
from memsluice.errors import ConfigError
from memsluice.escaping import visible
from memsluice.recall.recaller import Recaller
from memsluice.recall.signals.holdout import Holdout, KnownGood, parse
from memsluice.telemetry import registry as metrics
from memsluice.telemetry.meters import Meters

ANSWERED, MISSED, FAILED = metrics.HOLDOUT_RESULTS
_LOG = log.get_logger(__name__)
FILE_BYTES_MAX = 2_000_000
END_S = 5.0


def read(path: Path) -> Holdout:
    """Return the questions of a file. Raises ConfigError, which says what is wrong with it."""
    name = visible(str(path))
    try:
        if path.stat().st_size > FILE_BYTES_MAX:
            raise ConfigError(f"{name}: has more than {FILE_BYTES_MAX} bytes")
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{name}: cannot be read ({type(error).__name__})") from None
    return parse(text, name)


def ask_all(recaller: Recaller, holdout: Holdout, meters: Meters, ended: Event | None = None) -> None:
    """Ask every question once, unless ``ended`` is set meanwhile. One that cannot be asked counts as failed."""
    for number, question in enumerate(holdout.questions):
        if ended is not None and ended.is_set():
            return
        meters.add(metrics.RECALL_HOLDOUT, _result(recaller, question, number, meters))


def _result(recaller: Recaller, question: KnownGood, number: int, meters: Meters) -> str:
    """Return how it went, and count what was withheld: nobody else may come by what is forged there. A log line names
    the question by its number in the file, 0 the first."""
    try:
        found, withheld = recaller.would_answer(question.asked())
    except Exception as error:  # whatever it is, the questions behind it are asked, and this one counts
        why = type(error).__name__
        _LOG.error("a known-good question was not asked", number=number, tenant=question.tenant, why=why)
        return FAILED
    for reason, count in withheld.items():
        meters.add(metrics.RECALL_WITHHELD, reason, amount=count)
    if not (missed := question.missed(found)):
        return ANSWERED
    _LOG.warning("a known-good question missed entries", number=number, tenant=question.tenant, missed=missed)
    return MISSED


@contextmanager
def asking(recaller: Recaller, holdout: Holdout, meters: Meters, every_s: float) -> Iterator[None]:
    """Ask them now and every ``every_s`` seconds after a round, in a thread of its own, until this ends."""
    ended = Event()

    def go_on() -> None:
        while not ended.is_set():
            ask_all(recaller, holdout, meters, ended)
            ended.wait(every_s)

    thread = Thread(target=go_on, name="known-good questions", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join(END_S)  # a question in flight may wait for the broker longer than a service may take to stop
