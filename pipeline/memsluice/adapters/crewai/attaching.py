"""One line that puts a gate under the memory of a crew, an agent, a flow, or a memory by itself."""

from collections.abc import Collection, Mapping
from typing import Any, TypeVar

from crewai import Crew
from crewai.memory.unified_memory import Memory
from crewai.memory.utils import sanitize_scope_name

from memsluice.adapters.crewai.questions import embedder
from memsluice.adapters.crewai.storage import GatedStorage
from memsluice.adapters.crewai.tools import in_flow, memories
from memsluice.client.requests import Session
from memsluice.errors import InvalidArgument
from memsluice.events.models import Origin
from memsluice.memory.gate import Gate
from memsluice.memory.memory import TIMEOUT_S

_T = TypeVar("_T")


def attach(
    target: _T,
    gate: Gate,
    session: Session,
    *,
    trusted_tools: Collection[str] = (),
    origins: Mapping[str, Origin] | None = None,
    timeout_s: float = TIMEOUT_S,
) -> _T:
    """Give each memory of a crew (its own, its agents', its tasks' agents', its manager's, and those of CrewAI's tools
    for a memory that they were given), an agent, a flow, or a memory a gated storage, and return it. A crew that has no
    memory is given one. What runs inside an attached flow is observed in the flow's session as well.

    What was to be saved before is saved before, where it was to lie. A run of a crew is a session: attach it once more,
    in the next session, before its next run. The rest is as of :class:`GatedStorage`. Raises InvalidArgument for what
    has no memory.
    """
    storage = GatedStorage(gate, session, trusted_tools=trusted_tools, origins=origins, timeout_s=timeout_s)
    if isinstance(target, Crew) and not target._memory:
        target.memory = target._memory = _of_crew(target, storage)
    found = memories(target)
    if not found:
        raise InvalidArgument(f"argument target has no memory: give the {type(target).__name__} one first")
    for memory in found:
        _exchange(memory, storage)
    in_flow(target)
    return target


def _of_crew(crew: Crew, storage: GatedStorage) -> Memory:
    """Return a memory as CrewAI makes a crew's own."""
    llm: Any = crew._memory_llm()
    told = {} if llm is None else {"llm": llm}
    return Memory(storage=storage, root_scope=f"/crew/{sanitize_scope_name(crew.name or 'crew')}", **told)


def _exchange(memory: Memory, storage: GatedStorage) -> None:
    """Exchange storage and embedder, while nothing is saved: a save that waits would end in the next session, clean."""
    with memory._reset_lock:  # no save is submitted meanwhile
        memory.drain_writes()
        memory.storage = memory._storage = storage
        memory.embedder = memory._embedder_instance = embedder
