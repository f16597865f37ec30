"""CrewAI merges memories by deleting first: where the text that takes their place is held then, they are put back."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from crewai.flow.flow_context import current_flow_method_name

from memsluice.errors import MemsluiceError
from memsluice.memory.documents import Document
from memsluice.memory.shelf import Shelf, entry_of

STEP = "execute_plans"
"""The step of CrewAI's encoding flow that deletes, changes and saves. CrewAI runs it in a context of its own, so what
is noted there ends with it; nothing that a person deletes is noted."""
_gone: ContextVar[tuple[Shelf, tuple[Document, ...]] | None] = ContextVar("gone", default=None)
_log = logging.getLogger(__name__)


def note(shelf: Shelf, documents: Sequence[Document]) -> None:
    """Take note of what is about to be deleted while CrewAI merges."""
    if current_flow_method_name.get() == STEP:
        _gone.set((shelf, tuple(documents)))


@contextmanager
def undone_where_it_fails(shelf: Shelf) -> Iterator[None]:
    """Put back, where what is done within raises, what was deleted in its favour on this shelf."""
    try:
        yield
    except MemsluiceError:
        noted = _gone.get()
        if noted is not None and noted[0] is shelf:
            _gone.set(None)
            _put_back(shelf, noted[1])
        raise


def _put_back(shelf: Shelf, documents: Sequence[Document]) -> None:
    """Write what is not there any more, as it was. What cannot be is told in the log: the error goes first."""
    try:
        there = shelf.get([(one.path, one.key) for one in documents])
        missing = [one for one in documents if (one.path, one.key) not in there]
        if missing:
            shelf.memory.write_all([entry_of(one, parents=[one.event_id]) for one in missing])
    except MemsluiceError as error:
        _log.warning("memories that CrewAI deleted to merge them were not put back: %s", error)
