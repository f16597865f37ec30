"""A thread in which everything is done that belongs to one thread, such as a connection to SQLite."""

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

from memsluice.errors import WriterClosed
from memsluice.recall.recaller import Named, Narrow, Publish, Question, Recalled, Recaller

_P = ParamSpec("_P")
_T = TypeVar("_T")


class OneThread:
    """Runs calls one after the other, in one thread; a call from within that thread runs at once."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="memsluice-gate")
        self._inside = self._pool.submit(threading.get_ident).result()

    def run(self, call: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Return what the call returns, or raise what it raises. Raises WriterClosed after :meth:`close`."""
        if threading.get_ident() == self._inside:
            return call(*args, **kwargs)
        try:
            doing = self._pool.submit(call, *args, **kwargs)
        except RuntimeError:
            raise WriterClosed("the gate is closed", event_id="") from None
        return doing.result()

    def close(self) -> None:
        """End the thread, after what it does."""
        self._pool.shutdown()


class Asked:
    """What a memory asks of a :class:`~memsluice.recall.recaller.Recaller`, in the one thread."""

    def __init__(self, recaller: Recaller, own: OneThread) -> None:
        self._recaller = recaller
        self._own = own

    def ask(self, question: Question, publish: Publish | None = None, *, narrow: Narrow = tuple) -> Recalled:
        """See :meth:`Recaller.ask`."""
        return self._own.run(self._recaller.ask, question, publish, narrow=narrow)

    def look_up(
        self,
        question: Question,
        ids: Sequence[str] | None = None,
        publish: Publish | None = None,
        *,
        narrow: Narrow = tuple,
    ) -> Recalled:
        """See :meth:`Recaller.look_up`."""
        return self._own.run(self._recaller.look_up, question, ids, publish, narrow=narrow)

    def lies(self, question: Question, ids: Sequence[str]) -> tuple[Named, ...]:
        """See :meth:`Recaller.lies`."""
        return self._own.run(self._recaller.lies, question, ids)
