"""Waits for a store, or a broker, that does not answer, until it is told to stop."""

import threading
import time
from collections.abc import Callable
from typing import Final, TypeVar

from memsluice.errors import BrokerUnavailable, StoreError, StoreUnavailable
from memsluice.log import get_logger

RETRY_FIRST_S = 0.4
RETRY_MAX_S = 5.0
REFUSAL_S = 300.0
"""A refusal counts for so long unless it is repeated: an attempt that never ends is no refusal, but a hang."""
WARN_EVERY = 10
"""Who stays down is reported at the first attempt and at every tenth."""
_STORE: Final = "the store does not take the batch, trying again"
_BROKER: Final = "the broker does not give the store log, trying again"

_LOG = get_logger(__name__)
_T = TypeVar("_T")


class Patience:
    """Repeats what a store or a broker does not answer, with growing pauses, until it is told to stop.

    To be told to stop counts for the whole term, an assignment of partitions, and so for a batch too that came before
    and begins after: it is another worker's by then. ``wait(seconds)`` pauses and returns True when the work in hand is
    to be given up.
    """

    def __init__(
        self, wait: Callable[[float], bool] | None = None, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._term = self._given_up = threading.Event()
        self._wait = wait
        self._monotonic = monotonic
        self._refused: tuple[float, float] | None = None
        """When what is asked refused first, and last; None while it does not. Set whole: other threads read it."""

    def renew(self) -> None:
        """Begin a term: what was told before counts for those who came before."""
        self._term = threading.Event()

    def term(self) -> threading.Event:
        """Return the term in force, for :meth:`begin`; to be asked when a batch comes, before it waits for anything."""
        return self._term

    def begin(self, term: threading.Event) -> None:
        """Begin a batch that came in a term. Raises StoreUnavailable where that was told to stop since."""
        self._given_up = term
        if term.is_set():
            raise StoreUnavailable("the stage was told to stop before this batch began")

    def end(self) -> None:
        """End at once what this term's batches wait for, the one in hand and those that came."""
        self._term.set()
        self._given_up.set()

    def ended(self) -> bool:
        """Whether the batch in hand was given up."""
        return self._given_up.is_set()

    def is_over(self) -> bool:
        """Whether the batch in hand was given up, or is of an assignment that another one followed."""
        return self.ended() or self._given_up is not self._term

    def refused_s(self) -> float:
        """Return for how many seconds nothing has been taken; 0.0 where something was, or nobody says no any more."""
        refused, now_s = self._refused, self._monotonic()
        return 0.0 if refused is None or now_s - refused[1] > REFUSAL_S else max(now_s - refused[0], RETRY_FIRST_S)

    def until_answered(self, action: Callable[[], _T]) -> _T:
        """Return the action's result, repeating it while nobody answers or lets us in. Raises StoreUnavailable."""
        try:
            return self._repeated(action)
        finally:
            self._refused = None

    def _repeated(self, action: Callable[[], _T]) -> _T:
        pause_s, attempts = RETRY_FIRST_S, 0
        while True:
            try:
                return action()
            except (StoreError, BrokerUnavailable) as error:
                attempts += 1
                now_s = self._monotonic()
                self._refused = (now_s if self._refused is None else self._refused[0], now_s)
                if attempts % WARN_EVERY == 1:
                    who = _BROKER if isinstance(error, BrokerUnavailable) else _STORE
                    _LOG.warning(who, attempts=attempts, why=str(error))
                if (self._wait or self._given_up.wait)(pause_s):
                    raise StoreUnavailable(f"given up while waiting: {error}") from error
            pause_s = min(2 * pause_s, RETRY_MAX_S)
