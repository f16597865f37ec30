"""Puts a gate under a mem0 ``Memory``: its factory and its list of providers are closed, so its stores are replaced."""

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, TypeVar
from uuid import uuid4

from mem0.exceptions import VectorStoreError

from memsluice.adapters.mem0.store import GatedVectorStore, held
from memsluice.errors import BatchNotRemembered
from memsluice.memory.gate import Gate
from memsluice.memory.memory import TIMEOUT_S

_M = TypeVar("_M")


def attach(memory: _M, gate: Gate, *, agent: str = "mem0", run: str | None = None, timeout_s: float = TIMEOUT_S) -> _M:
    """Give a mem0 ``Memory`` or ``AsyncMemory`` two gated stores, of memories and of entities, and return it.

    Its ``add`` raises BatchNotRemembered where anything of it is not remembered, and says what: mem0 alone would log
    it, and return as if it had never been. ``results`` has mem0's own for what it kept, then what was not remembered.
    ``agent`` and ``run`` as in :class:`GatedVectorStore`.
    """
    found: Any = memory
    run = run or uuid4().hex
    found.vector_store = GatedVectorStore(gate, agent=agent, run=run, timeout_s=timeout_s)
    found._entity_store = GatedVectorStore(gate, agent=agent, run=run, collection="mem0_entities", timeout_s=timeout_s)
    found.add = _told_async(found.add) if inspect.iscoroutinefunction(found.add) else _told(found.add)
    return memory


def _told(add: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(add)
    def told(*args: Any, **kwargs: Any) -> Any:
        with _noting():
            return _raised(add(*args, **kwargs))

    return told


def _told_async(add: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(add)
    async def told(*args: Any, **kwargs: Any) -> Any:
        with _noting():
            return _raised(await add(*args, **kwargs))

    return told


@contextmanager
def _noting() -> Iterator[None]:
    """Have the stores note what is not remembered; of a call that mem0 gives up say that, and not that it did."""
    token = held.set({})
    try:
        yield
    except VectorStoreError:
        _raised({})
        raise
    finally:
        held.reset(token)


def _raised(result: Any) -> Any:
    """Return what mem0 returned; raise BatchNotRemembered where it left something out."""
    if missing := held.get():
        raise BatchNotRemembered([*(result.get("results", []) if isinstance(result, dict) else []), *missing.values()])
    return result
