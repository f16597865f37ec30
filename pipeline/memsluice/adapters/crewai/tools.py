"""What CrewAI's agents see: each tool's result is observed before a model is shown it, in every gated memory that the
agent, or its crew, writes to.

CrewAI goes on without a hook that fails, so that what was not recorded would be shown after all, unless the hook raises
``HookAborted``: then an agent on a model with native tool calls ends its run, and any other one is told that the tool
failed.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any
from weakref import WeakValueDictionary

from crewai.flow.flow_context import current_flow_id
from crewai.flow.runtime import Flow
from crewai.hooks.dispatch import HookAborted
from crewai.hooks.tool_hooks import ToolCallHookContext, get_after_tool_call_hooks, register_after_tool_call_hook
from crewai.memory.memory_scope import MemoryScope, MemorySlice
from crewai.memory.unified_memory import Memory
from crewai.tools.memory_tools import RecallMemoryTool, RememberTool
from crewai.utilities.string_utils import sanitize_tool_name

from memsluice.events.models import Origin
from memsluice.memory.memory import Memory as SessionMemory

OWN = (RecallMemoryTool, RememberTool)
"""CrewAI's own tools for a memory. What is derived from one may return anything."""
_flows: WeakValueDictionary[int, Any] = WeakValueDictionary()
"""The flows whose memory is gated: what runs inside one has no other tie to it than CrewAI's context variable."""


class Hook:
    """One registration among CrewAI's hooks. Those of before it was made were made after a clearing, or never."""

    def __call__(self, context: ToolCallHookContext) -> None:
        """Publish that the crew saw a result. Raises HookAborted, and it is withheld, where the log lacks that."""
        try:
            if not _reads_gated_memory(context):
                for storage in _watching(context):
                    storage.saw(context.tool_name, context.tool_result)
        except Exception as error:
            raise HookAborted(
                f"what {context.tool_name} returned is withheld, since it could not be recorded that it was seen: "
                f"{error}",
                source="memsluice",
            ) from error

    @classmethod
    def registered(cls) -> "Hook":
        """Return the one among CrewAI's hooks; a new one where there is none, or none any more."""
        for one in get_after_tool_call_hooks():
            if isinstance(one, cls):
                return one
        made = cls()
        register_after_tool_call_hook(made)
        return made


class Watched:
    """A storage whose session is told what tools returned. ``trusted_tools`` and ``origins`` are of GatedStorage."""

    def __init__(
        self, memory: SessionMemory, trusted_tools: Collection[str], origins: Mapping[str, Origin] | None
    ) -> None:
        self.memory = memory
        self._trusted = frozenset(map(sanitize_tool_name, trusted_tools))
        self._origins = {sanitize_tool_name(name): origin for name, origin in (origins or {}).items()}
        self._hook = Hook.registered()

    def saw(self, tool: str, result: str | None) -> None:
        """Say that the session saw what a tool returned; return once the log has that. Raises ProducerError."""
        name = sanitize_tool_name(tool)
        if name not in self._trusted:
            self.memory.observe(self._origins.get(name, Origin.TOOL), content=result)

    def watched(self) -> bool:
        """Whether all that tools returned since this was made was observed: CrewAI's hooks can be cleared, and one that
        is registered after that does not know what was seen in between."""
        return any(one is self._hook for one in get_after_tool_call_hooks())


def in_flow(flow: Any) -> None:
    """Have what runs inside a flow observed in the flow's memory, too: a crew, or an agent, that has none."""
    if isinstance(flow, Flow):
        _flows[id(flow)] = flow


def memories(*holders: Any) -> list[Memory]:
    """Return the memories that crews, agents, flows, tools and views of a memory have, or that they are, each once; of
    a crew those of its agents, of its tasks' agents, and of the tools for a memory that any of these was given."""
    tasks = [task for holder in holders for task in _many(holder, "tasks")]
    people = [
        one
        for holder in (*holders, *tasks)
        for one in (holder, *_some(holder, "manager_agent", "agent"), *_many(holder, "agents"))
    ]
    tools = [_own(one) for holder in (*people, *tasks) for one in _many(holder, "tools")]
    having = [*people, *(one for one in tools if isinstance(one, OWN))]
    held = [*holders, *(one for holder in having for one in _some(holder, "memory", "_memory"))]
    backing = [one._memory if isinstance(one, MemoryScope | MemorySlice) else one for one in held]
    return list({id(one): one for one in backing if isinstance(one, Memory)}.values())


def _some(holder: Any, *names: str) -> list[Any]:
    return [one for name in names if (one := getattr(holder, name, None)) is not None]


def _many(holder: Any, name: str) -> Iterable[Any]:
    found = getattr(holder, name, None)
    return found if isinstance(found, list | tuple) else ()


def _own(tool: Any) -> Any:
    return getattr(tool, "_original_tool", None) or tool


def _watching(context: ToolCallHookContext) -> list[Watched]:
    """Return the storages whose sessions are about to see a result."""
    crew = context.crew or getattr(context.agent, "crew", None)
    running = current_flow_id.get()
    flows = [
        one for one in list(_flows.values()) if running is not None and running in (one._flow_match_id, one.flow_id)
    ]
    found = {id(one._storage): one._storage for one in memories(crew, context.agent, *flows)}
    return [one for one in found.values() if isinstance(one, Watched)]


def _reads_gated_memory(context: ToolCallHookContext) -> bool:
    """Whether a tool is CrewAI's own for a memory, by its type, and that memory gated: a name says nothing, and where
    another tool has the same one, nobody knows here which of them ran."""
    own = getattr(context.tool, "_original_tool", None)
    if type(own) not in OWN:
        return False
    given = [_own(one) for holder in (context.agent, context.task) for one in _many(holder, "tools")]
    if any(type(one) not in OWN and sanitize_tool_name(one.name) == context.tool_name for one in given):
        return False
    held = memories(own)
    return bool(held) and all(isinstance(one._storage, Watched) for one in held)
